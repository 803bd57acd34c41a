"""StatefulSets: pods with a name, a place in the line and volumes of their own."""

from __future__ import annotations

from typing import Any

from shoal.api.meta import IntOrString, LabelSelector, Object, Resource, Wire

ORDERED_READY, PARALLEL = "OrderedReady", "Parallel"
"""Whether pods come and go one after the other, or all at once."""

ROLLING_UPDATE, ON_DELETE = "RollingUpdate", "OnDelete"
"""Whether pods of an old template are replaced, or wait until somebody deletes them."""

RETAIN, DELETE = "Retain", "Delete"
"""What becomes of the claims of a pod that is not wanted any more."""

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
"""Labels of a StatefulSet's pod: its name, and its ordinal."""


class StatefulSetRollingUpdate(Wire, frozen=True, kw_only=True):
    """How far, and by how many at once, pods are replaced."""

    partition: int = 0
    max_unavailable: IntOrString | None = None


class StatefulSetUpdateStrategy(Wire, frozen=True, kw_only=True):
    """How pods follow a change of the template."""

    type: str = ROLLING_UPDATE
    rolling_update: StatefulSetRollingUpdate | None = None


class ClaimRetentionPolicy(Wire, frozen=True, kw_only=True):
    """What becomes of claims when the set is deleted, and when it is scaled down."""

    when_deleted: str = RETAIN
    when_scaled: str = RETAIN


class Ordinals(Wire, frozen=True, kw_only=True):
    """How pods are numbered."""

    start: int = 0


class StatefulSetSpec(Wire, frozen=True, kw_only=True):
    """What pods are wanted."""

    replicas: int = 1
    selector: LabelSelector | None = None
    template: dict[str, Any] = {}
    volume_claim_templates: list[dict[str, Any]] = []
    service_name: str = ""
    pod_management_policy: str = ORDERED_READY
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    revision_history_limit: int = 10
    min_ready_seconds: int = 0
    persistent_volume_claim_retention_policy: ClaimRetentionPolicy = ClaimRetentionPolicy()
    ordinals: Ordinals = Ordinals()


class StatefulSetStatus(Wire, frozen=True, kw_only=True):
    """How many pods there are, and of which revision."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None


class StatefulSet(Object, frozen=True, kw_only=True):
    """Pods that are not alike: each has a name, a number and volumes that it finds again."""

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


STATEFUL_SETS = Resource(type=StatefulSet, group="apps", version="v1", kind="StatefulSet", plural="statefulsets")
