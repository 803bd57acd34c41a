"""Pods on this machine, end to end: from a bound pod to its last word."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shoal.api.core import CONFIG_MAPS, PODS, Node
from shoal.api.core.nodes import NodeStatus
from tests.cluster.node.process.pods.conftest import Machine, conditions, state
from tests.support.clusters.client import until
from tests.support.clusters.in_process import writes_of

Spec = dict[str, Any]


async def test_a_pod_that_starts_at_once_is_running_and_ready_after_one_write(machine: Machine) -> None:
    async with machine.agent() as manager:
        before = writes_of(manager)
        await machine.add("web", "echo hello; sleep 1000")
        pod = await machine.phase("web", "Running")
        await machine.told("web", "Started")
        assert writes_of(manager) - before <= 1 + 3  # the status; the events Pulled, Created, Started
        uid, status = pod["metadata"]["uid"], pod["status"]
        assert conditions(pod) == dict.fromkeys(conditions(pod), "True")
        assert (state(pod)["ready"], state(pod)["started"], state(pod)["restartCount"]) == (True, True, 0)
        assert state(pod)["containerID"] == f"shoal://{machine.residents.running(uid, 'main')}"
        assert (status["podIP"], status["hostIP"]) == ("10.88.0.2", "10.88.0.1")
        spec = machine.residents.spec(uid, "main")
        assert spec is not None
        assert spec.argv[0] == "sh"
        await until_output(machine, pod, ["hello"])


async def until_output(machine: Machine, pod: Spec, lines: list[str], container: str = "main") -> None:
    async def is_said() -> bool:
        return machine.output(pod, container) == lines

    await until(is_said, within=30)


async def test_a_pod_has_a_log_while_a_full_one_is_put_aside(machine: Machine) -> None:
    async with machine.agent():
        await machine.add("web", "echo hello; sleep 1000")
        pod = await machine.phase("web", "Running")
        await until_output(machine, pod, ["hello"])
        path = machine.layout.log(pod["metadata"]["uid"], "main", 0)
        path.rename(f"{path}.1")  # as its writer does, a moment before there is another one
        assert machine.residents.log(pod["metadata"]["uid"], "main", previous=False) == path


@pytest.mark.parametrize(
    ("command", "phase", "ended"),
    [
        ("true", "Succeeded", (0, "Completed", None)),
        ("exit 3", "Failed", (3, "Error", None)),
        ("echo no luck > /dev/termination-log; exit 1", "Failed", (1, "Error", "no luck\n")),
        ("kill -9 $$$$", "Failed", (137, "Error", None)),
    ],
)
async def test_a_pod_that_runs_once_ends_as_its_program_did(
    machine: Machine, command: str, phase: str, ended: tuple[int, str, str | None]
) -> None:
    async with machine.agent():
        await machine.add("job", f"echo working; {command}", restartPolicy="Never")
        pod = await machine.phase("job", phase)
        found = state(pod)["state"]["terminated"]
        assert (found["exitCode"], found["reason"], found.get("message")) == ended
        assert found["containerID"] == state(pod)["containerID"]
        assert conditions(pod)["Ready"] == "False"
        assert machine.output(pod) == ["working"]
        await machine.delete("job")
        await machine.gone("job")

        async def is_cleared() -> bool:
            return not machine.layout.pod(pod["metadata"]["uid"]).exists()

        await until(is_cleared, within=30)


async def test_the_last_lines_of_a_log_are_the_last_words_where_that_is_asked_for(machine: Machine) -> None:
    async with machine.agent():
        main = {"terminationMessagePolicy": "FallbackToLogsOnError"}
        await machine.add("job", "seq 100; exit 1", restartPolicy="Never", container=main)
        pod = await machine.phase("job", "Failed")
    lines = state(pod)["state"]["terminated"]["message"].splitlines()
    assert lines == [str(number) for number in range(21, 101)]


async def test_what_fails_is_restarted_in_place_until_it_succeeds(machine: Machine) -> None:
    volume = {"volumes": [{"name": "v", "emptyDir": {}}]}
    main = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    async with machine.agent():
        command = "test -e /v/tried && exit 0; touch /v/tried; echo first; exit 7"
        await machine.add("job", command, restartPolicy="OnFailure", container=main, **volume)
        pod = await machine.phase("job", "Succeeded")
        assert state(pod)["restartCount"] == 1
        assert state(pod)["lastState"]["terminated"]["exitCode"] == 7
        assert state(pod)["lastState"]["terminated"]["containerID"] != state(pod)["containerID"]
        assert machine.output(pod, previous=True) == ["first"]


async def test_a_container_that_keeps_failing_rests_longer_each_time(machine: Machine) -> None:
    async with machine.agent():
        await machine.add("web", "echo out; exit 1")
        pod = await machine.pod(
            "web", lambda pod: state(pod)["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"
        )
        name = f"web_default({pod['metadata']['uid']})"
        waiting = state(pod)["state"]["waiting"]
        assert waiting["message"] == f"back-off 10s restarting failed container=main pod={name}"
        assert (state(pod)["restartCount"], pod["status"]["phase"]) == (1, "Running")
        assert state(pod)["lastState"]["terminated"]["exitCode"] == 1
        message = await machine.told("web", "BackOff")
        assert message == f"Back-off restarting failed container main in pod {name}"
        assert machine.output(pod) == machine.output(pod, previous=True) == ["out"]


async def test_init_containers_come_first_and_sidecars_go_last(machine: Machine) -> None:
    def step(name: str, command: str, **more: Any) -> Spec:
        mounts = [{"name": "v", "mountPath": "/v"}]
        return {"name": name, "image": "busybox", "command": ["sh", "-c", command], "volumeMounts": mounts, **more}

    trap = "trap 'echo {0} ends >> /v/order; exit 0' TERM; echo {0} >> /v/order; while :; do sleep 0.02; done"
    async with machine.agent():
        inits = [
            step("first", "echo first >> /v/order"),
            step("near", trap.format("near"), restartPolicy="Always"),
            step("second", "echo second >> /v/order"),
            step("far", trap.format("far"), restartPolicy="Always"),
        ]
        main = step("main", "sleep 0.3; echo main >> /v/order")
        volumes = [{"name": "v", "emptyDir": {}}]
        await machine.add("job", initContainers=inits, containers=[main], volumes=volumes, restartPolicy="Never")
        pod = await machine.phase("job", "Succeeded")
        order = (machine.layout.volume(pod["metadata"]["uid"], "v") / "order").read_text().splitlines()
        assert order[:2] == ["first", "near"]
        assert order[2:] == ["second", "far", "main", "far ends", "near ends"]
        assert [state(pod, name)["state"]["terminated"]["exitCode"] for name in ("first", "near", "second", "far")] == [
            0
        ] * 4


async def test_a_failed_init_container_fails_a_pod_that_runs_once(machine: Machine) -> None:
    init = {"name": "init", "image": "busybox", "command": ["sh", "-c", "exit 2"]}
    async with machine.agent():
        await machine.add("job", initContainers=[init], restartPolicy="Never")
        pod = await machine.phase("job", "Failed")
    assert state(pod, "init")["state"]["terminated"]["exitCode"] == 2
    assert state(pod)["state"] == {"waiting": {"reason": "PodInitializing"}}


async def test_a_program_that_is_not_there_is_a_start_error(machine: Machine) -> None:
    async with machine.agent():
        await machine.add("once", container={"command": ["no-such-program"]}, restartPolicy="Never")
        pod = await machine.phase("once", "Failed")
        ended = state(pod)["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
        assert "no-such-program" in ended["message"]
        assert "no-such-program" in await machine.told("once", "Failed")
        await machine.add("again", container={"command": ["no-such-program"]})
        pod = await machine.pod(
            "again", lambda pod: state(pod)["state"].get("waiting", {}).get("reason") == "RunContainerError"
        )
        assert "no-such-program" in state(pod)["state"]["waiting"]["message"]
        pod = await machine.pod(
            "again", lambda pod: state(pod)["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"
        )
        assert state(pod)["lastState"]["terminated"]["reason"] == "StartError"


async def test_an_image_that_may_not_be_used_is_not_pulled(machine: Machine) -> None:
    machine.layout.images.write_text("default: forbidden\n")
    async with machine.agent():
        await machine.add("web")
        pod = await machine.pod(
            "web", lambda pod: state(pod)["state"].get("waiting", {}).get("reason") == "ErrImagePull"
        )
        message = state(pod)["state"]["waiting"]["message"]
        pod = await machine.pod("web", lambda pod: state(pod)["state"]["waiting"]["reason"] == "ImagePullBackOff")
        assert state(pod)["state"]["waiting"]["message"] == f'Back-off pulling image "busybox": ErrImagePull: {message}'
        assert pod["status"]["phase"] == "Pending"


async def test_a_container_waits_for_its_configuration_and_starts_when_it_is_there(machine: Machine) -> None:
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "a"}}}]
    async with machine.agent():
        await machine.add("web", "echo $A; sleep 1000", container={"env": env})
        pod = await machine.pod(
            "web", lambda pod: "waiting" in state(pod)["state"] and "message" in state(pod)["state"]["waiting"]
        )
        assert state(pod)["state"]["waiting"] == {
            "reason": "CreateContainerConfigError",
            "message": 'configmap "late" not found',
        }
        assert await machine.told("web", "Failed") == 'Error: configmap "late" not found'
        await machine.add("other", "true", restartPolicy="Never")
        await machine.phase("other", "Succeeded")  # it is nobody else's business
        await machine.cluster.make(CONFIG_MAPS, {"metadata": {"name": "late"}, "data": {"a": "here"}})
        pod = await machine.phase("web", "Running")
        await until_output(machine, pod, ["here"])


async def test_a_pod_waits_for_its_volumes(machine: Machine) -> None:
    volumes = [{"name": "v", "configMap": {"name": "late"}}]
    async with machine.agent():
        await machine.add("web", container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]}, volumes=volumes)
        assert 'configmap "late" not found' in await machine.told("web", "FailedMount")
        pod = await machine.pod("web", lambda pod: state(pod)["state"])
        assert state(pod)["state"] == {"waiting": {"reason": "ContainerCreating"}}
        await machine.cluster.make(CONFIG_MAPS, {"metadata": {"name": "late"}, "data": {"a": "here"}})
        await machine.phase("web", "Running")


async def test_a_pod_is_not_active_for_longer_than_it_may(machine: Machine) -> None:
    async with machine.agent():
        await machine.add("job", activeDeadlineSeconds=1)
        pod = await machine.phase("job", "Failed")
    assert pod["status"]["reason"] == "DeadlineExceeded"
    assert pod["status"]["message"] == "Pod was active on the node longer than the specified deadline"
    assert state(pod)["state"]["terminated"]["exitCode"] == 143


async def test_a_pod_that_does_not_fit_is_refused(machine: Machine) -> None:
    machine.node = Node(status=NodeStatus(allocatable={"cpu": "2", "memory": "1Gi", "pods": "10"}))

    def asking(cpu: str) -> Spec:
        return {"resources": {"requests": {"cpu": cpu}}}

    async with machine.agent():
        await machine.add("first", container=asking("1500m"))
        await machine.phase("first", "Running")
        await machine.add("second", container=asking("1"))
        pod = await machine.phase("second", "Failed")
        words = "Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity: 2000"
        assert (pod["status"]["reason"], pod["status"]["message"]) == ("OutOfcpu", f"Pod was rejected: {words}")
        assert await machine.told("second", "OutOfcpu") == words
        await machine.delete("first", grace=0)
        await machine.delete("second")
        await machine.gone("second")
        await machine.add("third", container=asking("1"))
        await machine.phase("third", "Running")


async def test_a_container_is_restarted_with_another_image(machine: Machine) -> None:
    async with machine.agent():
        await machine.add("web", "exec sleep 1000")
        await machine.phase("web", "Running")
        patch = {"spec": {"containers": [{"name": "main", "image": "debian"}]}}
        await machine.cluster.client.strategic_patch(PODS.documents(), "web", patch, "default")
        pod = await machine.pod("web", lambda pod: state(pod)["restartCount"] == 1)
        assert (state(pod)["image"], state(pod)["lastState"]["terminated"]["exitCode"]) == ("debian", 143)
        words = "Container main definition changed, will be restarted"
        assert await machine.told("web", "Killing") == words


async def test_an_ephemeral_container_joins_a_pod_that_runs(machine: Machine) -> None:
    async with machine.agent():
        await machine.add("web")
        await machine.phase("web", "Running")
        debugger = {"name": "debug", "image": "busybox", "command": ["sh", "-c", "echo looking; exit 4"]}
        debugger |= {"targetContainerName": "main"}
        await machine.cluster.client.strategic_patch(
            PODS.documents(), "web", {"spec": {"ephemeralContainers": [debugger]}}, "default",
            subresource="ephemeralcontainers",
        )  # fmt: skip
        pod = await machine.pod("web", lambda pod: "terminated" in state(pod, "debug")["state"])
        assert state(pod, "debug")["state"]["terminated"]["exitCode"] == 4
        assert pod["status"]["phase"] == "Running"
        assert machine.output(pod, "debug") == ["looking"]


async def test_at_rest_nothing_is_written(machine: Machine) -> None:
    async with machine.agent() as manager:
        await machine.add("web")
        await machine.add("job", "true", restartPolicy="Never")
        await machine.phase("web", "Running")
        await machine.phase("job", "Succeeded")
        await manager.events.flush(within=2)
        before = writes_of(manager)
        await asyncio.sleep(0.5)
        assert writes_of(manager) == before
