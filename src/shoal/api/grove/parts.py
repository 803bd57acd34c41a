"""What several of Grove's kinds share: where pods go, how many there may be, what they share, and what went wrong."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from shoal.api.crd import Int32, KubernetesType, Rule, field_schema, struct_schema
from shoal.api.meta import Wire

DOMAIN_PATTERN = "^[a-z][a-z0-9-]*$"
DOMAIN_LENGTH = 63

Domain: TypeAlias = Annotated[str, field_schema(min_length=1, max_length=DOMAIN_LENGTH, pattern=DOMAIN_PATTERN)]


class Pack(Wire, frozen=True, kw_only=True):
    """How close together pods run, by domains of a ClusterTopologyBinding."""

    SCHEMA = struct_schema(
        rules=[
            Rule(
                "has(self.required) || has(self.preferred)",
                "pack must specify at least one of required or preferred",
                reason="FieldValueRequired",
            )
        ]
    )

    required: Annotated[Domain | None, field_schema("All pods in one such domain, or none starts.")] = None
    preferred: Annotated[Domain | None, field_schema("One such domain where that can be had.")] = None


class TopologyConstraint(Wire, frozen=True, kw_only=True):
    """Which topology is meant, and how close together pods run in it."""

    SCHEMA = struct_schema(
        rules=[
            Rule(
                "has(self.pack) || has(self.packDomain)",
                "topologyConstraint must specify pack or deprecated packDomain",
                reason="FieldValueRequired",
                field_path=".pack",
            ),
            Rule(
                "!(has(self.packDomain) && has(self.pack) && has(self.pack.required))",
                "must not set both pack.required and deprecated packDomain",
                field_path=".pack.required",
            ),
        ]
    )

    topology_name: Annotated[str, field_schema("The ClusterTopologyBinding; inherited where it is not given.")] = ""
    pack: Annotated[Pack | None, field_schema("How close together.")] = None
    pack_domain: Annotated[Domain | None, field_schema("Superseded by pack.required.")] = None

    @property
    def required(self) -> str:
        """The domain that all pods must share; empty where there is none."""
        return (self.pack and self.pack.required) or self.pack_domain or ""

    @property
    def preferred(self) -> str:
        """The domain that pods should share; empty where there is none."""
        return (self.pack and self.pack.preferred) or ""


Metric: TypeAlias = Annotated[dict[str, Any], field_schema(shape=KubernetesType("autoscaling.v2.MetricSpec"))]


class AutoScaling(Wire, frozen=True, kw_only=True):
    """Between which bounds, and by which metrics, an autoscaler chooses the number of replicas."""

    min_replicas: Annotated[Int32 | None, field_schema("At least so many; the replicas where unset.")] = None
    max_replicas: Annotated[Int32, field_schema("At most so many.")]
    metrics: Annotated[
        list[Metric], field_schema("What the autoscaler goes by, as in autoscaling/v2.", list_type="atomic")
    ] = []


SharingScope: TypeAlias = Literal["AllReplicas", "PerReplica"]


class CliqueSharing(Wire, frozen=True, kw_only=True):
    """A claim that the pods of a clique share."""

    name: Annotated[str, field_schema("The claim's template: one of the set, or a ResourceClaimTemplate.")]
    namespace: Annotated[str, field_schema("Where the ResourceClaimTemplate is; the set's namespace when empty.")] = ""
    scope: Annotated[SharingScope, field_schema("One claim for all replicas, or one for each.")]


class GroupSharingFilter(Wire, frozen=True, kw_only=True):
    """Which parts of a scaling group share a claim."""

    child_clique_names: Annotated[list[str], field_schema("These cliques alone.")] = []


class GroupSharing(Wire, frozen=True, kw_only=True):
    """A claim that the pods of a scaling group share."""

    name: Annotated[str, field_schema("The claim's template: one of the set, or a ResourceClaimTemplate.")]
    namespace: Annotated[str, field_schema("Where the ResourceClaimTemplate is; the set's namespace when empty.")] = ""
    scope: Annotated[SharingScope, field_schema("One claim for all replicas, or one for each.")]
    filter: Annotated[GroupSharingFilter | None, field_schema("Which cliques share it; all when unset.")] = None


class SetSharingFilter(Wire, frozen=True, kw_only=True):
    """Which parts of a set share a claim."""

    child_clique_names: Annotated[list[str], field_schema("These cliques.")] = []
    child_scaling_group_names: Annotated[list[str], field_schema("The cliques of these scaling groups.")] = []


class SetSharing(Wire, frozen=True, kw_only=True):
    """A claim that the pods of a set share."""

    name: Annotated[str, field_schema("The claim's template: one of the set, or a ResourceClaimTemplate.")]
    namespace: Annotated[str, field_schema("Where the ResourceClaimTemplate is; the set's namespace when empty.")] = ""
    scope: Annotated[SharingScope, field_schema("One claim for all replicas, or one for each.")]
    filter: Annotated[SetSharingFilter | None, field_schema("Which parts share it; all when unset.")] = None


class LastError(Wire, frozen=True, kw_only=True):
    """Something that kept a controller from its work when it last tried."""

    code: Annotated[str, field_schema("The error, in one word.")]
    description: Annotated[str, field_schema("The error, for people.")]
    observed_at: Annotated[datetime, field_schema("When it was seen first.")]
