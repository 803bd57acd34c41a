"""DaemonSets: a pod on each node that will have it."""

from __future__ import annotations

from typing import Any

from shoal.api.meta import IntOrString, LabelSelector, Object, Resource, Wire

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""Annotation that the API server keeps: how often the template has changed."""

POD_TEMPLATE_GENERATION = "pod-template-generation"
"""Label of a DaemonSet's pod: the template generation that it was made from."""


class DaemonSetRollingUpdate(Wire, frozen=True, kw_only=True):
    """How many nodes may be without their pod, or have two, while pods are replaced."""

    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DaemonSetUpdateStrategy(Wire, frozen=True, kw_only=True):
    """How pods follow a change of the template: ``RollingUpdate`` or ``OnDelete``."""

    type: str = "RollingUpdate"
    rolling_update: DaemonSetRollingUpdate | None = None


class DaemonSetSpec(Wire, frozen=True, kw_only=True):
    """What pod each node is to have."""

    selector: LabelSelector | None = None
    template: dict[str, Any] = {}
    update_strategy: DaemonSetUpdateStrategy = DaemonSetUpdateStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int = 10


class DaemonSetStatus(Wire, frozen=True, kw_only=True):
    """On how many nodes the pod is wanted, there, ready and up to date."""

    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    collision_count: int | None = None


class DaemonSet(Object, frozen=True, kw_only=True):
    """One pod on each node that its template and the node's taints allow."""

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


DAEMON_SETS = Resource(type=DaemonSet, group="apps", version="v1", kind="DaemonSet", plural="daemonsets")
