"""Topologies: the shape of the network that jobs are placed by."""

from __future__ import annotations

from typing import Annotated

from shoal.api.crd import (
    QUALIFIED_NAME_LENGTH,
    QUALIFIED_NAME_PATTERN,
    Rule,
    field_schema,
)
from shoal.api.meta.objects import Object, Wire
from shoal.api.meta.resource import Resource

GROUP = "kai.scheduler"

_LEVEL_RULES = (
    Rule(
        "self.map(level, level.nodeLabel) == oldSelf.map(level, level.nodeLabel)",
        "the node labels of a topology and their order cannot change: only aliases can",
    ),
    Rule(
        "self.all(level, self.exists_one(other, other.nodeLabel == level.nodeLabel))",
        "each node label makes one level only",
    ),
    Rule(
        "!self.exists(level, level.nodeLabel == 'kubernetes.io/hostname')"
        " || self[size(self) - 1].nodeLabel == 'kubernetes.io/hostname'",
        "kubernetes.io/hostname can only be the last level",
    ),
)


class TopologyLevel(Wire, frozen=True, kw_only=True):
    """One level of the network, such as block, rack or host."""

    node_label: Annotated[
        str,
        field_schema(
            "The node label whose values are this level's domains.",
            min_length=1,
            max_length=QUALIFIED_NAME_LENGTH,
            pattern=QUALIFIED_NAME_PATTERN,
        ),
    ]
    alias: Annotated[
        str,
        field_schema(
            "Another name for the level in constraints; unique, and no level's node label.",
            min_length=1,
            max_length=QUALIFIED_NAME_LENGTH,
            pattern=QUALIFIED_NAME_PATTERN,
        ),
    ] = ""


class TopologySpec(Wire, frozen=True, kw_only=True):
    """The levels of the network."""

    levels: Annotated[
        list[TopologyLevel],
        field_schema("The levels, widest first.", min_items=1, max_items=16, list_type="atomic", rules=_LEVEL_RULES),
    ]


class Topology(Object, frozen=True, kw_only=True):
    """How nodes are connected: a hierarchy of domains named by node labels."""

    spec: Annotated[TopologySpec, field_schema("The hierarchy.")]


TOPOLOGIES = Resource(
    type=Topology, group=GROUP, version="v1alpha1", kind="Topology", plural="topologies", namespaced=False
)
