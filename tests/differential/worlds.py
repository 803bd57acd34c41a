"""The two clusters that stories are told to: the same nodes in both, by the same manifests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.cluster.kubernetes import AdminApi, Binaries, Part, RealKubernetes, admin_of
from shoal.cluster.kubernetes.processes import Spawner, end_all
from tests.conformance.player import Server
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import wait_until

POOL = ("pool-1", "pool-2", "pool-3", "pool-4")
"""Nodes for the pods of all stories; which of them a pod gets is not compared."""
_STAGES = Path(__file__).with_name("stages.yaml")
_FLAGS = {
    # Volumes are bound when something changes, not a quarter of a minute later. Events share a limit of 20 requests a
    # second with the controller that sends them: with many stories at once they would come after their snapshots.
    Part.CONTROLLER_MANAGER: (
        "--pvclaimbinder-sync-period=1s",
        "--concurrent-job-syncs=10",
        "--kube-api-qps=500",
        "--kube-api-burst=500",
    ),
}


@dataclass(frozen=True)
class World:
    """A cluster to tell stories to."""

    server: Server
    quiet: float
    """For how many seconds nothing changes once a cluster of this kind is at rest."""


@dataclass(frozen=True)
class _Address:
    server: str
    ca_file: Path
    admin_token: str


@contextmanager
def real_world(binaries: Binaries, kwok: Path, data_dir: Path) -> Iterator[World]:
    """kube-apiserver, kube-controller-manager and kube-scheduler, with nodes by kwok."""
    cluster = RealKubernetes(
        binaries, data_dir, controller_manager=True, scheduler=True, durable=False, extra_flags=_FLAGS
    )
    cluster.start()
    spawner = Spawner()
    command = [
        str(kwok),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--config={_STAGES}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40",
    ]
    environment = {**os.environ, "HOME": str(data_dir)}
    child = spawner.spawn("kwok", command, folder=data_dir, log=data_dir / "logs" / "kwok.log", environment=environment)
    try:
        _furnish(cluster.admin)
        yield World(cluster, quiet=3.0)
    finally:
        end_all([child], grace=0)
        spawner.close()
        cluster.stop(grace=0)


@contextmanager
def embedded_world(data_dir: Path) -> Iterator[World]:
    """``shoal up``, as a person starts it."""
    shoal = Shoal(data_dir)
    with shoal.foreground("--only=api,controllers,scheduler,nodes") as (_, said):
        assert said.strip(), "shoal up ended before it was ready"
        wait_until((data_dir / "endpoints.json").exists, "shoal up to be ready", within=60)
        pki = data_dir / "pki"
        address = _Address(shoal.endpoints()["api"], pki / "ca.crt", (pki / "admin.token").read_text())
        _furnish(admin_of(data_dir, address.server, timeout=30))
        yield World(address, quiet=1.0)


def a_fake_node(name: str, **more: Any) -> dict[str, Any]:
    """A node that lives without a machine, in both worlds."""
    metadata = {"name": name, **more.pop("metadata", {})}
    metadata["annotations"] = {"kwok.x-k8s.io/node": "fake", **metadata.get("annotations", {})}
    metadata["labels"] = {"kubernetes.io/hostname": name, **metadata.get("labels", {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, **more}


def _furnish(admin: AdminApi) -> None:
    for name in POOL:
        admin.request("POST", "/api/v1/nodes", a_fake_node(name))
    wait_until(lambda: all(_is_usable(admin, name) for name in POOL), "nodes that are ready", within=60)


def _is_usable(admin: AdminApi, name: str) -> bool:
    node = admin.request("GET", f"/api/v1/nodes/{name}")
    conditions = {one["type"]: one["status"] for one in node["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")
