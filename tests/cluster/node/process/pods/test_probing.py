"""Probes of pods that really run: what makes them ready, what ends them, and what is told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.node.process.pods.conftest import Machine, conditions, state

Spec = dict[str, Any]
SERVER = {"image": "python:3.12", "command": ["python3", "-m", "http.server", "8080"], "workingDir": "/etc"}
PORTS = {"ports": [{"name": "web", "containerPort": 8080}]}


def is_ready(pod: Spec) -> bool:
    return conditions(pod).get("Ready") == "True"


@pytest.mark.parametrize(
    "probe",
    [
        {"httpGet": {"port": "web", "path": "/hostname"}},
        {"tcpSocket": {"port": 8080}},
        {"exec": {"command": ["sh", "-c", "test -e /etc/hosts"]}},
    ],
    ids=["httpGet", "tcpSocket", "exec"],
)
async def test_a_container_is_ready_when_its_probe_says_so(machine: Machine, probe: Spec) -> None:
    async with machine.agent():
        await machine.add("web", container={**SERVER, **PORTS, "readinessProbe": probe})
        pod = await machine.pod("web", is_ready)
    assert state(pod)["ready"]


async def test_a_container_that_does_not_answer_is_not_ready_and_that_is_told(machine: Machine) -> None:
    async with machine.agent():
        probes = {"readinessProbe": {"httpGet": {"port": 8080, "path": "/missing"}, "periodSeconds": 1}}
        await machine.add("web", container={**SERVER, **probes})
        pod = await machine.phase("web", "Running")
        assert (state(pod)["ready"], state(pod)["started"]) == (False, True)
        message = await machine.told("web", "Unhealthy")
        assert message.startswith("Readiness probe failed: ")
        await machine.add("shut", container={"readinessProbe": {"tcpSocket": {"port": 9}}})
        pod = await machine.phase("shut", "Running")
        refused = f"dial tcp {pod['status']['podIP']}:9: connect: connection refused"
        assert await machine.told("shut", "Unhealthy") == f"Readiness probe failed: {refused}"


async def test_a_container_becomes_unready_and_ready_again(machine: Machine) -> None:
    probe = {"exec": {"command": ["test", "-e", "/v/well"]}, "periodSeconds": 1, "failureThreshold": 1}
    main = {"readinessProbe": probe, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    async with machine.agent():
        await machine.add("web", "touch /v/well; sleep 1000", container=main, volumes=[{"name": "v", "emptyDir": {}}])
        pod = await machine.pod("web", is_ready)
        file = machine.layout.volume(pod["metadata"]["uid"], "v") / "well"
        file.unlink()
        await machine.pod("web", lambda pod: not is_ready(pod))
        file.touch()
        pod = await machine.pod("web", is_ready)
        assert state(pod)["restartCount"] == 0


async def test_a_container_that_is_not_alive_is_restarted(machine: Machine) -> None:
    probe = {"exec": {"command": ["sh", "-c", "echo very ill; exit 1"]}, "periodSeconds": 1, "failureThreshold": 1}
    async with machine.agent():
        await machine.add("web", "exec sleep 1000", container={"livenessProbe": probe})
        pod = await machine.pod("web", lambda pod: state(pod)["restartCount"] == 1)
        assert state(pod)["lastState"]["terminated"]["exitCode"] == 143
        assert await machine.told("web", "Unhealthy") == "Liveness probe failed: very ill\n"
        assert await machine.told("web", "Killing") == "Container main failed liveness probe, will be restarted"


async def test_a_command_that_takes_too_long_has_failed(machine: Machine) -> None:
    probe = {"exec": {"command": ["sleep", "1000"]}, "timeoutSeconds": 1, "periodSeconds": 1, "failureThreshold": 1}
    async with machine.agent():
        await machine.add("web", "exec sleep 1000", container={"livenessProbe": probe}, restartPolicy="Never")
        pod = await machine.phase("web", "Failed")
        assert state(pod)["state"]["terminated"]["exitCode"] == 143
        words = 'command timed out: "sleep 1000" timed out after 1s'
        assert await machine.told("web", "Unhealthy") == f"Liveness probe failed: {words}"
        assert await machine.told("web", "Killing") == "Container main failed liveness probe"


async def test_the_startup_probe_holds_back_the_others_and_the_containers_after_a_sidecar(machine: Machine) -> None:
    once = {"exec": {"command": ["test", "-e", "/v/started"]}, "periodSeconds": 1, "failureThreshold": 100}
    fails = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    mounts = [{"name": "v", "mountPath": "/v"}]
    side: Spec = {"name": "side", "image": "busybox", "command": ["sleep", "1000"], "restartPolicy": "Always"}
    side |= {"startupProbe": once, "livenessProbe": fails, "volumeMounts": mounts}
    async with machine.agent():
        await machine.add("web", initContainers=[side], volumes=[{"name": "v", "emptyDir": {}}])
        pod = await machine.pod("web", lambda pod: "running" in state(pod, "side")["state"])
        assert (state(pod, "side")["started"], state(pod)["state"]) == (
            False,
            {"waiting": {"reason": "PodInitializing"}},
        )
        assert pod["status"]["phase"] == "Pending"
        assert conditions(pod)["Initialized"] == "False"
        (machine.layout.volume(pod["metadata"]["uid"], "v") / "started").touch()
        await machine.pod("web", lambda pod: "running" in state(pod)["state"])
        await machine.pod("web", lambda pod: state(pod, "side")["restartCount"] == 1)  # only now it must be alive


async def test_who_never_starts_is_ended(machine: Machine) -> None:
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    async with machine.agent():
        await machine.add("web", "exec sleep 1000", container={"startupProbe": probe}, restartPolicy="Never")
        await machine.phase("web", "Failed")
        assert await machine.told("web", "Killing") == "Container main failed startup probe"
