"""Sets, cliques and gangs in few words, as plain values and as typed objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.grove import PodCliqueSet


def a_pod_spec(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "busybox", "command": ["sleep", "3600"]}], **fields}


def a_clique_template(
    name: str = "workers",
    replicas: int = 2,
    *,
    min_available: int | None = None,
    starts_after: Sequence[str] = (),
    pod_spec: Mapping[str, Any] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """A clique of a set's template, as admission leaves it; ``fields`` are those beside its spec."""
    spec = {
        "roleName": name,
        "replicas": replicas,
        "minAvailable": replicas if min_available is None else min_available,
        "podSpec": dict(pod_spec) if pod_spec is not None else a_pod_spec(),
        **({"startsAfter": list(starts_after)} if starts_after else {}),
    }
    return {"name": name, "spec": spec, **fields}


def a_scaling_group_template(
    name: str, cliques: Sequence[str], replicas: int = 1, *, min_available: int = 1, **fields: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "cliqueNames": list(cliques),
        "replicas": replicas,
        "minAvailable": min_available,
        **fields,
    }


def a_set(
    name: str = "web",
    *cliques: dict[str, Any],
    replicas: int = 1,
    groups: Sequence[dict[str, Any]] = (),
    metadata: Mapping[str, Any] | None = None,
    update: str = "RollingRecreate",
    **template: Any,
) -> dict[str, Any]:
    """A PodCliqueSet as admission leaves it; ``template`` are further fields of its template."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": "default", **(metadata or {})},
        "spec": {
            "replicas": replicas,
            "updateStrategy": {"type": update},
            "template": {
                "cliqueStartupType": "CliqueStartupTypeAnyOrder",
                "terminationDelay": "4h",
                "headlessServiceConfig": {"publishNotReadyAddresses": True},
                "cliques": list(cliques) or [a_clique_template()],
                **({"podCliqueScalingGroups": list(groups)} if groups else {}),
                **template,
            },
        },
    }


def typed(body: Mapping[str, Any]) -> PodCliqueSet:
    """A set as controllers read it."""
    return msgspec.convert(body, PodCliqueSet)
