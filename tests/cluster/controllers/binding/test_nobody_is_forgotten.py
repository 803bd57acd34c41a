"""Whatever happens in whatever order: once all is still, no pod waits that has a place."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.api.core import Node, Pod
from shoal.cluster.controllers.binding.controller import Binding
from shoal.cluster.controllers.binding.filters import reasons_against
from shoal.kube import Change, Manager
from tests.cluster.controllers.binding.builders import a_pending_pod, a_worker, away_from, near_to, on_nodes
from tests.support.network.scripted import ScriptedTransport

ZONE = "zone"
PINNED = on_nodes(fields=[{"key": "metadata.name", "operator": "In", "values": ["n0"]}])
SPREAD = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "x"}},
}
AVOIDING = {"requests": {"gpu": "1"}, "affinity": away_from(ZONE, app="x"), "labels": {"app": "x"}}
KINDS: list[dict[str, Any]] = [
    {"requests": {"gpu": "1"}},
    {"requests": {"gpu": "2", "cpu": "2"}},
    AVOIDING,
    {"requests": {"cpu": "1"}, "labels": {"app": "x"}},
    {"requests": {"gpu": "1"}, "affinity": PINNED},
    {"requests": {"cpu": "1"}, "affinity": PINNED | away_from(ZONE, app="x"), "labels": {"app": "x"}},
    {"requests": {"cpu": "1"}, "affinity": near_to(ZONE, app="x")},
    {"requests": {"cpu": "1"}, "topologySpreadConstraints": [SPREAD], "labels": {"app": "x"}},
    {"requests": {"cpu": "3"}, "priority": 9},
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, len(KINDS) - 1)),
        st.tuples(st.just("gone"), st.integers(0, 20)),
        st.tuples(st.just("node"), st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 2), st.booleans())),
        st.tuples(st.just("lose"), st.integers(0, 3)),
        st.tuples(st.just("still"), st.none()),
    ),
    max_size=30,
)


class World:
    """A binder that is told what happens, and whose binds succeed at once."""

    def __init__(self) -> None:
        manager = Manager(ScriptedTransport.of(), name="controllers")
        manager.client.bind = self._bind  # type: ignore[method-assign]
        manager.client.strategic_patch = _ignored  # type: ignore[method-assign]
        self.binding = Binding(manager, ["default-scheduler"])
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}

    def pod(self, name: str, **kind: Any) -> None:
        made = a_pending_pod(name, schedulerName="default-scheduler", **kind)
        self.pods[name] = made
        self.binding._on_pod(Change(None, made))

    def gone(self, number: int) -> None:
        if self.pods:
            pod = self.pods.pop(sorted(self.pods)[number % len(self.pods)])
            self.binding._on_pod(Change(pod, None))

    def node(self, number: int, zone: int, gpus: int, closed: bool) -> None:
        name = f"n{number}"
        node = a_worker(name, labels={ZONE: f"z{zone}"}, gpu=str(gpus), unschedulable=closed)
        before, self.nodes[name] = self.nodes.get(name), node
        self.binding._on_node(Change(before, node))

    def lose(self, number: int) -> None:
        node = self.nodes.pop(f"n{number}", None)
        if node is not None:
            self.binding._on_node(Change(node, None))

    async def still(self) -> None:
        quiet = 0
        while quiet < 5:
            await asyncio.sleep(0)
            binding = self.binding
            busy = binding._waiting.first() is not None or binding._something.is_set() or not binding._errands.empty()
            quiet = 0 if busy or binding._assumed else quiet + 1

    def check(self) -> None:
        picture = self.binding._picture
        for entry in self.binding._waiting._entries.values():
            by_peers = picture.reason_by_peers(entry.load)
            for state in picture.nodes:
                reasons = reasons_against(entry.load, state, by_peers=by_peers, by_volumes=lambda state: "")
                assert reasons, f"{entry.pod.metadata.name} fits on {state.name}, and sleeps"

    async def _bind(
        self, pods: Any, name: str, namespace: str, *, node: str, uid: str = "", annotations: Any = None
    ) -> None:
        pod = self.pods.get(name)
        if pod is not None:
            bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
            self.pods[name] = bound
            self.binding._on_pod(Change(pod, bound))


async def _ignored(*given: Any, **chosen: Any) -> Any:
    return None


@settings(max_examples=200, deadline=None)
@given(steps=STEPS)
def test_no_pod_waits_that_has_a_place(steps: list[tuple[str, Any]]) -> None:
    asyncio.run(_happens(steps))


def test_who_leaves_a_closed_node_helps_those_who_keep_away_from_its_zone() -> None:
    avoiding, same_zone = KINDS.index(AVOIDING), 0
    steps: list[tuple[str, Any]] = [
        ("node", (1, same_zone, 1, False)),
        ("pod", avoiding),
        ("still", None),
        ("node", (1, same_zone, 1, True)),
        ("node", (0, same_zone, 1, False)),
        ("pod", avoiding),
        ("still", None),
        ("gone", 0),
    ]
    asyncio.run(_happens(steps))


async def _happens(steps: list[tuple[str, Any]]) -> None:
    world = World()
    running = asyncio.create_task(world.binding.run())
    for number, (step, what) in enumerate([*steps, ("still", None)]):
        match step:
            case "pod":
                world.pod(f"p{number:02}", **KINDS[what])
            case "gone":
                world.gone(what)
            case "node":
                world.node(*what)
            case "lose":
                world.lose(what)
            case _:
                await world.still()
                world.check()
    running.cancel()
    await asyncio.wait([running])
