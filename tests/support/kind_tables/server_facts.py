"""Asks a real API server: what OpenAPI says of each type, and what discovery says of each resource."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.cluster.kubernetes import AdminApi, Binaries, RealKubernetes
from tests.support.programs import kube_binaries

CORE = "v1"


@dataclass(frozen=True)
class ServerFacts:
    """What the server says, as it says it."""

    schemas: dict[str, dict[str, Any]]
    """By OpenAPI name, such as io.k8s.api.core.v1.Pod."""
    resources: dict[str, list[dict[str, Any]]]
    """By group version: the resources and subresources that discovery lists."""


def of_running(admin: AdminApi, group_versions: list[str]) -> ServerFacts:
    """The facts of a server that runs."""
    schemas: dict[str, dict[str, Any]] = {}
    resources: dict[str, list[dict[str, Any]]] = {}
    for group_version in group_versions:
        path = f"api/{group_version}" if group_version == CORE else f"apis/{group_version}"
        schemas |= admin.request("GET", f"/openapi/v3/{path}")["components"]["schemas"]
        resources[group_version] = admin.request("GET", f"/{path}")["resources"]
    return ServerFacts(schemas, resources)


def of_fresh(group_versions: list[str]) -> ServerFacts:
    """The facts of a server that is started for this and thrown away."""
    binaries = Binaries(etcd=_built("etcd"), kube_apiserver=_built("kube-apiserver"))
    with (
        tempfile.TemporaryDirectory(prefix="kind-tables-") as folder,
        RealKubernetes(binaries, Path(folder), durable=False) as cluster,
    ):
        return of_running(cluster.admin, group_versions)


def _built(command: str) -> Path:
    path = kube_binaries.binary(command)
    if path is None:
        raise SystemExit("real Kubernetes is not built: run make kube-binaries")
    return path
