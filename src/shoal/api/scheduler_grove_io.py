"""scheduler.grove.io: PodGangs, which say to any scheduler what must start together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from shoal.api.crd import Column, CustomResource, Int32, Version, field_schema
from shoal.api.grove.names import (
    MANAGED_BY_LABEL,
    MANAGER,
    PODS_CARRY_ANNOTATION,
    SCHEDULER_GROUP,
    SCHEDULER_NAME_LABEL,
)
from shoal.api.meta import Condition, Object, Resource, Wire

INITIALIZED, SCHEDULED, READY, UNHEALTHY = "Initialized", "Scheduled", "Ready", "Unhealthy"
DISRUPTION_TARGET = "DisruptionTarget"
"""Conditions: all pods are made and named; enough have a node; enough are ready; too few are; about to be evicted."""

BACKEND_READY = "BackendReady"
"""Condition: the scheduler's own object says the same as the gang."""

PENDING, STARTING, RUNNING = "Pending", "Starting", "Running"
"""Phases: not enough pods have a node; they have, and are not ready; enough are ready."""


class NamespacedName(Wire, frozen=True, kw_only=True):
    """An object of a known kind."""

    namespace: Annotated[str, field_schema("Its namespace.")]
    name: Annotated[str, field_schema("Its name.")]


class PackConstraint(Wire, frozen=True, kw_only=True):
    """How close together pods run, by keys of node labels."""

    required: Annotated[str | None, field_schema("All pods on nodes with one value of this label.")] = None
    preferred: Annotated[str | None, field_schema("One value of this label where that can be had.")] = None


class GangTopologyConstraint(Wire, frozen=True, kw_only=True):
    """Where pods run in the cluster's topology."""

    pack_constraint: Annotated[PackConstraint | None, field_schema("How close together.")] = None


class GangPodGroup(Wire, frozen=True, kw_only=True):
    """Pods of one role in a gang."""

    name: Annotated[str, field_schema("The PodClique.")]
    pod_references: Annotated[list[NamespacedName], field_schema("The pods, by name.")]
    min_replicas: Annotated[Int32, field_schema("How many must start together.")]
    topology_constraint: Annotated[GangTopologyConstraint | None, field_schema("Where these pods run.")] = None


class TopologyGroup(Wire, frozen=True, kw_only=True):
    """Several roles that are kept together."""

    name: Annotated[str, field_schema("Unique in the gang.")]
    pod_group_names: Annotated[list[str], field_schema("The roles.")]
    topology_constraint: Annotated[GangTopologyConstraint | None, field_schema("Where their pods run.")] = None


class PodGangSpec(Wire, frozen=True, kw_only=True):
    """Which pods start together, and where."""

    pod_groups: Annotated[list[GangPodGroup], field_schema("The pods, role by role.", required=True)] = msgspec.field(
        name="podgroups", default_factory=list
    )
    topology_constraint: Annotated[GangTopologyConstraint | None, field_schema("Where all of its pods run.")] = None
    topology_constraint_group_configs: Annotated[
        list[TopologyGroup], field_schema("Roles that are kept together.")
    ] = []
    priority_class_name: Annotated[str, field_schema("The PriorityClass of its pods.")] = ""
    reuse_reservation_ref: Annotated[
        NamespacedName | None, field_schema("A gang whose place this one may take over.")
    ] = None


class PodGangStatus(Wire, frozen=True, kw_only=True):
    """How far a gang is."""

    phase: Annotated[str, field_schema("Pending, Starting or Running.", required=True)] = ""
    conditions: Annotated[list[Condition], field_schema("The state of the gang.")] = []
    placement_score: Annotated[float | None, field_schema("How well it was placed, at most 1.")] = None


class PodGang(Object, frozen=True, kw_only=True):
    """Pods of several roles that start together or not at all."""

    spec: Annotated[PodGangSpec, field_schema("What starts together.", required=True)] = PodGangSpec()
    status: Annotated[PodGangStatus, field_schema("How far it is.")] = PodGangStatus()


def is_guest(gang: PodGang) -> bool:
    """Whether a gang was made by somebody else than a PodCliqueSet's controllers, and asks them to look after it."""
    labels = gang.metadata.labels
    return SCHEDULER_NAME_LABEL in labels and labels.get(MANAGED_BY_LABEL) != MANAGER


class PodFields(Wire, frozen=True, kw_only=True):
    """What pods of a role carry so that their scheduler counts them."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spec: dict[str, Any] = {}
    """Fields of the pod's spec."""


def written_pod_fields(fields: Mapping[str, PodFields]) -> str:
    """What the pods of a gang carry, role by role, as the gang's annotation ``grove.io/pods-carry`` says it."""
    return msgspec.json.encode(fields, order="sorted").decode()


def pod_fields(annotations: Mapping[str, str]) -> dict[str, PodFields]:
    """What the pods of a gang carry, role by role, by the gang's annotations; empty where nobody has said so yet."""
    try:
        return msgspec.json.decode(annotations.get(PODS_CARRY_ANNOTATION, "{}"), type=dict[str, PodFields])
    except msgspec.MsgspecError:
        return {}  # somebody else's words, which are put right


POD_GANGS = Resource(type=PodGang, group=SCHEDULER_GROUP, version="v1alpha1", kind="PodGang", plural="podgangs")

DEFINITIONS = (
    CustomResource(
        versions=(
            Version(
                resource=POD_GANGS,
                status=True,
                columns=(
                    Column(name="Phase", path=".status.phase"),
                    Column(name="Age", path=".metadata.creationTimestamp", type="date"),
                ),
            ),
        ),
        short_names=("pg",),
    ),
)
