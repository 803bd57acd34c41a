"""Updates on delete: a changed template reaches a pod when somebody deletes it, and not before."""

from __future__ import annotations

from typing import Any

from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, SCALING_GROUPS
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set
from tests.support.gangs.stage import Stage, images, of_cliques, of_replica, one_cpu, uids


async def test_nothing_is_replaced_until_it_is_deleted(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=8)
    await stage.make(a_mixed_set())
    before = await stage.until_ready("web", 6)
    await stage.roll("web", "new")
    await until_told(stage, "web-0-worker", "web-0-g-0-member")
    progress = (await stage.set("web")).status.update_progress
    assert progress is not None
    assert progress.update_started_at == progress.update_ended_at
    assert uids(await stage.until_ready("web", 6)) == uids(before)

    lost = [of_cliques(before, "web-0-worker")[0], of_cliques(before, "web-0-g-0-member")[0]]
    await stage.lose(*lost)
    after = await stage.until_ready("web", 6, without=uids(lost))
    assert uids(before) - uids(lost) < uids(after)
    assert sorted(images(after)) == ["new", "new", "none", "none", "none", "none"]
    assert set(images(pod for pod in after if pod.metadata.uid not in uids(before))) == {"new"}


async def test_what_is_added_is_new_and_what_is_taken_away_is_old(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=14)
    await stage.make(a_mixed_set())
    before = await stage.until_ready("web", 6)
    await stage.roll("web", "new")
    await until_told(stage, "web-0-worker", "web-0-g-0-member")
    await stage.scale(POD_CLIQUES, "web-0-worker", 4)
    await stage.scale(SCALING_GROUPS, "web-0-g", 3)
    grown = await stage.until_ready("web", 10)
    assert uids(before) < uids(grown)
    assert sorted(images(grown)) == ["new"] * 4 + ["none"] * 6

    await stage.scale(POD_CLIQUES, "web-0-worker", 2)
    shrunk = await stage.until_ready("web", 8)
    assert images(of_cliques(shrunk, "web-0-worker")) == ["new", "new"]
    await stage.scale(POD_CLIQUE_SETS, "web", 2)
    assert set(images(of_replica(await stage.until_ready("web", 14), 1))) == {"new"}


async def test_a_set_that_rolls_from_now_on_brings_its_old_pods_up_to_date(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=8)
    await stage.make(a_mixed_set())
    before = await stage.until_ready("web", 6)
    await stage.roll("web", "second")
    await until_told(stage, "web-0-worker", "web-0-g-0-member")

    def change(spec: dict[str, Any]) -> None:
        spec["updateStrategy"] = {"type": "RollingRecreate"}
        for clique in spec["template"]["cliques"]:
            clique["spec"]["podSpec"]["containers"][0]["image"] = "third"

    await stage.change("web", change)
    await stage.until_updated("web")
    assert set(images(await stage.until_ready("web", 6, without=uids(before)))) == {"third"}


def a_mixed_set() -> dict[str, Any]:
    cliques = [
        a_clique_template("worker", 2, min_available=1, pod_spec=one_cpu()),
        a_clique_template("member", 2, min_available=1, pod_spec=one_cpu()),
    ]
    group = a_scaling_group_template("g", ["member"], 2)
    return a_set("web", *cliques, groups=[group], update="OnDelete")


async def until_told(stage: Stage, *cliques: str) -> None:
    """Waits until the changed template has reached PodCliques, and all has been seen."""

    async def is_told() -> bool:
        pcs = await stage.set("web")
        found = [await stage.clique(name) for name in cliques]
        is_seen = pcs.status.observed_generation == pcs.metadata.generation
        return is_seen and all(
            clique.spec.pod_spec["containers"][0]["image"] != "none"
            and clique.status.observed_generation == clique.metadata.generation
            for clique in found
        )

    await stage.until(is_told, "the template to reach the cliques")
