"""The real kubectl, into pods whose agent is ours: what it prints is what a user sees."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.apiserver.nodes.conftest import NODE, Cluster
from tests.cluster.apiserver.nodes.test_metrics import Counting
from tests.support.network.http_servers import serving
from tests.support.network.streams import PodServer
from tests.support.programs import kube_binaries

pytestmark = pytest.mark.kube


@dataclass
class Kubectl:
    """kubectl beside the event loop that serves it."""

    kubeconfig: Path
    cache: Path

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        binary = kube_binaries.binary("kubectl")
        assert binary is not None
        pipe = asyncio.subprocess.PIPE
        environment = {**os.environ, "KUBECACHEDIR": str(self.cache)}
        options = [f"--kubeconfig={self.kubeconfig}", *arguments]
        return await asyncio.create_subprocess_exec(
            binary, *options, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )

    async def __call__(self, *arguments: str, stdin: bytes = b"") -> tuple[int | None, str, str]:
        """Its exit code, and what it printed and complained of."""
        process = await self.start(*arguments)
        async with asyncio.timeout(30):
            out, err = await process.communicate(stdin)
        return process.returncode, out.decode(), err.decode()


@pytest.fixture
def kubectl(cluster: Cluster, tmp_path: Path) -> Kubectl:
    return Kubectl(cluster.server.kubeconfig, tmp_path / "cache")


@pytest.fixture
async def agent(cluster: Cluster) -> AsyncIterator[PodServer]:
    agent = PodServer()
    async with serving(agent, socket=cluster.sockets / "a.sock") as url:
        await cluster.add_node(url=url)
        await cluster.add_pod("web", node=NODE)
        yield agent


async def test_logs_are_printed_and_followed(kubectl: Kubectl, agent: PodServer) -> None:
    agent.log = b"one\ntwo\n"
    assert await kubectl("logs", "web", "--tail=7") == (0, "one\ntwo\n", "")
    assert await kubectl("logs", "-f", "web", "--timestamps") == (0, "one\ntwo\nlive\n", "")
    assert agent.queries == [{"tailLines": ["7"]}, {"follow": ["true"], "timestamps": ["true"]}]


@pytest.mark.usefixtures("agent")
async def test_commands_take_input_and_give_their_exit_code(kubectl: Kubectl) -> None:
    text = "many words\n" * 20_000
    assert await kubectl("exec", "-i", "web", "--", "cat", stdin=text.encode()) == (0, text, "")
    code, out, err = await kubectl("exec", "web", "--", "sh", "-c", "echo no >&2; exit 7")
    assert (code, out) == (7, "")
    assert err == "no\ncommand terminated with exit code 7\n"
    code, out, _ = await kubectl("attach", "-i", "web", stdin=b"said\n")
    assert (code, out) == (0, "attached\nsaid\n")


async def test_what_is_refused_is_said_though_kubectl_tries_spdy_after_it(cluster: Cluster, kubectl: Kubectl) -> None:
    await cluster.add_node(url="https://127.0.0.1:1")
    await cluster.add_pod("web", node=NODE)
    await cluster.add_pod("unplaced")
    code, _, err = await kubectl("exec", "web", "--", "true")
    assert (code, "error dialing backend" in err) == (1, True), err
    code, _, err = await kubectl("exec", "unplaced", "--", "true")
    assert (code, "pod unplaced does not have a host assigned" in err) == (1, True), err
    code, _, err = await kubectl("logs", "web")
    assert (code, err.startswith("Error from server: error dialing backend")) == (1, True), err


async def test_top_shows_usage(cluster: Cluster, kubectl: Kubectl) -> None:
    async with serving(Counting(), socket=cluster.sockets / "a.sock") as url:
        await cluster.add_node("a", url=url)
        await cluster.add_pod("web", node="a", containers=["main", "side"])
        capacity = {"status": {"allocatable": {"cpu": "2", "memory": "4Gi"}, "capacity": {"cpu": "2", "memory": "4Gi"}}}
        path = "/api/v1/nodes/a/status"
        assert (await cluster.call("PATCH", path, capacity, content_type="application/merge-patch+json"))[0] == 200
        code, out, err = await kubectl("top", "nodes", "--no-headers")
        assert (code, err) == (0, "")
        name, _, share, memory, memory_share = out.split()
        assert (name, share, memory, memory_share) == ("a", "25%", "1024Mi", "25%")
        code, out, err = await kubectl("top", "pods", "--containers", "--no-headers")
        assert (code, err) == (0, "")
        assert [line.split()[1::2] for line in out.splitlines()] == [["main", "1Mi"], ["side", "1Mi"]]
