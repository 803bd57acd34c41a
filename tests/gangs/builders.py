"""Sets, PodCliques and their pods in few words, as plain values and as typed objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.api.core import Pod
from shoal.api.grove import PodClique, PodCliqueSet, names
from shoal.api.meta import format_time
from tests.support.builders.pods import a_pod, controller_reference

START = datetime(2026, 1, 1, tzinfo=UTC)
CLIQUE = "web-0-workers"


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


def a_bare_clique(name: str = "workers", replicas: int = 2, **spec: Any) -> dict[str, Any]:
    """A clique of a set's template with nothing but what must be said, and what is given."""
    return {"name": name, "spec": {"replicas": replicas, "podSpec": a_pod_spec(), **spec}}


def a_bare_set(name: str = "web", *cliques: dict[str, Any], replicas: int = 1, **template: Any) -> dict[str, Any]:
    """A PodCliqueSet as people write it; the rest is left to admission."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "template": {"cliques": list(cliques) or [a_bare_clique()], **template}},
    }


def typed(body: Mapping[str, Any]) -> PodCliqueSet:
    """A set as controllers read it."""
    return msgspec.convert(body, PodCliqueSet)


def a_clique(
    name: str = CLIQUE,
    replicas: int = 2,
    *,
    min_available: int | None = None,
    hash: str = "new",  # noqa: A002 - a test's own word
    status: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    **metadata: Any,
) -> PodClique:
    """A PodClique of the set ``web`` as the cache has it."""
    content = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "generation": 3,
            "creationTimestamp": format_time(START),
            "labels": {
                **names.default_labels("web"),
                names.SET_REPLICA_LABEL: "0",
                names.GANG_LABEL: "web-0",
                names.TEMPLATE_HASH_LABEL: hash,
                **(labels or {}),
            },
            **metadata,
        },
        "spec": {"replicas": replicas, "minAvailable": replicas if min_available is None else min_available},
        "status": dict(status or {}),
    }
    return msgspec.convert(content, PodClique)


def a_clique_pod(
    name: str = "pod",
    *,
    index: int = 0,
    clique: str = CLIQUE,
    hash: str = "new",  # noqa: A002
    node: str = "",
    phase: str = "",
    ready: bool = False,
    scheduled: bool | None = None,
    gated: bool = False,
    going: bool = False,
    age: int = 0,
    containers: Sequence[Mapping[str, Any]] = (),
    init_containers: Sequence[Mapping[str, Any]] = (),
    readiness_gates: Sequence[str] = (),
    **metadata: Any,
) -> Pod:
    """A pod of a PodClique; ``age`` in seconds, and scheduled where it has a node, unless it is said otherwise.

    ``containers`` and ``init_containers`` are the statuses of its containers.
    """
    conditions = []
    if gated:
        conditions.append({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"})
    elif node if scheduled is None else scheduled:
        conditions.append({"type": "PodScheduled", "status": "True"})
    if ready:
        conditions.append({"type": "Ready", "status": "True"})
    return a_pod(
        name,
        namespace="default",
        uid=f"uid-{name}",
        labels={names.CLIQUE_LABEL: clique, names.TEMPLATE_HASH_LABEL: hash, names.POD_INDEX_LABEL: str(index)},
        owner=controller_reference("PodClique", clique, version="grove.io/v1alpha1"),
        created=START - timedelta(seconds=age),
        deleted=START if going else None,
        metadata={"resourceVersion": "7", **metadata},
        node=node,
        phase=phase or ("Running" if node else "Pending"),
        conditions=conditions,
        status={"containerStatuses": list(containers), "initContainerStatuses": list(init_containers)},
        hostname=names.pod_hostname(clique, index),
        schedulingGates=[{"name": names.GATE}] if gated else [],
        readinessGates=[{"conditionType": gate} for gate in readiness_gates],
    )
