"""What is left of pods after the agent or the runtime was killed: found again or ended, never lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from shoal.cluster.node.process.client import Runtime
from tests.cluster.node.process.pods.conftest import Machine, conditions, state
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.node.runtime_program import a_runtime

Spec = dict[str, Any]


async def test_a_new_agent_finds_pods_running_and_writes_nothing(machine: Machine) -> None:
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1}
    init = {"name": "init", "image": "busybox", "command": ["true"]}
    side = {"name": "side", "image": "busybox", "command": ["sleep", "1000"], "restartPolicy": "Always"}
    async with machine.agent():
        probes = {"readinessProbe": probe, "startupProbe": probe, "livenessProbe": probe}
        await machine.add("web", container=probes, initContainers=[init, side])
        await machine.add("job", "exit 2", restartPolicy="Never")
        before = await machine.pod("web", lambda pod: conditions(pod).get("Ready") == "True")
        job = await machine.phase("job", "Failed")
    async with machine.agent() as manager:
        running = machine.residents.running(before["metadata"]["uid"], "main")

        async def is_found() -> bool:
            return machine.residents.running(before["metadata"]["uid"], "main") is not None

        await until(is_found, within=30)
        await asyncio.sleep(1.5)  # some more probes
        assert writes_of(manager) == 0
        running = machine.residents.running(before["metadata"]["uid"], "main")
        assert f"shoal://{running}" == state(before)["containerID"]
        assert (await machine.pod("web"))["status"] == before["status"]
        assert (await machine.pod("job"))["status"] == job["status"]
        assert machine.residents.log(job["metadata"]["uid"], "main", previous=False) is not None
        await machine.delete("web")
        await machine.gone("web")


async def test_what_ended_while_nobody_looked_is_told_by_the_next_agent(machine: Machine) -> None:
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    command = "while ! test -e /v/end; do sleep 0.05; done; echo done > /dev/termination-log; exit 5"
    async with machine.agent():
        await machine.add(
            "job", command, container=mounts, volumes=[{"name": "v", "emptyDir": {}}], restartPolicy="Never"
        )
        pod = await machine.phase("job", "Running")
    (machine.layout.volume(pod["metadata"]["uid"], "v") / "end").touch()
    await until(lambda: nothing_runs(machine), within=30)
    async with machine.agent():
        pod = await machine.phase("job", "Failed")
        ended = state(pod)["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"], ended["message"]) == (5, "Error", "done\n")


async def nothing_runs(machine: Machine) -> bool:
    runtime = await Runtime.connect(machine.layout.runtime_socket)
    try:
        sandboxes = await runtime.sandboxes()
    finally:
        await runtime.aclose()
    return all(container.finished is not None for sandbox in sandboxes for container in sandbox.containers)


async def test_what_was_deleted_while_nobody_looked_is_ended_by_the_next_agent(machine: Machine) -> None:
    async with machine.agent():
        await machine.add("web")
        pod = await machine.phase("web", "Running")
    await machine.delete("web", grace=0)
    folder = machine.layout.pod(pod["metadata"]["uid"])
    assert folder.exists()
    async with machine.agent():

        async def is_cleared() -> bool:
            return not folder.exists()

        await until(is_cleared, within=30)
        assert machine.residents.running(pod["metadata"]["uid"], "main") is None


async def test_containers_that_were_lost_with_the_runtime_are_restarted_where_they_may(
    cluster: Cluster, folder: Path
) -> None:
    machine = Machine(cluster, folder)
    place = folder / "node"
    place.mkdir()
    mounts = [{"name": "v", "mountPath": "/v"}]
    init: Spec = {"name": "init", "image": "busybox", "command": ["sh", "-c", "echo again >> /v/inits"]}
    init |= {"volumeMounts": mounts}
    async with machine.agent():
        with a_runtime(place, is_ordinary=False) as program:
            volumes = [{"name": "v", "emptyDir": {}}]
            await machine.add("web", initContainers=[init], volumes=volumes)
            await machine.add("once", restartPolicy="Never")
            pod = await machine.phase("web", "Running")
            await machine.phase("once", "Running")
            program.process.kill()
            program.process.wait()
        with a_runtime(place, is_ordinary=False):
            found = await machine.pod(
                "web", lambda pod: state(pod)["restartCount"] == 1 and "running" in state(pod)["state"]
            )
            last = state(found)["lastState"]["terminated"]
            assert (last["exitCode"], last["reason"]) == (137, "ContainerStatusUnknown")
            assert found["status"]["podIP"] == pod["status"]["podIP"]
            uid = pod["metadata"]["uid"]
            inits = (machine.layout.volume(uid, "v") / "inits").read_text().splitlines()
            assert inits == ["again", "again"]  # a new sandbox is prepared anew
            once = await machine.phase("once", "Failed")
            assert state(once)["state"]["terminated"]["reason"] == "ContainerStatusUnknown"


async def test_many_pods_at_once_all_run_and_one_that_cannot_holds_up_none(machine: Machine) -> None:
    names = [f"job-{number}" for number in range(25)]
    async with machine.agent():
        await machine.add("bad", container={"command": ["no-such-program"]})
        await asyncio.gather(*(machine.add(name, "true", restartPolicy="Never") for name in names))
        for name in names:
            await machine.phase(name, "Succeeded", within=40)
