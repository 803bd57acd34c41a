"""kai.scheduler: how the scheduler is set up, and the shape of the network that it places jobs by.

``topologies`` is what jobs refer to; ``shards`` and ``configs`` are what an administrator sets up: one scheduler for
each part of the cluster, and what all of KAI's parts have in common.
"""

from shoal.api.crd import CustomResource, Version
from shoal.api.kai_scheduler.configs import CONFIGS, Config, ConfigSpec
from shoal.api.kai_scheduler.shards import (
    SHARDS,
    ActionSetup,
    MinRuntime,
    PlacementStrategy,
    PluginSetup,
    SchedulingShard,
    SchedulingShardSpec,
    SearchBudgets,
    UsageParameters,
    UsageStore,
)
from shoal.api.kai_scheduler.topologies import GROUP, TOPOLOGIES, Topology, TopologyLevel, TopologySpec

DEFINITIONS = (
    CustomResource(versions=(Version(resource=CONFIGS, status=True),)),
    CustomResource(versions=(Version(resource=SHARDS, status=True),)),
    CustomResource(versions=(Version(resource=TOPOLOGIES),)),
)

__all__ = [
    "CONFIGS",
    "DEFINITIONS",
    "GROUP",
    "SHARDS",
    "TOPOLOGIES",
    "ActionSetup",
    "Config",
    "ConfigSpec",
    "MinRuntime",
    "PlacementStrategy",
    "PluginSetup",
    "SchedulingShard",
    "SchedulingShardSpec",
    "SearchBudgets",
    "Topology",
    "TopologyLevel",
    "TopologySpec",
    "UsageParameters",
    "UsageStore",
]
