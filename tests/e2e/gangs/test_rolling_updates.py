"""Rolling updates: one replica at a time, one pod at a time, whatever is scaled or changed meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.api.core import Pod, is_ready
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, SCALING_GROUPS, names
from shoal.kube import EventType
from tests.e2e.gangs.conftest import on_both_engines
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set
from tests.support.gangs.stage import Stage, images, of_cliques, of_replica, one_cpu, uids

pytestmark = on_both_engines


async def test_replicas_are_updated_one_after_the_other_and_their_pods_one_by_one(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=9)
    await stage.make(a_set("web", a_slow_clique("leader", 1), a_slow_clique("worker", 3, min_available=2), replicas=2))
    before = await stage.until_ready("web", 8)
    mark = now_in(stage)
    await stage.roll("web", "new")
    done = await stage.until_updated("web")
    after = await stage.until_ready("web", 8, without=uids(before))
    assert set(images(after)) == {"new"}
    progress = done.status.update_progress
    assert progress is not None
    assert (progress.updated_pod_cliques_count, progress.total_pod_cliques_count) == (4, 4)

    leaving = stage.history.first(lambda pod: pod.metadata.is_deleting)
    first, second = (sorted(leaving[uid] for uid in uids(of_replica(before, index))) for index in (0, 1))
    assert first[-1] < second[0]
    assert all(fewest_ready(stage, f"web-{index}-worker", since=mark) == 2 for index in (0, 1))
    # One pod after the other means: each one that goes finds the new one in its predecessor's place ready.
    ready = stage.history.first(is_ready)
    for index in (0, 1):
        gone = sorted(leaving[uid] for uid in uids(of_cliques(before, f"web-{index}-worker")))
        come = sorted(ready[uid] for uid in uids(of_cliques(after, f"web-{index}-worker")))
        assert all(earlier < later for earlier, later in zip(come, gone[1:], strict=False))


async def test_replicas_of_a_scaling_group_are_updated_one_after_the_other(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=9)
    group = a_scaling_group_template("g", ["leader", "worker"], 3, min_available=2)
    await stage.make(a_set("web", a_slow_clique("leader", 1), a_slow_clique("worker", 2), groups=[group]))
    before = await stage.until_ready("web", 9)
    mark = now_in(stage)
    await stage.roll("web", "new", "worker")
    await stage.until_updated("web")
    after = await stage.until_ready("web", 9, without=uids(before))
    assert set(images(of_cliques(after, *(f"web-0-g-{index}-worker" for index in range(3))))) == {"new"}
    leaving = stage.history.first(lambda pod: pod.metadata.is_deleting)
    ready = stage.history.first(is_ready)
    for index in (1, 2):
        mine = [f"web-0-g-{index}-leader", f"web-0-g-{index}-worker"]
        previous = [f"web-0-g-{index - 1}-leader", f"web-0-g-{index - 1}-worker"]
        assert max(ready[uid] for uid in uids(of_cliques(after, *previous))) < min(
            leaving[uid] for uid in uids(of_cliques(before, *mine))
        )
    assert mark < min(leaving.values())


async def test_a_clique_with_one_pod_is_updated_though_nothing_can_stand_in_for_it(stage: Stage) -> None:
    await stage.add_nodes(1)
    await stage.make(a_set("web", a_clique_template("worker", 1, pod_spec=one_cpu())))
    before = await stage.until_ready("web", 1)
    await stage.roll("web", "new")
    await stage.until_updated("web")
    assert images(await stage.until_ready("web", 1, without=uids(before))) == ["new"]


async def test_replicas_that_are_added_in_the_middle_are_born_new(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=12)
    await a_running_set(stage, replicas=2)
    await stage.roll("web", "new")
    await until_in_the_middle(stage, "new")
    await stage.scale(POD_CLIQUE_SETS, "web", 4)
    await stage.until_updated("web")
    after = await stage.until_ready("web", 12)
    assert set(images(after)) == {"new"}
    ever = [pod for pod in stage.history.pods().values() if of_replica([pod], 2) or of_replica([pod], 3)]
    assert len(ever) == 6
    assert set(images(ever)) == {"new"}


async def test_replicas_that_are_removed_in_the_middle_do_not_hold_up_the_rest(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=9)
    await a_running_set(stage, replicas=3)
    await stage.roll("web", "new")
    await until_in_the_middle(stage, "new")
    await stage.scale(POD_CLIQUE_SETS, "web", 1)
    done = await stage.until_updated("web")
    assert done.status.update_progress is not None
    assert not done.status.update_progress.currently_updating
    assert set(images(await stage.until_ready("web", 3))) == {"new"}


async def test_cliques_are_scaled_out_and_in_in_the_middle(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=12)
    await a_running_set(stage, replicas=2)
    await stage.roll("web", "new")
    await until_in_the_middle(stage, "new")
    await stage.scale(POD_CLIQUES, "web-0-worker", 4)
    await stage.scale(POD_CLIQUES, "web-1-worker", 2)
    await stage.until_updated("web")
    after = await stage.until_ready("web", 6)
    assert [len(of_replica(after, index)) for index in (0, 1)] == [4, 2]
    assert set(images(after)) == {"new"}
    assert (await stage.clique("web-0-worker")).spec.replicas == 4
    assert (await stage.clique("web-1-worker")).spec.replicas == 2


async def test_scaling_groups_are_scaled_out_and_in_in_the_middle(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=12)
    group = a_scaling_group_template("g", ["worker"], 3)
    await stage.make(a_set("web", a_slow_clique("worker", 1), groups=[group], replicas=2))
    await stage.until_ready("web", 6)
    await stage.roll("web", "new")
    await until_in_the_middle(stage, "new")
    await stage.scale(SCALING_GROUPS, "web-0-g", 5)
    await stage.scale(SCALING_GROUPS, "web-1-g", 1)
    await stage.until_updated("web")
    after = await stage.until_ready("web", 6)
    assert [len(of_replica(after, index)) for index in (0, 1)] == [5, 1]
    assert set(images(after)) == {"new"}
    born = [pod for pod in stage.history.pods().values() if of_cliques([pod], "web-0-g-3-worker", "web-0-g-4-worker")]
    assert images(born) == ["new", "new"]


async def test_a_second_update_in_the_middle_of_the_first_arrives(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=10)
    group = a_scaling_group_template("g", ["member"], 2)
    await stage.make(a_set("web", a_slow_clique("worker", 3), a_slow_clique("member", 1), groups=[group], replicas=2))
    before = await stage.until_ready("web", 10)
    await stage.roll("web", "second")
    await until_in_the_middle(stage, "second")
    await stage.roll("web", "third")
    await stage.until_updated("web")
    after = await stage.until_ready("web", 10, without=uids(before))
    assert set(images(after)) == {"third"}


async def test_an_update_that_is_taken_back_in_the_middle_leaves_what_it_has_not_touched(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=9)
    await a_running_set(stage, replicas=3)
    before = await stage.pods("web")
    await stage.roll("web", "new")
    await until_in_the_middle(stage, "new")
    await stage.roll("web", "none")
    await stage.until_updated("web")
    after = await stage.until_ready("web", 9)
    assert set(images(after)) == {"none"}
    assert uids(of_replica(after, 2)) == uids(of_replica(before, 2))


async def test_pods_that_wait_for_room_are_replaced_at_once_and_hold_up_nobody(stage: Stage) -> None:
    await stage.add_nodes(3)
    await stage.make(a_set("web", a_slow_clique("worker", 3), replicas=2))
    waiting = await stage.until_waiting("web", 3)

    async def is_told() -> bool:
        cliques = [await stage.clique(f"web-{index}-worker") for index in (0, 1)]
        return 3 in [clique.status.ready_replicas for clique in cliques]

    await stage.until(is_told, "one replica to run")
    await stage.roll("web", "new")

    async def is_over() -> bool:
        pods = await stage.all_pods("web")
        progress = (await stage.set("web")).status.update_progress
        is_ended = progress is not None and progress.update_ended_at is not None
        is_new = images(pods) == ["new"] * 6 and sum(map(is_ready, pods)) == 3
        return is_ended and is_new and stage.history.shows(pods)

    await stage.until(is_over, "both replicas to be of the new template")
    leaving = stage.history.first(lambda pod: pod.metadata.is_deleting)
    assert max(leaving[uid] for uid in uids(waiting)) < min(leaving[uid] for uid in leaving.keys() - uids(waiting))
    still = await stage.until_waiting("web", 3)
    await stage.add_nodes(3)
    assert uids(await stage.until_ready("web", 6)) > uids(still)


async def test_an_update_of_one_clique_leaves_the_pods_of_others(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=4)
    await stage.make(a_set("web", a_slow_clique("leader", 1), a_slow_clique("worker", 2)))
    before = await stage.until_ready("web", 3)
    await stage.roll("web", "new", "worker")
    await stage.until_updated("web")
    after = await stage.until_ready("web", 3, without=uids(of_cliques(before, "web-0-worker")))
    assert uids(of_cliques(after, "web-0-leader")) == uids(of_cliques(before, "web-0-leader"))


async def a_running_set(stage: Stage, *, replicas: int) -> None:
    """A set whose replicas have three pods each, ready one after the other so that an update takes a while."""
    await stage.make(a_set("web", a_slow_clique("worker", 3, min_available=2), replicas=replicas))
    await stage.until_ready("web", 3 * replicas)


def a_slow_clique(name: str, replicas: int, **more: Any) -> dict[str, Any]:
    annotations = {"shoal.dev/sim-ready-delay": "150ms"}
    return a_clique_template(name, replicas, pod_spec=one_cpu(), annotations=annotations, **more)


async def until_in_the_middle(stage: Stage, image: str) -> None:
    """Waits until there is a pod of the new template, and still one of another."""

    async def is_between() -> bool:
        found = set(images(await stage.pods("web")))
        assert found != {image}, "the update was over before it was looked at"
        return image in found

    await stage.until(is_between, "the update to begin")


def now_in(stage: Stage) -> int:
    return max(moment.version for moment in stage.history.moments)


def fewest_ready(stage: Stage, clique: str, *, since: int) -> int:
    """The smallest number of ready pods that a clique had at any moment since then, those on their way out aside."""
    pods: dict[str, Pod] = {}
    fewest = 1 << 30
    for moment in stage.history.ordered():
        pod = moment.object
        if not isinstance(pod, Pod) or pod.metadata.labels.get(names.CLIQUE_LABEL) != clique:
            continue
        pods[pod.metadata.uid] = pod
        if moment.type is EventType.DELETED:
            del pods[pod.metadata.uid]
        if moment.version > since:
            fewest = min(fewest, ready_and_staying(pods.values()))
    return fewest


def ready_and_staying(pods: Iterable[Pod]) -> int:
    return sum(is_ready(pod) and not pod.metadata.is_deleting for pod in pods)
