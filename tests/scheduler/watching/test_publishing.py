"""The view that a cycle publishes: where those that wait stand in line, and which device a shared GPU is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shoal.api import kai_names as names
from shoal.api.core import PODS
from shoal.api.visualizer import ClusterView, JobView
from shoal.scheduler.actions import cycle
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.settings import ACTIONS, Settings
from shoal.scheduler.watching.cycles import Outcome
from shoal.scheduler.watching.mirror import Mirror
from shoal.scheduler.watching.publishing import Publishing
from tests.scheduler.builders import kai_pod_manifest
from tests.scheduler.test_everything import scheduled
from tests.scheduler.watching.worlds import MOMENT, World, a_gpu_node, a_group, a_mirrored_pod
from tests.support.builders.queues import a_queue
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster


class Stage:
    """Jobs of one pod with four GPUs each, and a view after every cycle."""

    def __init__(self, *, most_counted: int = 1000, **queues: str) -> None:
        """``queues``: of each job, by its name."""
        self.world = World(
            pods={name: a_mirrored_pod(name, group=name, requests={names.NVIDIA_GPU: "4"}) for name in queues},
            nodes={"n0": a_gpu_node("n0", gpus=4)},
            queues={name: a_queue(name, quota=4) for name in set(queues.values())},
            groups={name: a_group(name, queue=queue) for name, queue in queues.items()},
        )
        self.mirror: Mirror = self.world.mirror(MOMENT)
        self.views: list[ClusterView] = []
        self._publishing = Publishing(self.mirror, self.views.append, most_counted=most_counted)

    def cycle(self, settings: Settings = Settings()) -> dict[str, JobView]:
        """What a cycle shows of jobs, by name."""
        mirror = self.mirror
        mirror.catch_up(MOMENT)
        changed_jobs, mirror.changed_jobs = mirror.changed_jobs, set()
        changed_nodes, mirror.changed_nodes = mirror.changed_nodes, set()
        session = Session(
            mirror.cluster, settings, now=MOMENT, filters=mirror.filters, pods=mirror.pods, shares=mirror.shares
        )
        pools = cycle.run(session, ACTIONS)
        number = len(self.views) + 1
        self._publishing.after(
            Outcome(number, MOMENT, 0, session, pools, changed_jobs=changed_jobs, changed_nodes=changed_nodes)
        )
        session.close()
        return {job.name: job for job in self.views[-1].jobs["default"].values()}

    def show(self, name: str, **life: Any) -> None:
        """A pod is somewhere else in its life."""
        self.world.pods[name] = a_mirrored_pod(name, group=name, requests={names.NVIDIA_GPU: "4"}, **life)
        self.world.tell(self.mirror, "pods", name)


def line(jobs: dict[str, JobView]) -> dict[str, tuple[int | None, int | None]]:
    """Where everybody stands: in the queue, among all."""
    return {name: (job.position, job.overall) for name, job in sorted(jobs.items())}


def test_those_that_wait_are_shown_with_their_places() -> None:
    stage = Stage(a0="a", a1="a", a2="a", b0="b")
    stage.show("a0", phase="Running", node="n0")

    shown = line(stage.cycle())

    assert shown["a0"] == (None, None), "it runs"
    assert [shown[name][0] for name in ("a1", "a2", "b0")] == [1, 2, 1]
    assert sorted(shown[name][1] or 0 for name in ("a1", "a2", "b0")) == [1, 2, 3]
    assert shown["b0"][1] == 1, "its queue has nothing"


def test_who_moves_up_is_shown_anew_though_nothing_else_of_it_changed() -> None:
    stage = Stage(a0="a", a1="a", a2="a")
    stage.show("a0", phase="Running", node="n0")
    # Of the queue only the first is tried: nothing is to be told of the last but its place.
    first = stage.cycle(Settings(queue_depths=dict.fromkeys(ACTIONS, 1)))
    assert (first["a1"].position, first["a2"].position) == (1, 2)
    stage.world.pods.pop("a1")
    stage.world.tell(stage.mirror, "pods", "a1")

    second = stage.cycle(Settings(queue_depths=dict.fromkeys(ACTIONS, 1)))

    assert (second["a1"].position, second["a2"].position) == (None, 1)


def test_who_got_a_place_in_this_cycle_stands_in_no_line() -> None:
    stage = Stage(a0="a", a1="a")
    shown = line(stage.cycle())
    assert shown == {"a0": (None, None), "a1": (1, 1)}


def test_among_all_only_so_many_are_counted() -> None:
    stage = Stage(most_counted=2, a0="a", a1="a", a2="a", a3="a")
    stage.show("a0", phase="Running", node="n0")
    assert list(line(stage.cycle()).values()) == [(None, None), (1, 1), (2, 2), (3, None)]


async def test_a_shared_gpu_is_shown_as_the_device_that_its_reservation_holds(cluster: Cluster, tmp_path: Path) -> None:
    views: list[ClusterView] = []
    async with scheduled(cluster, tmp_path, "1x2:H100", publish=views.append):
        for name in ("left", "right"):
            fraction = {names.GPU_FRACTION: "0.6"}
            await cluster.client.create(PODS, kai_pod_manifest(name, annotations=fraction), "default")

        async def are_shown() -> bool:
            shared = views[-1].nodes["sim-0-0"].shared_gpus if views and "sim-0-0" in views[-1].nodes else ()
            return len(shared) == 2 and {one.index for one in shared} == {0, 1}

        await until(are_shown)
        reservations = await cluster.all(PODS, names.RESERVATION_NAMESPACE)
        told = {
            one["metadata"]["labels"][names.GPU_GROUP]: int(one["metadata"]["annotations"][names.RESERVED_GPU_INDEX])
            for one in reservations
        }
        assert {one.group: one.index for one in views[-1].nodes["sim-0-0"].shared_gpus} == told
