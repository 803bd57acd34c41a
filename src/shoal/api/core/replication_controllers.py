"""ReplicationControllers: what ReplicaSets were before, still served and still kept to their size."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.api.meta import ConditionStatus, Object, Resource, Wire

REPLICA_FAILURE = "ReplicaFailure"
"""The condition of a set whose pods could not be made or deleted."""


class ReplicaCondition(Wire, frozen=True, kw_only=True):
    """One thing that is known of a set of replicas."""

    type: str = ""
    status: ConditionStatus
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class ReplicationControllerSpec(Wire, frozen=True, kw_only=True):
    """How many pods there are to be, which they are, and what they are made from."""

    replicas: int = 1
    min_ready_seconds: int = 0
    selector: dict[str, str] = {}
    template: dict[str, Any] = {}


class ReplicationControllerStatus(Wire, frozen=True, kw_only=True):
    """How many pods there are, counted by how far they have come."""

    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0
    conditions: list[ReplicaCondition] = []


class ReplicationController(Object, frozen=True, kw_only=True):
    """Keeps a number of equal pods."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicationControllerStatus = ReplicationControllerStatus()


REPLICATION_CONTROLLERS = Resource(
    type=ReplicationController, group="", version="v1", kind="ReplicationController", plural="replicationcontrollers"
)
