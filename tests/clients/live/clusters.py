"""Two clusters in which pods run: ``shoal up --sim``, and a real Kubernetes whose kubelets kwok plays.

The second has the nodes of the first, so that what clients show of them is the same.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shoal.api.definitions import ALL
from shoal.cluster.kubernetes import AdminApi, Binaries, RealKubernetes
from tests.support.programs import kube_binaries
from tests.support.waiting import wait_until

STAGES = Path(__file__).with_name("stages.yaml")
SIM = "--sim=2x8:H100"


@contextmanager
def real_cluster(binaries: Binaries, folder: Path, nodes: list[dict[str, Any]]) -> Iterator[RealKubernetes]:
    """A real cluster with controllers, a scheduler, and these nodes."""
    cluster = RealKubernetes(
        binaries,
        folder,
        controller_manager=True,
        scheduler=True,
        durable=False,
        definitions=[definition.manifest() for definition in ALL],
    )
    cluster.start()
    try:
        for node in nodes:
            cluster.admin.request("POST", "/api/v1/nodes", _as_made(node))
        with _kwok(cluster.kubeconfig, folder):
            leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
            wait_until(lambda: len(cluster.admin.request("GET", leases)["items"]) == len(nodes), "kwok")
            yield cluster
    finally:
        cluster.stop(grace=0)


def nodes_of(admin: AdminApi) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = admin.request("GET", "/api/v1/nodes")["items"]
    return found


def _as_made(node: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: node["metadata"][key] for key in ("name", "labels", "annotations")}
    return {"metadata": metadata, "spec": node["spec"], "status": node["status"]}


@contextmanager
def _kwok(kubeconfig: Path, folder: Path) -> Iterator[None]:
    binary = kube_binaries.binary("kwok")
    assert binary is not None, "kwok is not built: run make kube-binaries"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--config={STAGES}",
        "--manage-all-nodes",
        "--node-lease-duration-seconds=40",
        f"--server-address=127.0.0.1:{port}",
    ]
    with (folder / "kwok.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "HOME": str(folder)})
    try:
        yield
    finally:
        process.kill()
        process.wait()
