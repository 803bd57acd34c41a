"""Pods on simulated nodes that start after others: who waits, for whom, and what is seen of it."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.core import PODS, Pod
from shoal.cluster.node.simulated.start_order import StartOrder
from shoal.kube import Change
from tests.cluster.node.conftest import Simulation, conditions
from tests.support.builders.pods import a_pod
from tests.support.clusters.in_process import writes_of

NODE = "sim-0-0"


def labels(clique: str, gang: str = "web-0") -> dict[str, str]:
    return {"grove.io/podgang": gang, "grove.io/podclique": clique}


def waiting_for(*parents: str) -> list[dict[str, Any]]:
    return [{"name": "grove-initc", "image": "grove-initc", "args": [f"--podcliques={parent}" for parent in parents]}]


def a_clique_pod(
    name: str, clique: str, *, gang: str = "web-0", is_ready: bool = False, parents: tuple[str, ...] = ()
) -> Pod:
    return a_pod(
        name,
        namespace="default",
        labels=labels(clique, gang),
        init=waiting_for(*parents) if parents else (),
        conditions={"Ready": str(is_ready)},
    )


class Told:
    """A start order that is told of pods, one state after the other, as an informer would tell it."""

    def __init__(self) -> None:
        self.order = StartOrder()
        self._pods: dict[str, Pod] = {}

    def of(self, pod: Pod) -> list[str]:
        """The pods that a change lets start."""
        return self._tell(Change(self._pods.get(pod.metadata.name), pod), pod)

    def gone(self, name: str) -> list[str]:
        pod = self._pods[name]
        return self._tell(Change(pod, None), pod)

    def _tell(self, change: Change[Pod], pod: Pod) -> list[str]:
        self.order.follow(change)
        if change.after is None:
            del self._pods[pod.metadata.name]
        else:
            self._pods[pod.metadata.name] = pod
        return [key.name for key in self.order.released(pod)] if self.order.matters(change) else []


def test_a_pod_is_released_when_the_last_of_its_parents_is_ready() -> None:
    told = Told()
    child = a_clique_pod("child", "web-0-api", parents=("web-0-db:2", "web-0-cache:1"))
    assert told.order.must_wait(child)
    assert told.of(a_clique_pod("db-a", "web-0-db", is_ready=True)) == []
    assert told.of(a_clique_pod("cache", "web-0-cache", is_ready=True)) == []
    assert told.order.must_wait(child)
    assert told.of(a_clique_pod("db-b", "web-0-db")) == []
    assert told.of(a_clique_pod("db-b", "web-0-db", is_ready=True)) == ["child"]
    assert not told.order.must_wait(child)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(a_clique_pod("x", "web-0-db", gang="web-1", is_ready=True), id="of another gang"),
        pytest.param(a_clique_pod("x", "web-0-db-2", is_ready=True), id="of a clique whose name begins alike"),
        pytest.param(a_clique_pod("x", "web-0-db"), id="not ready"),
    ],
)
def test_nobody_else_counts(other: Pod) -> None:
    told = Told()
    child = a_clique_pod("child", "web-0-api", parents=("web-0-db:1",))
    assert told.order.must_wait(child)
    assert told.of(other) == []
    assert told.order.must_wait(child)


def test_a_parent_that_is_no_longer_ready_or_gone_does_not_count() -> None:
    told = Told()
    child = a_clique_pod("child", "web-0-api", parents=("web-0-db:1",))
    told.of(a_clique_pod("db", "web-0-db", is_ready=True))
    assert not told.order.must_wait(child)
    told.of(a_clique_pod("db", "web-0-db"))
    assert told.order.must_wait(child)
    assert told.of(a_clique_pod("db", "web-0-db", is_ready=True)) == ["child"]
    told.gone("db")
    assert told.order.must_wait(child)


def test_pods_that_wait_for_the_same_are_released_together_and_once() -> None:
    told = Told()
    children = [a_clique_pod(f"child-{number}", "web-0-api", parents=("web-0-db:1",)) for number in range(3)]
    later = a_clique_pod("later", "web-0-web", parents=("web-0-api:3",))
    assert all(told.order.must_wait(pod) for pod in [*children, later])
    told.of(children[2])
    told.gone("child-2")
    assert told.of(a_clique_pod("db", "web-0-db", is_ready=True)) == ["child-0", "child-1"]
    assert told.of(a_clique_pod("db-b", "web-0-db", is_ready=True)) == []


def test_arguments_that_cannot_be_understood_hold_nobody() -> None:
    assert not Told().order.must_wait(a_clique_pod("child", "web-0-api", parents=("web-0-db",)))


def test_nothing_is_kept_of_gangs_that_are_gone() -> None:
    told = Told()
    child = a_clique_pod("child", "web-0-api", parents=("web-0-db:2",))
    told.of(child)
    told.of(a_clique_pod("db", "web-0-db", is_ready=True))
    assert told.order.must_wait(child)
    told.gone("child")
    told.gone("db")
    assert vars(told.order) == vars(StartOrder())


async def test_a_pod_stays_in_its_init_phase_until_its_parents_are_ready(simulation: Simulation) -> None:
    async with simulation.running("1x8:H100") as manager:
        await simulation.node(NODE, lambda node: True)
        init = [{"name": "first", "image": "busybox"}, *waiting_for("web-0-db:2")]
        metadata = {"labels": labels("web-0-api")}
        await simulation.add_pod("api", node=NODE, metadata=metadata, initContainers=init)
        held = await simulation.pod("api", lambda pod: bool(pod["status"].get("initContainerStatuses")))
        await simulation.add_pod("db-a", node=NODE, metadata={"labels": labels("web-0-db")})
        await simulation.phase("db-a", "Running")
        # The agent sees changes in their order: once this one runs it has seen that the first parent is ready.
        await simulation.add_pod("later", node=NODE)
        await simulation.phase("later", "Running")
        before = writes_of(manager)
        still = await simulation.pod("api", lambda pod: True)
        await simulation.add_pod("db-b", node=NODE, metadata={"labels": labels("web-0-db")})
        ready = await simulation.pod("api", lambda pod: conditions(pod)["Ready"] == "True")
        assert writes_of(manager) - before == 2, "one write for the parent, and one for the pod that it released"
    first, waits = held["status"]["initContainerStatuses"]
    assert held["status"]["phase"] == "Pending"
    assert conditions(held)["Initialized"] == "False"
    assert first["state"]["terminated"]["reason"] == "Completed"
    assert (list(waits["state"]), waits["ready"]) == (["running"], False)
    assert held["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert held["status"]["podIP"] == ready["status"]["podIP"]
    assert still["metadata"]["resourceVersion"] == held["metadata"]["resourceVersion"]
    ended = ready["status"]["initContainerStatuses"][1]["state"]["terminated"]
    assert (ended["reason"], ended["startedAt"]) == ("Completed", waits["state"]["running"]["startedAt"])
    assert ready["status"]["phase"] == "Running"


async def test_a_chain_of_cliques_starts_in_order(simulation: Simulation) -> None:
    async with simulation.running("1x8:H100"):
        await simulation.node(NODE, lambda node: True)
        chain = ["a", "b", "c"]
        for position in reversed(range(3)):
            init = waiting_for(f"web-0-{chain[position - 1]}:1") if position else []
            metadata = {"labels": labels(f"web-0-{chain[position]}")}
            await simulation.add_pod(
                chain[position], node=NODE, metadata=metadata, initContainers=init, sim={"ready-delay": "1s"}
            )
        pods = [await simulation.pod(name, lambda pod: conditions(pod).get("Ready") == "True") for name in chain]
    moments = [
        next(one["lastTransitionTime"] for one in pod["status"]["conditions"] if one["type"] == "Ready") for pod in pods
    ]
    starts = [pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] for pod in pods]
    assert all(earlier <= later for earlier, later in zip(moments, starts[1:], strict=False)), (moments, starts)
    assert len(set(moments)) == 3


async def test_a_waiting_pod_goes_on_waiting_after_a_restart_of_the_agent(simulation: Simulation) -> None:
    async with simulation.running("1x8:H100"):
        await simulation.node(NODE, lambda node: True)
        await simulation.add_pod("db", node=NODE, metadata={"labels": labels("web-0-db")})
        metadata = {"labels": labels("web-0-api")}
        await simulation.add_pod("api", node=NODE, metadata=metadata, initContainers=waiting_for("web-0-db:2"))
        held = await simulation.pod("api", lambda pod: bool(pod["status"].get("initContainerStatuses")))
    async with simulation.running("1x8:H100"):
        await simulation.add_pod("db-b", node=NODE, metadata={"labels": labels("web-0-db")})
        ready = await simulation.pod("api", lambda pod: conditions(pod)["Ready"] == "True")
    assert conditions(held)["Ready"] == "False"
    assert ready["status"]["phase"] == "Running"


async def test_a_waiting_pod_can_be_deleted(simulation: Simulation) -> None:
    async with simulation.running("1x8:H100"):
        await simulation.node(NODE, lambda node: True)
        metadata = {"labels": labels("web-0-api")}
        await simulation.add_pod("api", node=NODE, metadata=metadata, initContainers=waiting_for("web-0-db:1"))
        await simulation.pod("api", lambda pod: bool(pod["status"].get("initContainerStatuses")))
        await simulation.client.delete(PODS, "api", "default")
        await simulation.gone("api")
