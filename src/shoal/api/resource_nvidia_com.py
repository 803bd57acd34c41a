"""resource.nvidia.com: ComputeDomains, in which pods on several nodes reach each other's GPU memory.

NVIDIA's DRA driver serves them; Shoal writes them.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from shoal.api.crd import CustomResource, Rule, Version, field_schema, struct_schema
from shoal.api.meta import Object, Resource, Wire

GROUP = "resource.nvidia.com"


class ComputeDomainTemplate(Wire, frozen=True, kw_only=True):
    """The ResourceClaimTemplate that the driver makes for a domain."""

    name: Annotated[str, field_schema("Its name.")]


class ComputeDomainChannel(Wire, frozen=True, kw_only=True):
    """How pods come into a domain."""

    resource_claim_template: Annotated[ComputeDomainTemplate, field_schema("The template of the claims of its pods.")]
    allocation_mode: Annotated[
        Literal["All", "Single"] | None, field_schema("All channels of the domain, or one.", default="Single")
    ] = None


class ComputeDomainSpec(Wire, frozen=True, kw_only=True):
    """How large a domain is, and how pods come into it."""

    SCHEMA = struct_schema(rules=[Rule("self == oldSelf", "a ComputeDomain's spec cannot change")])

    num_nodes: Annotated[
        int, field_schema("The nodes that are expected; 0 where that is not known.", minimum=0, default=0)
    ] = 0
    channel: Annotated[ComputeDomainChannel | None, field_schema("How pods come into it.", required=True)] = None


class ComputeDomainNode(Wire, frozen=True, kw_only=True):
    """A node of a domain."""

    name: Annotated[str, field_schema("The node.")]
    ip_address: Annotated[str, field_schema("Where its daemon is.")]
    clique_id: Annotated[str, field_schema("The NVLink partition that it belongs to.")] = msgspec.field(name="cliqueID")
    index: Annotated[int | None, field_schema("Its number, which its name in DNS is made of.")] = None
    status: Annotated[
        Literal["Ready", "NotReady"] | None, field_schema("Whether its daemon is ready.", default="NotReady")
    ] = None


class ComputeDomainStatus(Wire, frozen=True, kw_only=True):
    """Whether all nodes of a domain are there."""

    status: Annotated[
        Literal["Ready", "NotReady"] | None,
        field_schema("Whether they are.", default="NotReady", required=True),
    ] = None
    nodes: Annotated[
        list[ComputeDomainNode], field_schema("The nodes that are there.", list_type="map", list_map_keys=["name"])
    ] = []


class ComputeDomain(Object, frozen=True, kw_only=True):
    """Nodes whose pods reach each other's GPU memory."""

    spec: Annotated[ComputeDomainSpec | None, field_schema("What is asked for.")] = None
    status: Annotated[ComputeDomainStatus | None, field_schema("What there is.")] = None


COMPUTE_DOMAINS = Resource(
    type=ComputeDomain, group=GROUP, version="v1beta1", kind="ComputeDomain", plural="computedomains"
)

DEFINITIONS = (CustomResource(versions=(Version(resource=COMPUTE_DOMAINS, status=True),)),)
