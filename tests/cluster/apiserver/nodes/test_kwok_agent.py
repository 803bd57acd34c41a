"""A kubelet's API that is not ours: kwok serves it, over TLS with a certificate of its own making."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.kube.errors import ApiError
from shoal.kube.streams import exec_in_pod, follow_logs, run_in_pod
from tests.cluster.apiserver.nodes.conftest import NODE, Cluster
from tests.support.clusters.client import until
from tests.support.network.tls import Authority
from tests.support.programs import kube_binaries

pytestmark = [
    pytest.mark.kube,
    pytest.mark.skipif(kube_binaries.binary("kwok") is None, reason="kwok is not built: run make kube-binaries"),
]

KWOK = "kwok.x-k8s.io/v1alpha1"


@pytest.fixture
async def kwok(cluster: Cluster, tmp_path: Path) -> AsyncIterator[None]:
    """A node that kwok keeps, with the pod "web" running; its log is a file, its commands run here."""
    log = tmp_path / "web.log"
    log.write_text("".join(f"2026-01-01T00:00:00.000000000Z stdout F {word}\n" for word in ("one", "two", "three")))
    rules = [
        {"kind": "ClusterLogs", "spec": {"logs": [{"logsFile": str(log), "follow": False}]}},
        {"kind": "ClusterExec", "spec": {"execs": [{"local": {}}]}},
        # It insists on something to do with nodes and pods.
        *({"kind": "Stage", "spec": a_stage_that_does_nothing(kind)} for kind in ("Node", "Pod")),
    ]
    config = tmp_path / "kwok.yaml"
    config.write_text(
        yaml.safe_dump_all(
            [{"apiVersion": KWOK, "metadata": {"name": f"rule-{number}"}, **rule} for number, rule in enumerate(rules)]
        )
    )
    chain, key = Authority().issue("kwok", hosts=("127.0.0.1",)).write(tmp_path, "kwok")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    binary = kube_binaries.binary("kwok")
    assert binary is not None
    errors = (tmp_path / "kwok.log").open("wb")
    process = await asyncio.create_subprocess_exec(
        binary,
        f"--kubeconfig={cluster.server.kubeconfig}",
        f"--config={config}",
        "--manage-all-nodes",
        "--node-ip=127.0.0.1",
        f"--node-port={port}",
        f"--server-address=127.0.0.1:{port}",
        f"--tls-cert-file={chain}",
        f"--tls-private-key-file={key}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=errors,
    )
    try:
        await cluster.add_node(url=f"https://127.0.0.1:{port}")
        await cluster.add_pod("web", node=NODE)

        async def listens() -> bool:
            assert process.returncode is None, (tmp_path / "kwok.log").read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        await until(listens)
        yield
    finally:
        process.kill()
        await process.wait()
        errors.close()


def a_stage_that_does_nothing(kind: str) -> dict[str, Any]:
    nothing = {"matchLabels": {"never": "true"}}
    return {"resourceRef": {"apiGroup": "v1", "kind": kind}, "selector": nothing, "next": {"statusTemplate": ""}}


@pytest.mark.usefixtures("kwok")
async def test_logs_and_commands_of_kwok_come_through(cluster: Cluster) -> None:
    async def lines(**options: int) -> list[bytes]:
        found = follow_logs(cluster.transport, namespace="default", pod="web", follow=False, **options)  # type: ignore[arg-type]
        return [line async for line in found]

    assert await lines() == [b"one", b"two", b"three"]
    assert await lines(tail_lines=1) == [b"three"]
    done = await run_in_pod(cluster.transport, namespace="default", pod="web", command=["echo", "hello"])
    assert (done.stdout, done.exit_code) == (b"hello\n", 0)
    with pytest.raises(ApiError):
        async with exec_in_pod(cluster.transport, namespace="default", pod="nope", command=["true"]):
            pass
