"""The two servers, each started anew on an empty data dir and held on one core, all their processes together."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.figures.processes import cpu_seconds, proportional_memory
from bench.serving.load import Target
from shoal.cluster.kubernetes import RealKubernetes, find_binaries
from shoal.kube import HttpTransport, load_connection
from shoal.kube.tls import client_context
from shoal.kube.transport import Request

NAMESPACE, LISTED_NAMESPACE = "bench", "bench-list"
ACCOUNTS = ("bench", "default", "trainer")
_MAY = [
    {"apiGroups": [""], "resources": ["configmaps", "pods"], "verbs": ["get", "list", "watch", "create", "patch"]},
]


class StartFailed(Exception):
    """The embedded server did not get ready."""


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """A server that is ready, with a user who may do what the bench does and no more."""

    target: Target
    processes: tuple[int, ...]
    ready_after: float
    """Seconds from its start, on an empty data dir."""
    memory_at_rest: int

    def cpu_seconds(self) -> float:
        """What its processes have used so far."""
        return sum(map(cpu_seconds, self.processes))

    def memory(self) -> int:
        """What its processes hold, shared pages divided among those who share them."""
        return sum(map(proportional_memory, self.processes))


@contextmanager
def embedded(data_dir: Path, *, core: int | None) -> Iterator[Contestant]:
    """``shoal apiserver`` as it stands."""
    # An installed package has its bytecode; a developer's environment may keep Python from writing it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    log = data_dir.with_suffix(".log")
    command = [
        str(Path(sys.executable).with_name("shoal")),
        "apiserver",
        "--data-dir",
        str(data_dir),
        "--api-port",
        "0",
    ]
    start = time.perf_counter()
    with log.open("wb") as errors, _on(core):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
    try:
        assert process.stdout is not None
        if not process.stdout.readline().startswith(b"Shoal is ready"):
            raise StartFailed(f"the embedded server did not get ready:\n{log.read_text()[-2000:]}")
        ready_after = time.perf_counter() - start
        yield _prepared(data_dir / "kubeconfig", (process.pid,), ready_after)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def real(data_dir: Path, *, core: int | None) -> Iterator[Contestant]:
    """kube-apiserver and etcd with its fsync, both on the one core.

    As without a controller manager always, its ServiceAccount admission is off, which the embedded server's is not.
    """
    cluster = RealKubernetes(find_binaries(), data_dir, durable=True)
    start = time.perf_counter()
    with _on(core):
        cluster.start()
    try:
        ready_after = time.perf_counter() - start
        pids = tuple(child.pid for child in cluster.processes().values())
        yield _prepared(cluster.kubeconfig, pids, ready_after)
    finally:
        cluster.stop()


def _prepared(kubeconfig: Path, processes: tuple[int, ...], ready_after: float) -> Contestant:
    target = account_of(kubeconfig)
    rest(processes)
    memory = sum(map(proportional_memory, processes))
    return Contestant(target=target, processes=processes, ready_after=ready_after, memory_at_rest=memory)


def account_of(kubeconfig: Path, account: str = ACCOUNTS[0]) -> Target:
    """Makes a user of the server who may do what the bench does."""
    connection = load_connection(kubeconfig)
    token = asyncio.run(_prepare(kubeconfig, account))
    where = urlsplit(connection.server)
    assert where.hostname is not None
    assert where.port is not None
    return Target(host=where.hostname, port=where.port, context=client_context(connection.tls), token=token)


def rest(processes: Iterable[int]) -> None:
    """Waits until a server has done what it still does after it was ready: a tenth of a core for a second, or 20 s."""
    processes = tuple(processes)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        before = sum(map(cpu_seconds, processes))
        time.sleep(1)
        if sum(map(cpu_seconds, processes)) - before <= 0.1:
            return


async def _prepare(kubeconfig: Path, account: str) -> str:
    """Makes the namespace and a ServiceAccount with a role; gives its token."""
    transport = HttpTransport(load_connection(kubeconfig))

    async def post(path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await transport.send(Request(method="POST", path=path, body=json.dumps(body).encode(), timeout=30))
        assert answer.status in (200, 201, 409), answer
        found: dict[str, Any] = json.loads(answer.body)
        return found

    namespaces = "/api/v1/namespaces"
    access = "/apis/rbac.authorization.k8s.io/v1"
    subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bench"}
    try:
        for namespace in (NAMESPACE, LISTED_NAMESPACE):
            await post(namespaces, {"metadata": {"name": namespace}})
            for name in ACCOUNTS:
                await post(f"{namespaces}/{namespace}/serviceaccounts", {"metadata": {"name": name}})
        await post(f"{access}/clusterroles", {"metadata": {"name": "bench"}, "rules": _MAY})
        binding = {"metadata": {"name": account}, "subjects": [subject], "roleRef": role}
        await post(f"{access}/clusterrolebindings", binding)
        tokens = f"{namespaces}/{NAMESPACE}/serviceaccounts/{account}/token"
        review = await post(tokens, {"spec": {"expirationSeconds": 7200}})
        token: str = review["status"]["token"]
        return token
    finally:
        await transport.close()


@contextmanager
def _on(core: int | None) -> Iterator[None]:
    """Children that are started in the block stay on one core; we go back to where we were."""
    before = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
