"""Pods on simulated nodes, on the embedded server: their lives, deletions and restarts of the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shoal.api.core import EVENTS, PODS
from shoal.cluster.node.simulated.nodes import LEASE_NAMESPACE
from shoal.kube import Manager
from shoal.kube.leases import LEASES
from tests.cluster.node.conftest import Simulation, conditions
from tests.support.clusters.client import until
from tests.support.clusters.in_process import writes_of
from tests.support.waiting.at_rest import at_rest

NODE = "sim-0-0"


@asynccontextmanager
async def one_node(simulation: Simulation) -> AsyncIterator[Manager]:
    """The agent with one node; its first writes are made."""
    async with simulation.running("1x8:H100") as manager:
        await simulation.node(NODE, lambda node: conditions(node).get("Ready") == "True")
        await until(lambda: simulation.cluster.read(LEASES, "shoal-simulated", LEASE_NAMESPACE))
        await at_rest(manager)
        yield manager


async def _states(simulation: Simulation, name: str) -> list[dict[str, Any]]:
    """Every state of a pod, until it has finished."""
    seen = []
    events = simulation.client.watch(PODS.documents(), "default", field_selector=f"metadata.name={name}")
    async for event in events:
        if event.object is not None:
            seen.append(event.object.content)
            if seen[-1].get("status", {}).get("phase") in ("Succeeded", "Failed"):
                break
    return seen


async def test_a_pod_without_delays_is_ready_after_one_write(simulation: Simulation) -> None:
    async with one_node(simulation) as manager:
        before = writes_of(manager)
        await simulation.add_pod("web", node=NODE)
        pod = await simulation.phase("web", "Running")
        await at_rest(manager)
        assert writes_of(manager) - before == 1
    status = pod["status"]
    kinds = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
    assert [one["type"] for one in status["conditions"]] == kinds
    assert conditions(pod) == dict.fromkeys(kinds, "True")
    assert (status["observedGeneration"], {one["observedGeneration"] for one in status["conditions"]}) == (1, {1})
    [main] = status["containerStatuses"]
    assert (main["ready"], main["started"], main["restartCount"], main["lastState"]) == (True, True, 0, {})
    assert main["containerID"].startswith("simulated://")
    assert "@sha256:" in main["imageID"]
    assert (status["podIPs"], status["hostIPs"]) == ([{"ip": status["podIP"]}], [{"ip": status["hostIP"]}])
    assert status["qosClass"] == "BestEffort"


async def test_a_pod_waits_runs_is_ready_and_succeeds_at_its_times(simulation: Simulation) -> None:
    sim = {"start-delay": "300ms", "ready-delay": "300ms", "run-time": "800ms"}
    async with one_node(simulation):
        # Watched, since each state may be over before somebody looks.
        seen = asyncio.create_task(_states(simulation, "job"))
        await simulation.add_pod("job", node=NODE, sim=sim, restartPolicy="Never")
        async with asyncio.timeout(20):
            waiting, running, ready, done = [pod for pod in await seen if "startTime" in pod["status"]]
    assert waiting["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert "podIP" not in waiting["status"]
    phases = [pod["status"]["phase"] for pod in (waiting, running, ready, done)]
    assert phases == ["Pending", "Running", "Running", "Succeeded"]
    assert [conditions(pod)["Ready"] for pod in (running, ready)] == ["False", "True"]
    assert conditions(done) == {
        "PodReadyToStartContainers": "False",
        "Initialized": "True",
        "Ready": "False",
        "ContainersReady": "False",
        "PodScheduled": "True",
    }
    ended = done["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")


@pytest.mark.parametrize(
    ("sim", "expected"),
    [
        ({"outcome": "Failed"}, (1, "Error", None)),
        ({"outcome": "Failed", "exit-code": "3"}, (3, "Error", None)),
        ({"exit-code": "4"}, (4, "Error", None)),
        ({"outcome": "OOMKilled"}, (137, "OOMKilled", None)),
        ({"outcome": "Evicted"}, (143, "Error", "Evicted")),
        ({"fail-first": "1"}, (1, "Error", None)),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, dict) else "",
)
async def test_a_pod_fails_as_it_is_told(
    simulation: Simulation, sim: dict[str, str], expected: tuple[int, str, str | None]
) -> None:
    async with one_node(simulation):
        await simulation.add_pod("job", node=NODE, sim={"run-time": "0s", **sim}, restartPolicy="Never")
        status = (await simulation.phase("job", "Failed"))["status"]
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], status.get("reason")) == expected


async def test_what_fails_first_is_restarted_in_place_and_then_succeeds(simulation: Simulation) -> None:
    sim = {"run-time": "100ms", "fail-first": "1", "exit-code": "7"}
    async with one_node(simulation):
        await simulation.add_pod("job", node=NODE, sim=sim, restartPolicy="OnFailure")
        [main] = (await simulation.phase("job", "Succeeded"))["status"]["containerStatuses"]
    assert main["restartCount"] == 1
    assert main["lastState"]["terminated"]["exitCode"] == 7
    assert main["lastState"]["terminated"]["containerID"] != main["containerID"]
    assert main["state"]["terminated"]["exitCode"] == 0


async def test_the_pods_that_failed_before_in_the_same_job_count_as_attempts(simulation: Simulation) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-1", "controller": True}
    chosen: dict[str, Any] = {
        "node": NODE,
        "sim": {"run-time": "0s", "fail-first": "1"},
        "restartPolicy": "Never",
        "metadata": {"ownerReferences": [owner]},
    }
    async with one_node(simulation):
        await simulation.add_pod("train-a", **chosen)
        await simulation.phase("train-a", "Failed")
        await simulation.add_pod("train-b", **chosen)
        await simulation.phase("train-b", "Succeeded")


async def test_init_containers_are_done_and_sidecars_end_with_the_pod(simulation: Simulation) -> None:
    init = [
        {"name": "prepare", "image": "busybox"},
        {"name": "proxy", "image": "envoy", "restartPolicy": "Always"},
    ]
    async with one_node(simulation):
        await simulation.add_pod("job", node=NODE, sim={"run-time": "1s"}, restartPolicy="Never", initContainers=init)
        running = (await simulation.phase("job", "Running"))["status"]["initContainerStatuses"]
        done = (await simulation.phase("job", "Succeeded"))["status"]["initContainerStatuses"]
    assert running[0]["state"]["terminated"]["exitCode"] == 0
    assert (running[0]["ready"], running[1]["ready"], running[1]["started"]) == (True, True, True)
    assert "running" in running[1]["state"]
    assert "terminated" in done[1]["state"]


async def test_a_readiness_gate_holds_back_and_is_followed(simulation: Simulation) -> None:
    async with one_node(simulation):
        await simulation.add_pod("web", node=NODE, readinessGates=[{"conditionType": "example.com/open"}])
        pod = await simulation.phase("web", "Running")
        assert (conditions(pod)["Ready"], conditions(pod)["ContainersReady"]) == ("False", "True")
        opened = {"status": {"conditions": [{"type": "example.com/open", "status": "True"}]}}
        await simulation.client.strategic_patch(PODS, "web", opened, "default", subresource="status")
        pod = await simulation.pod("web", lambda found: conditions(found)["Ready"] == "True")
    assert conditions(pod)["example.com/open"] == "True"


async def test_a_pod_past_its_deadline_fails(simulation: Simulation) -> None:
    async with one_node(simulation):
        await simulation.add_pod("slow", node=NODE, sim={"run-time": "1h"}, activeDeadlineSeconds=1)
        status = (await simulation.phase("slow", "Failed"))["status"]
    assert (status["reason"], status["containerStatuses"][0]["state"]["terminated"]["exitCode"]) == (
        "DeadlineExceeded",
        143,
    )


async def test_a_deleted_pod_goes_with_one_request_and_its_address_with_it(simulation: Simulation) -> None:
    async with one_node(simulation) as manager:
        await simulation.add_pod("a", node=NODE)
        first = (await simulation.phase("a", "Running"))["status"]["podIP"]
        before = writes_of(manager)
        await simulation.client.delete(PODS, "a", "default")
        await simulation.gone("a")
        assert writes_of(manager) - before == 1
        await simulation.add_pod("b", node=NODE)
        assert (await simulation.phase("b", "Running"))["status"]["podIP"] != first  # it is given again late


async def test_a_pod_with_a_finalizer_shows_its_end_and_stays(simulation: Simulation) -> None:
    async with one_node(simulation) as manager:
        await simulation.add_pod("held", node=NODE, metadata={"finalizers": ["example.com/hold"]})
        await simulation.phase("held", "Running")
        before = writes_of(manager)
        await simulation.client.delete(PODS, "held", "default")
        pod = await simulation.pod("held", lambda found: found["metadata"].get("deletionGracePeriodSeconds") == 0)
        assert pod["status"]["phase"] == "Failed"
        assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
        await simulation.client.merge_patch(PODS, "held", {"metadata": {"finalizers": None}}, "default")
        await simulation.gone("held")
        assert writes_of(manager) - before <= 3  # its end, its deletion, and perhaps a renewal of the nodes' lease


async def test_a_pod_takes_its_time_to_stop_where_it_is_told_so(simulation: Simulation) -> None:
    async with one_node(simulation):
        await simulation.add_pod("slow", node=NODE, sim={"stop-time": "1h"}, terminationGracePeriodSeconds=1)
        await simulation.phase("slow", "Running")
        began = asyncio.get_running_loop().time()
        await simulation.client.delete(PODS, "slow", "default")
        assert (await simulation.phase("slow", "Running"))["metadata"]["deletionTimestamp"]
        await simulation.gone("slow")
        assert asyncio.get_running_loop().time() - began < 5


async def test_a_process_that_was_stopped_goes_on_and_runs_nothing_twice(simulation: Simulation) -> None:
    async with one_node(simulation):
        await simulation.add_pod("job", node=NODE, sim={"run-time": "1s"}, restartPolicy="Never")
        await simulation.add_pod("web", node=NODE)
        started = (await simulation.phase("job", "Running"))["status"]
        web = (await simulation.phase("web", "Running"))["status"]
    await asyncio.sleep(0.5)
    async with simulation.running("1x8:H100"):
        await simulation.add_pod("new", node=NODE)
        done = (await simulation.phase("job", "Succeeded"))["status"]
        new = (await simulation.phase("new", "Running"))["status"]
        still = (await simulation.phase("web", "Running"))["status"]
    [before], [after] = started["containerStatuses"], done["containerStatuses"]
    assert (after["restartCount"], after["containerID"]) == (0, before["containerID"])
    assert after["state"]["terminated"]["startedAt"] == before["state"]["running"]["startedAt"]
    assert still == web
    assert len({started["podIP"], web["podIP"], new["podIP"]}) == 3


async def test_an_annotation_that_does_not_parse_is_told_once_and_ignored(simulation: Simulation) -> None:
    async with one_node(simulation):
        await simulation.add_pod("odd", node=NODE, sim={"start-delay": "soon"})
        await simulation.phase("odd", "Running")
        [event] = await until(lambda: simulation.cluster.all(EVENTS))
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "InvalidAnnotation", 1)
    assert "shoal.dev/sim-start-delay" in event["message"]


async def test_a_pod_in_the_hosts_network_has_the_nodes_address(simulation: Simulation) -> None:
    async with one_node(simulation):
        await simulation.add_pod("host", node=NODE, hostNetwork=True)
        status = (await simulation.phase("host", "Running"))["status"]
    assert status["podIP"] == status["hostIP"]


async def test_a_ready_condition_that_was_taken_away_is_set_again(simulation: Simulation) -> None:
    async with one_node(simulation):
        await simulation.add_pod("web", node=NODE)
        await simulation.phase("web", "Running")
        taken = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        await simulation.client.strategic_patch(PODS, "web", taken, "default", subresource="status")
        await simulation.pod("web", lambda found: conditions(found)["Ready"] == "True")
