"""Deployments: a template that changes over time, rolled out through one ReplicaSet for each of its versions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.api.meta import ConditionStatus, IntOrString, LabelSelector, Object, Resource, Wire

ROLLING_UPDATE, RECREATE = "RollingUpdate", "Recreate"
"""How a new version takes over: pod by pod, or after all old pods are gone."""

POD_TEMPLATE_HASH = "pod-template-hash"
"""The label that keeps the ReplicaSets of one Deployment, and their pods, apart."""

REVISION = "deployment.kubernetes.io/revision"
"""The place of a version in a Deployment's history, on the Deployment and on its ReplicaSets."""

REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
"""The places that a ReplicaSet had in the history before it was rolled back to."""

DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
"""The size of the Deployment when a ReplicaSet was last given one: another one means that it is being scaled."""

MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
"""The same with the surge, of which a ReplicaSet's size is a share."""


class RollingUpdate(Wire, frozen=True, kw_only=True):
    """By how much a rollout may go over and under the size."""

    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None


class DeploymentStrategy(Wire, frozen=True, kw_only=True):
    """How a new version takes over from an old one."""

    type: str = ""
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Wire, frozen=True, kw_only=True):
    """What is to run, how many times, and how changes are brought about."""

    replicas: int = 1
    selector: LabelSelector | None = None
    template: dict[str, Any] = {}
    strategy: DeploymentStrategy = DeploymentStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    paused: bool = False
    progress_deadline_seconds: int | None = None


class DeploymentCondition(Wire, frozen=True, kw_only=True):
    """One thing that is known of a Deployment."""

    type: str = ""
    status: ConditionStatus
    last_update_time: datetime | None = None
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class DeploymentStatus(Wire, frozen=True, kw_only=True):
    """How far the rollout has come."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    conditions: list[DeploymentCondition] = []
    collision_count: int | None = None


class Deployment(Object, frozen=True, kw_only=True):
    """Keeps a number of pods of the newest version of a template."""

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


DEPLOYMENTS = Resource(type=Deployment, group="apps", version="v1", kind="Deployment", plural="deployments")
