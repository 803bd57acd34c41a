"""ClusterTopologyBindings: what the domains are called that pods may be kept together in."""

from __future__ import annotations

from typing import Annotated

from shoal.api.crd import Column, CustomResource, Int64, Version, field_schema
from shoal.api.grove.names import GROUP
from shoal.api.grove.parts import Domain
from shoal.api.meta import Condition, Object, Resource, Wire

SCHEDULER_TOPOLOGY_DRIFT = "SchedulerTopologyDrift"
"""Condition: a scheduler's own topology says something else."""

KEY_PATTERN = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"


class TopologyLevel(Wire, frozen=True, kw_only=True):
    """One level of the cluster, such as a rack."""

    domain: Annotated[Domain, field_schema("What constraints call the level.")]
    key: Annotated[
        str,
        field_schema(
            "The node label whose values are the level's domains.", min_length=1, max_length=63, pattern=KEY_PATTERN
        ),
    ]


class SchedulerTopologyBinding(Wire, frozen=True, kw_only=True):
    """A scheduler's own topology that someone else looks after."""

    scheduler_name: Annotated[str, field_schema("The scheduler.")]
    topology_reference: Annotated[str, field_schema("Its topology object.")]


class ClusterTopologyBindingSpec(Wire, frozen=True, kw_only=True):
    """The levels of the cluster."""

    levels: Annotated[list[TopologyLevel], field_schema("The levels, widest first.", min_items=1)]
    scheduler_topology_bindings: Annotated[
        list[SchedulerTopologyBinding], field_schema("Topologies that are only compared with, not written.")
    ] = []


class SchedulerTopologyStatus(Wire, frozen=True, kw_only=True):
    """Whether one scheduler's topology says the same."""

    scheduler_name: Annotated[str, field_schema("The scheduler.")]
    topology_reference: Annotated[str, field_schema("Its topology object.")]
    in_sync: Annotated[bool, field_schema("Whether it says the same.")]
    scheduler_backend_topology_observed_generation: Annotated[
        Int64 | None, field_schema("The generation of it that was looked at.")
    ] = None
    message: Annotated[str, field_schema("What differs.")] = ""


class ClusterTopologyBindingStatus(Wire, frozen=True, kw_only=True):
    """Whether all schedulers see the same levels."""

    observed_generation: Annotated[Int64 | None, field_schema("The generation that was last acted on.")] = None
    conditions: Annotated[list[Condition], field_schema("The state of the topology.")] = []
    scheduler_topology_statuses: Annotated[list[SchedulerTopologyStatus], field_schema("Scheduler by scheduler.")] = []


class ClusterTopologyBinding(Object, frozen=True, kw_only=True):
    """What the domains are called that pods may be kept together in, and which node labels mean them."""

    spec: Annotated[ClusterTopologyBindingSpec, field_schema("The levels.")]
    status: Annotated[ClusterTopologyBindingStatus, field_schema("What schedulers have of them.")] = (
        ClusterTopologyBindingStatus()
    )


TOPOLOGY_BINDINGS = Resource(
    type=ClusterTopologyBinding,
    group=GROUP,
    version="v1alpha1",
    kind="ClusterTopologyBinding",
    plural="clustertopologybindings",
    namespaced=False,
)

DEFINITION = CustomResource(
    versions=(
        Version(
            resource=TOPOLOGY_BINDINGS,
            status=True,
            columns=(
                Column(name="Domains", path=".spec.levels[*].domain"),
                Column(name="Age", path=".metadata.creationTimestamp", type="date"),
            ),
        ),
    ),
    short_names=("ct",),
)
