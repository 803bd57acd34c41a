"""The figures of gangs, kept as their pods change."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.core import Node, Pod
from shoal.kube import Change, Key
from shoal.kube.store import key_of
from shoal.scheduler.podgroups.ledger import Ledger, gang_of
from shoal.scheduler.podgroups.use import pod_use
from shoal.scheduler.resource_lists import Amounts, add_to, written
from tests.scheduler.podgroups.builders import FRACTION, a_gang_pod

GANG = Key("default", "gang")
RUNNING = {"phase": "Running"}


class World:
    """Pods and nodes, and a ledger that is told what happens to them."""

    def __init__(self) -> None:
        self.pods: dict[Key, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.ledger = Ledger(self.nodes.get, self.pods.get)

    def put(self, pod: Pod) -> None:
        before = self.pods.get(key_of(pod))
        self.pods[key_of(pod)] = pod
        self.ledger.record(Change(before, pod))

    def drop(self, name: str) -> None:
        before = self.pods.pop(Key("default", name), None)
        if before is not None:
            self.ledger.record(Change(before, None))

    def put_node(self, name: str, memory: str) -> None:
        before = self.nodes.get(name)
        body = {"metadata": {"name": name, "labels": {"nvidia.com/gpu.memory": memory}}}
        self.nodes[name] = msgspec.convert(body, Node)
        self.ledger.record_node(Change(before, self.nodes[name]))

    def allocated(self, gang: Key = GANG) -> dict[str, Any]:
        return written(self.ledger.use_of(gang).allocated)


def test_pods_add_up_and_leave_again() -> None:
    world = World()
    for number in range(3):
        world.put(a_gang_pod(f"p{number}", requests={"cpu": "500m"}, status=RUNNING))
    assert world.allocated() == {"cpu": "1500m"}
    world.put(a_gang_pod("p0", requests={"cpu": "500m"}, phase="Succeeded"))
    world.drop("p1")
    assert world.allocated() == {"cpu": "500m"}
    world.drop("p0")
    world.drop("p2")
    assert world.allocated() == {}
    assert len(world.ledger) == 0


def test_a_pod_that_changes_gangs_takes_its_figures_along() -> None:
    world = World()
    world.put(a_gang_pod(requests={"cpu": "1"}, status=RUNNING))
    world.put(a_gang_pod(requests={"cpu": "1"}, gang="other", status=RUNNING))
    assert world.allocated() == {}
    assert world.allocated(Key("default", "other")) == {"cpu": "1"}


def test_a_pod_of_the_same_name_takes_the_place_of_the_old_one() -> None:
    world = World()
    world.put(a_gang_pod(requests={"cpu": "1"}, status=RUNNING, uid="old"))
    world.put(a_gang_pod(requests={"cpu": "1"}, status=RUNNING, uid="new"))
    assert world.allocated() == {"cpu": "1"}
    world.drop("p")
    assert world.allocated() == {}


def test_memory_of_a_gpu_becomes_a_part_of_a_device_when_the_node_is_known() -> None:
    world = World()
    world.put(a_gang_pod(annotations={"gpu-memory": "4000", **FRACTION}, node="n", status=RUNNING))
    assert world.allocated() == {}
    world.put_node("n", "16000")
    assert world.allocated() == {"nvidia.com/gpu": "250m"}
    assert set(world.ledger.gangs_on("n")) == {GANG}
    world.put_node("n", "8000")
    assert world.allocated() == {"nvidia.com/gpu": "500m"}
    world.drop("p")
    assert world.allocated() == {}
    assert set(world.ledger.gangs_on("n")) == set()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["p1", "p2", "p3"]),
        st.one_of(
            st.none(),
            st.tuples(
                st.sampled_from(["", "gang", "other"]),
                st.sampled_from(["Pending", "Running", "Succeeded"]),
                st.sampled_from(["100m", "2"]),
                st.sampled_from([{}, {"gpu-fraction": "0.35", **FRACTION}, {"gpu-memory": "3000", **FRACTION}]),
                st.sampled_from(["", "n"]),
            ),
        ),
    ),
    max_size=25,
)


@given(STEPS, st.lists(st.sampled_from(["8000", "16000", ""]), min_size=25, max_size=25))
def test_the_figures_are_those_of_the_pods_that_are_there(steps: list[tuple[str, Any]], memories: list[str]) -> None:
    """Whatever happens in whatever order: the same as adding up from scratch."""
    world = World()
    for (name, state), memory in zip(steps, memories, strict=False):
        if state is None:
            world.drop(name)
        else:
            gang, phase, cpu, annotations, node = state
            world.put(a_gang_pod(name, gang, requests={"cpu": cpu}, annotations=annotations, node=node, phase=phase))
        world.put_node("n", memory)
    last = int(memories[len(steps) - 1] or 0) if steps else 0
    for gang in (GANG, Key("default", "other")):
        asked: Amounts = {}
        held: Amounts = {}
        for pod in world.pods.values():
            if gang_of(pod) == gang:
                use = pod_use(pod, last if pod.spec.node_name and last else None)
                add_to(asked, use.requested)
                add_to(held, use.allocated)
        assert world.ledger.use_of(gang).requested == asked
        assert world.ledger.use_of(gang).allocated == held
