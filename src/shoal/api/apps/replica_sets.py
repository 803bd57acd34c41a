"""ReplicaSets: a number of equal pods."""

from __future__ import annotations

from typing import Any

from shoal.api.core.replication_controllers import ReplicaCondition
from shoal.api.meta import LabelSelector, Object, Resource, Wire


class ReplicaSetSpec(Wire, frozen=True, kw_only=True):
    """How many pods there are to be, which they are, and what they are made from."""

    replicas: int = 1
    min_ready_seconds: int = 0
    selector: LabelSelector | None = None
    template: dict[str, Any] = {}


class ReplicaSetStatus(Wire, frozen=True, kw_only=True):
    """How many pods there are, counted by how far they have come."""

    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    conditions: list[ReplicaCondition] = []


class ReplicaSet(Object, frozen=True, kw_only=True):
    """Keeps a number of equal pods."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


REPLICA_SETS = Resource(type=ReplicaSet, group="apps", version="v1", kind="ReplicaSet", plural="replicasets")
