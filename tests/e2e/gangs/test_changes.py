"""Changes that replace pods, changes that do not, and deletion in the middle of everything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from shoal.api import rbac
from shoal.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS
from shoal.api.core import SECRETS, SERVICE_ACCOUNTS, SERVICES
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, SCALING_GROUPS
from shoal.api.meta import Document, Resource
from shoal.api.scheduler_grove_io import POD_GANGS
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set
from tests.support.gangs.stage import MADE, Stage, images, of_cliques, one_cpu, uids

PRIORITY_CLASSES = Resource(
    type=Document,
    group="scheduling.k8s.io",
    version="v1",
    kind="PriorityClass",
    plural="priorityclasses",
    namespaced=False,
)
GOES_TOO: tuple[Resource[Any], ...] = (
    SERVICES,
    SECRETS,
    rbac.ROLES,
    rbac.ROLE_BINDINGS,
    HORIZONTAL_POD_AUTOSCALERS,
    *MADE,
)


async def test_a_changed_priority_reaches_the_gang_and_rolls_the_pods(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=4)
    urgent = f"{stage.namespace}-urgent"
    await stage.client.create(PRIORITY_CLASSES, {"metadata": {"name": urgent}, "value": 1000})
    await stage.make(a_set("web", a_clique_template("worker", 2, pod_spec=one_cpu())))
    before = await stage.until_ready("web", 2)
    await stage.change("web", lambda spec: spec["template"].update(priorityClassName=urgent))
    await stage.until_updated("web")
    after = await stage.until_ready("web", 2, without=uids(before))
    assert {(pod.spec.priority_class_name, pod.spec.priority) for pod in after} == {(urgent, 1000)}
    assert (await stage.gang("web-0")).spec.priority_class_name == urgent
    await stage.client.delete(PRIORITY_CLASSES, urgent)


async def test_labels_and_annotations_of_the_set_are_mirrored_on_its_gangs_and_touch_no_pod(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=4)
    await stage.make(a_set("web", metadata={"labels": {"team": "a"}, "annotations": {"note": "first"}}))
    before = await stage.until_ready("web", 2)
    patch = {"metadata": {"labels": {"team": None, "owner": "b"}, "annotations": {"note": "second", "more": "x"}}}
    await stage.client.merge_patch(POD_CLIQUE_SETS.documents(), "web", patch, stage.namespace)

    async def is_mirrored() -> bool:
        metadata = (await stage.gang("web-0")).metadata
        labels = {key: value for key, value in metadata.labels.items() if key in ("team", "owner")}
        notes = {key: value for key, value in metadata.annotations.items() if key in ("note", "more")}
        return (labels, notes) == ({"owner": "b"}, {"note": "second", "more": "x"})

    await stage.until(is_mirrored, "the gang to say the same")
    assert uids(await stage.until_ready("web", 2)) == uids(before)


async def test_labels_of_a_clique_are_on_its_pods_and_roll_them(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=4)
    await stage.make(a_set("web", a_clique_template("worker", 2, pod_spec=one_cpu(), labels={"tier": "one"})))
    before = await stage.until_ready("web", 2)
    assert {pod.metadata.labels["tier"] for pod in before} == {"one"}
    await stage.change("web", lambda spec: spec["template"]["cliques"][0]["labels"].update(tier="two"))
    await stage.until_updated("web")
    after = await stage.until_ready("web", 2, without=uids(before))
    assert {pod.metadata.labels["tier"] for pod in after} == {"two"}


async def test_a_pod_that_has_ended_is_kept_until_somebody_deletes_it(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=4)
    ending = one_cpu(restartPolicy="Never")
    worker = a_clique_template("worker", 2, min_available=1, pod_spec=ending)
    await stage.make(a_set("web", worker))
    before = await stage.until_ready("web", 2)
    await stage.crash(before[0])

    async def has_ended() -> bool:
        return [pod.status.phase for pod in await stage.all_pods("web")] == ["Failed", "Running"]

    await stage.until(has_ended, "a pod to fail")
    await stage.scale(POD_CLIQUES, "web-0-worker", 3)

    async def has_grown() -> bool:
        pods = await stage.all_pods("web")
        return sorted(pod.status.phase for pod in pods) == ["Failed", "Running", "Running"]

    await stage.until(has_grown, "one pod more")
    await stage.lose(before[0])
    after = await stage.until_ready("web", 3, without=uids(before[:1]))
    assert sorted(pod.metadata.labels["grove.io/podclique-pod-index"] for pod in after) == ["0", "1", "2"]


Moment = Callable[[Stage], Awaitable[object]]


async def at_once(stage: Stage) -> None:
    """Nothing was made yet, or some of it."""


async def when_it_runs(stage: Stage) -> None:
    await stage.until_ready("web", 10)


async def in_the_middle_of_an_update(stage: Stage) -> None:
    await when_it_runs(stage)
    await stage.roll("web", "new")

    async def has_begun() -> bool:
        return "new" in images(await stage.pods("web"))

    await stage.until(has_begun, "the update to begin")


async def while_it_is_torn_down(stage: Stage) -> None:
    await when_it_runs(stage)
    before = await stage.pods("web")
    for pod in of_cliques(before, "web-0-worker")[:2]:
        await stage.crash(pod)

    async def has_begun() -> bool:
        return not uids(before) <= uids(await stage.pods("web"))

    await stage.until(has_begun, "the replica to be torn down")


async def while_it_is_scaled(stage: Stage) -> None:
    await when_it_runs(stage)
    await stage.scale(SCALING_GROUPS, "web-0-g", 5)
    await stage.scale(POD_CLIQUES, "web-0-worker", 1)


@pytest.mark.parametrize(
    "moment", [at_once, when_it_runs, in_the_middle_of_an_update, while_it_is_torn_down, while_it_is_scaled]
)
async def test_a_set_that_is_deleted_leaves_nothing_and_may_be_made_again(stage: Stage, moment: Moment) -> None:
    await stage.add_nodes(1, cpu=40)
    body = a_rich_set()
    await stage.make(body)
    await moment(stage)
    before = stage.history.pods().keys()
    await stage.delete("web")
    await stage.until_gone("web")
    for resource in GOES_TOO:
        await stage.until_names(resource, [])
    await stage.until_names(SERVICE_ACCOUNTS, ["default"])

    await stage.make(body)
    again = await stage.until_ready("web", 10)
    assert not uids(again) & before


async def test_a_set_that_is_made_again_before_the_first_is_gone_takes_its_place(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=40)
    await stage.make(a_rich_set())
    before = await stage.until_ready("web", 10)
    await stage.delete("web")

    async def is_free() -> bool:
        return not await stage.names(POD_CLIQUE_SETS)

    await stage.until(is_free, "the name to be free")
    await stage.make(a_rich_set())
    await stage.until_ready("web", 10, without=uids(before))
    assert await stage.names(POD_GANGS) == ["web-0", "web-0-g-0", "web-1", "web-1-g-0"]


def a_rich_set() -> dict[str, Any]:
    """Two replicas, each with three workers, one member in the base gang, and one in a gang of its own."""
    annotations = {"shoal.dev/sim-ready-delay": "100ms"}
    cliques = [
        a_clique_template("worker", 3, min_available=2, pod_spec=one_cpu(), annotations=annotations),
        a_clique_template("member", 1, pod_spec=one_cpu(), annotations=annotations),
    ]
    cliques[0]["spec"]["autoScalingConfig"] = {"minReplicas": 2, "maxReplicas": 5}
    group = a_scaling_group_template("g", ["member"], 2)
    return a_set("web", *cliques, groups=[group], replicas=2, terminationDelay="1s")
