"""Logs, usage and refused commands of simulated pods, through the API server and its sockets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.api.core import NODES, PODS, SERVICE_ACCOUNTS, ContainerStatus, Pod
from shoal.api.meta import format_time
from shoal.cluster.apiserver.server import ApiServer, ServerOptions, serving
from shoal.cluster.node.simulated import Pool, add_simulated_nodes
from shoal.cluster.node.simulated.logs import MOST, lines_until, log_so_far
from shoal.cluster.node.simulated.usage import pod_usage
from shoal.kube import ApiError, Client, Manager, running
from tests.support.builders.pods import a_pod, pod_manifest
from tests.support.clusters.client import transport_to, until
from tests.support.programs import kube_binaries

T0 = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
NODE = "sim-0-0"


class Served:
    """A server with its sockets, whose one simulated node has the pods "web" (running) and "slow" (waiting)."""

    def __init__(self, server: ApiServer, client: Client) -> None:
        self.server = server
        self.client = client

    async def add_pod(self, name: str, **sim: str) -> None:
        annotations = {f"shoal.dev/sim-{key.replace('_', '-')}": value for key, value in sim.items()}
        body = pod_manifest(
            name, annotations=annotations, node=NODE, restartPolicy="Never", automountServiceAccountToken=False
        )
        await self.client.create(PODS.documents(), body, "default")

        async def has_begun() -> bool:
            pod = await self.client.get(PODS, name, "default")
            return pod.status.start_time is not None

        await until(has_begun)

    async def log(self, pod: str, **options: Any) -> list[str]:
        return [line.decode() async for line in self.client.logs(pod, "default", **options)]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    data_dir = tmp_path / "data"
    async with (
        serving(ServerOptions(data_dir=data_dir, port=0, durable=False)) as server,
        transport_to(server.kubeconfig) as transport,
    ):
        manager = Manager(transport, name="nodes")
        add_simulated_nodes(manager, sockets=data_dir / "agents", pools=[Pool.parse("1x8:H100")])
        served = Served(server, Client(transport))
        await served.client.create(SERVICE_ACCOUNTS.documents(), {"metadata": {"name": "default"}}, "default")
        async with running(manager):
            await served.add_pod("web", run_time="1h", log="hello\nworld", cpu="250m", memory="300Mi")
            await served.add_pod("slow", start_delay="1h")
            yield served


async def test_a_log_says_that_it_is_simulated_and_what_the_annotation_says(served: Served) -> None:
    first, *rest = await served.log("web", follow=False)
    assert first == "simulated: container main of pod default/web on node sim-0-0 started; nothing runs here"
    assert rest == ["hello", "world"]
    assert await served.log("web", follow=False, tail_lines=1) == ["world"]


async def test_a_log_is_followed_until_the_container_ends(served: Served) -> None:
    await served.add_pod("job", run_time="700ms")
    async with asyncio.timeout(10):
        assert (await served.log("job", follow=True))[-1] == "simulated: ended with exit code 0 (Completed)"


async def test_what_cannot_be_had_is_refused_with_a_sentence(served: Served) -> None:
    with pytest.raises(ApiError, match='container "main" in pod "slow" is waiting to start: ContainerCreating'):
        await served.log("slow", follow=False)
    with pytest.raises(ApiError, match="on the simulated node sim-0-0: no command can be run in it"):
        async with served.client.exec("web", "default", ["true"]):
            pass


async def test_a_node_that_is_down_answers_nothing(served: Served) -> None:
    await served.client.merge_patch(NODES, NODE, {"metadata": {"annotations": {"shoal.dev/sim-down": "true"}}})

    async def refusal() -> str:
        try:
            await served.log("web", follow=False)
        except ApiError as error:
            return error.message
        return ""

    assert "node sim-0-0 is down" in await until(refusal)


async def test_the_agents_own_paths_answer_for_a_node(served: Served) -> None:
    proxy = f"/api/v1/nodes/{NODE}/proxy"
    assert await served.client.read_path(f"{proxy}/healthz") == b"ok"
    stats = msgspec.json.decode(await served.client.read_path(f"{proxy}/stats/summary"))
    [web] = stats["pods"]
    assert (web["podRef"]["name"], web["memory"]["workingSetBytes"]) == ("web", 300 << 20)
    pods = msgspec.json.decode(await served.client.read_path(f"{proxy}/pods"))
    assert {pod["metadata"]["name"] for pod in pods["items"]} == {"web", "slow"}


@pytest.mark.kube
async def test_kubectl_shows_usage_logs_and_why_there_are_no_commands(served: Served, tmp_path: Path) -> None:
    async def kubectl(*arguments: str) -> str:
        binary = kube_binaries.binary("kubectl")
        assert binary is not None
        process = await asyncio.create_subprocess_exec(
            binary,
            f"--kubeconfig={served.server.kubeconfig}",
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "KUBECACHEDIR": str(tmp_path / "cache")},
        )
        async with asyncio.timeout(30):
            return (await process.communicate())[0].decode()

    name, cpu, _, memory, _ = (await kubectl("top", "nodes", "--no-headers")).split()
    assert (name, memory) == (NODE, "812Mi")
    assert 299 <= int(cpu.removesuffix("m")) <= 302
    name, cpu, memory = (await kubectl("top", "pods", "--no-headers")).split()
    assert (name, memory) == ("web", "300Mi")
    assert 249 <= int(cpu.removesuffix("m")) <= 252
    assert "hello" in await kubectl("logs", "web")
    assert "is on the simulated node sim-0-0: no command can be run in it" in await kubectl("exec", "web", "--", "ls")
    assert "nothing listens on its ports" in await kubectl("port-forward", "web", ":80")
    proxied = await kubectl("get", "--raw", "/api/v1/namespaces/default/pods/web:80/proxy/")
    assert "(ServiceUnavailable)" in proxied
    assert "pod default/web is on the simulated node sim-0-0: nothing listens on its ports" in proxied


def a_running_pod(**annotations: str) -> Pod:
    """A pod of two containers that run, of which the first asks for something."""
    state = {"running": {"startedAt": format_time(T0)}}
    statuses = [{"name": name, "state": state} for name in ("a", "b")]
    requests = {"cpu": "2", "memory": "1Gi"}
    status = {"containerStatuses": statuses}
    return a_pod(containers=["a", "b"], requests=requests, annotations=annotations, status=status)


def test_a_log_of_the_same_moment_is_always_the_same_and_old_lines_go() -> None:
    pod = a_running_pod()
    assert lines_until(pod, "a", T0, T0 + timedelta(seconds=25))[1:] == [
        (T0 + timedelta(seconds=10), "simulated: running for 10 s"),
        (T0 + timedelta(seconds=20), "simulated: running for 20 s"),
    ]
    year = lines_until(pod, "a", T0, T0 + timedelta(days=365))
    assert (len(year), year[-1].at) == (MOST, T0 + timedelta(days=365))
    assert [line.at for line in year] == sorted(line.at for line in year)


def test_a_container_that_rests_still_has_the_log_of_its_last_life() -> None:
    ended = {
        "exitCode": 1,
        "reason": "Error",
        "startedAt": "2026-01-01T12:00:00Z",
        "finishedAt": "2026-01-01T12:00:05Z",
    }
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    body = {"name": "a", "state": waiting, "lastState": {"terminated": ended}}
    status = msgspec.convert(body, ContainerStatus)
    lines = log_so_far(a_running_pod(), status, previous=False, now=T0 + timedelta(hours=1))
    assert lines[-1].text == "simulated: ended with exit code 1 (Error)"
    assert log_so_far(a_running_pod(), status, previous=True, now=T0) == lines


def test_usage_follows_requests_or_the_annotation() -> None:
    now = T0 + timedelta(seconds=100)
    asked = {one.container: (one.cpu_cores, one.memory_bytes) for one in pod_usage(a_running_pod(), now=now)}
    assert asked == {"a": (1.2, 512 << 20), "b": (0.001, 16 << 20)}
    told = list(pod_usage(a_running_pod(**{"shoal.dev/sim-cpu": "3", "shoal.dev/sim-memory": "2Gi"}), now=now))
    assert [(one.cpu_cores, one.cpu_seconds, one.memory_bytes) for one in told] == [(1.5, 150.0, 1 << 30)] * 2
