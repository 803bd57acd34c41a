"""How pods on this machine end when they are told to: hooks, signals, the time they have, and what they leave."""

from __future__ import annotations

import time
from typing import Any

import pytest

from shoal.api.core import PODS
from tests.cluster.node.process.pods.conftest import Machine, state

Spec = dict[str, Any]
STUBBORN = "trap '' TERM; echo up; while :; do sleep 0.05; done"
POLITE = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"


async def held(machine: Machine, name: str, command: str, **spec: Any) -> Spec:
    """A pod that runs, and whose object stays when it has ended, until we let it go."""
    metadata = {"finalizers": ["test/keep"]}
    await machine.add(name, command, metadata=metadata, **spec)
    pod = await machine.phase(name, "Running")
    return await machine.pod(name, lambda _: machine.output(pod)[:1] == ["up"])


async def let_go(machine: Machine, name: str) -> None:
    patch = {"metadata": {"finalizers": None}}
    await machine.cluster.client.merge_patch(PODS.documents(), name, patch, "default")
    await machine.gone(name)


@pytest.mark.parametrize(
    ("command", "phase", "code"),
    [(POLITE, "Succeeded", 0), ("echo up; exec sleep 1000", "Failed", 143)],
    ids=["one that ends well", "one that does not care"],
)
async def test_a_deleted_pod_is_asked_to_end_and_tells_how_it_did(
    machine: Machine, command: str, phase: str, code: int
) -> None:
    async with machine.agent():
        await held(machine, "web", command)
        await machine.delete("web")
        pod = await machine.phase("web", phase)
        assert state(pod)["state"]["terminated"]["exitCode"] == code
        assert await machine.told("web", "Killing") == "Stopping container main"
        await let_go(machine, "web")


async def test_a_pod_that_ignores_the_signal_is_killed_when_its_time_is_over(machine: Machine) -> None:
    async with machine.agent():
        await held(machine, "web", STUBBORN)
        began = time.monotonic()
        await machine.delete("web", grace=3)
        pod = await machine.phase("web", "Failed")
        assert time.monotonic() - began >= 3
        ended = state(pod)["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (137, "Error")
        await let_go(machine, "web")


async def test_who_asks_again_with_less_time_is_heard(machine: Machine) -> None:
    async with machine.agent():
        await held(machine, "web", STUBBORN)
        await machine.delete("web", grace=60)
        await machine.told("web", "Killing")
        await machine.delete("web", grace=1)
        pod = await machine.phase("web", "Failed", within=8)
        assert state(pod)["state"]["terminated"]["exitCode"] == 137
        await let_go(machine, "web")


async def test_the_hook_before_the_end_comes_before_the_signal(machine: Machine) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "sleep 0.2; echo hooked > /v/said"]}}}
    mounts = [{"name": "v", "mountPath": "/v"}]
    command = "trap 'cat /v/said; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    async with machine.agent():
        main = {"lifecycle": hook, "volumeMounts": mounts}
        await held(machine, "web", command, container=main, volumes=[{"name": "v", "emptyDir": {}}])
        await machine.delete("web")
        pod = await machine.phase("web", "Succeeded")
        assert machine.output(pod) == ["up", "hooked"]
        await let_go(machine, "web")


async def test_a_hook_that_takes_too_long_uses_up_the_time(machine: Machine) -> None:
    hook = {"preStop": {"sleep": {"seconds": 3}}}
    async with machine.agent():
        pod = await held(machine, "web", POLITE, container={"lifecycle": hook}, terminationGracePeriodSeconds=3)
        await machine.delete("web", grace=1)
        pod = await machine.phase("web", "Succeeded")  # it still had the two seconds that everybody has
        assert machine.output(pod) == ["up", "bye"]
        await let_go(machine, "web")


async def test_a_failed_hook_after_the_start_ends_the_container(machine: Machine) -> None:
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "echo no; exit 9"]}}}
    async with machine.agent():
        await machine.add("web", POLITE, container={"lifecycle": hook})
        assert await machine.told("web", "FailedPostStartHook") == "PostStartHook failed"
        pod = await machine.pod(
            "web", lambda pod: state(pod)["state"].get("waiting", {}).get("reason") == "PostStartHookError"
        )
        assert "exited with 9: no" in state(pod)["state"]["waiting"]["message"]
        assert state(pod)["lastState"]["terminated"]["exitCode"] == 0
        assert await machine.told("web", "Killing") == "FailedPostStartHook"


async def test_a_pod_whose_object_was_torn_away_is_ended_all_the_same(machine: Machine) -> None:
    async with machine.agent():
        await machine.add("web", POLITE)
        pod = await machine.phase("web", "Running")
        uid = pod["metadata"]["uid"]
        running = machine.residents.running(uid, "main")
        assert running is not None
        await machine.delete("web", grace=0)
        await machine.gone("web")
        await machine.residents.ended(running)
        await machine.add("web", "true", restartPolicy="Never")  # the name is free at once
        await machine.phase("web", "Succeeded")


async def test_a_pod_that_never_began_can_be_deleted(machine: Machine) -> None:
    async with machine.agent():
        volumes = [{"name": "v", "configMap": {"name": "never"}}]
        await machine.add("web", container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]}, volumes=volumes)
        await machine.told("web", "FailedMount")
        await machine.delete("web")
        await machine.gone("web")
