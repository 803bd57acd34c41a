"""Whatever happens: no node is given more than it has, and every search finds a node where there is one."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.api.core import Pod
from tests.cluster.controllers.binding.builders import Scheduler, a_pending_pod, a_worker

SIZES = st.sampled_from([("500m", "1"), ("1", "2"), ("2", "0"), ("3", "1")])
NODES = st.sampled_from([("4", "4"), ("2", "8"), ("8", "0")])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("place"), SIZES),
        st.tuples(st.just("remove"), st.integers(0, 30)),
        st.tuples(st.just("node"), st.tuples(st.integers(0, 3), NODES)),
        st.tuples(st.just("lose"), st.integers(0, 3)),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, heaps=st.sampled_from([0, 1, 256]))
def test_nodes_are_never_over_committed_and_room_is_never_missed(steps: list[tuple[str, Any]], heaps: int) -> None:
    scheduler = Scheduler(heaps=heaps)
    capacity: dict[str, Counter[str]] = {}
    sizes: dict[str, Counter[str]] = {}
    pods: list[Pod] = []
    for number, (step, what) in enumerate(steps):
        if step == "place":
            cpu, gpus = what
            size = Counter({"cpu": _milli(cpu), "gpu": int(gpus)})
            pod = a_pending_pod(f"p{number}", requests={"cpu": cpu, "gpu": gpus})
            room = {name for name in capacity if _fits(_free(name, capacity, sizes, scheduler.places), size)}
            sizes[pod.metadata.name] = size
            chosen = scheduler.place(pod)
            assert bool(chosen) == bool(room), scheduler.why(pod)
            assert not chosen or chosen in room
            pods.append(pod)
        elif step == "remove" and pods:
            scheduler.remove(pods.pop(what % len(pods)))
        elif step == "node":
            index, (cpu, gpus) = what
            name = f"n{index}"
            capacity[name] = Counter({"cpu": _milli(cpu), "gpu": int(gpus)})
            scheduler.picture.put_node(a_worker(name, cpu=cpu, gpu=gpus))
        elif step == "lose":
            capacity.pop(f"n{what}", None)
            scheduler.picture.remove_node(f"n{what}")
        carried = Counter(uid for state in set(scheduler.picture.nodes) for uid in state.loads)
        assert set(carried.values()) <= {1}
        assert len(carried) == len(scheduler.places)


def _free(
    node: str, capacity: dict[str, Counter[str]], sizes: dict[str, Counter[str]], places: dict[str, str]
) -> Counter[str]:
    free = Counter(capacity[node])
    for pod, place in places.items():
        if place == node:
            free.subtract(sizes[pod])
    return free


def _fits(free: Counter[str], size: Counter[str]) -> bool:
    return all(amount <= free[name] for name, amount in size.items() if amount)


def _milli(cpu: str) -> int:
    return int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000
