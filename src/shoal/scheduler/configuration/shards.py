"""A SchedulingShard as the configuration file and the flags that KAI's operator renders it to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from shoal.api.kai_scheduler import SchedulingShard, SchedulingShardSpec
from shoal.api.kai_scheduler.shards import BINPACK, SPREAD
from shoal.scheduler.configuration.options import SchedulerOptions, options_of

PLUGIN_PRIORITIES: Final[Mapping[str, int]] = {
    "predicates": 1900,
    "proportion": 1800,
    "priority": 1700,
    "nodeavailability": 1600,
    "resourcetype": 1500,
    "podaffinity": 1400,
    "elastic": 1300,
    "kubeflow": 1200,
    "ray": 1100,
    "subgrouporder": 1000,
    "taskorder": 900,
    "nominatednode": 800,
    "dynamicresources": 700,
    "minruntime": 600,
    "topology": 500,
    "snapshot": 400,
    "sg-nodelocalgreedy": 360,
    "sg-multinodegang": 350,
    "gpupack": 300,
    "gpuspread": 300,
    "nodeplacement": 200,
    "gpusharingorder": 100,
}
"""The higher comes first; among equals, the first by name."""
ACTION_PRIORITIES: Final[Mapping[str, int]] = {
    "allocate": 500,
    "consolidation": 400,
    "reclaim": 300,
    "preempt": 200,
    "stalegangeviction": 100,
}


@dataclass(slots=True)
class _Part:
    """An action or a plugin."""

    priority: int = 0
    is_enabled: bool = True
    arguments: Mapping[str, str] = field(default_factory=dict)


def shard_configuration(shard: SchedulingShard, *, prometheus: str = "") -> dict[str, Any]:
    """The configuration file of a shard's scheduler, as a document.

    ``prometheus``: the address of the one that the cluster's Config names, for a shard that wants one and names none.
    """
    spec = shard.spec
    plugins = _in_order(_plugins(spec))
    rendered: dict[str, Any] = {
        "actions": ", ".join(name for name, _ in _in_order(_actions(spec))),
        "tiers": [
            {
                "plugins": [
                    {"name": name, **({"arguments": dict(part.arguments)} if part.arguments else {})}
                    for name, part in plugins
                ]
            }
        ],
    }
    if spec.queue_depth_per_action:
        rendered["queueDepthPerAction"] = dict(spec.queue_depth_per_action)
    if spec.usage_db_config is not None:
        usage = msgspec.to_builtins(spec.usage_db_config)
        names_one = usage.get("connectionString") or usage.get("connectionStringEnvVar")
        if usage.get("clientType") == "prometheus" and not names_one and prometheus:
            usage["connectionString"] = prometheus
        rendered["usageDBConfig"] = usage
    if spec.scenario_search_budgets is not None and (budgets := msgspec.to_builtins(spec.scenario_search_budgets)):
        rendered["scenarioSearchBudgets"] = budgets
    return rendered


def configuration_text(shard: SchedulingShard, *, prometheus: str = "") -> str:
    """The same as the text that is ``config.yaml`` in the ConfigMap ``<scheduler>-<shard>``."""
    return msgspec.yaml.encode(shard_configuration(shard, prometheus=prometheus), order="sorted").decode()


def shard_options(shard: SchedulingShard, base: SchedulerOptions | None = None) -> SchedulerOptions:
    """The flags of a shard's scheduler: its part of the cluster, then its own arguments; raises ConfigurationError.

    Arguments that no scheduler knows are left out, as KAI's operator does.
    """
    values = {"partition-label-value": shard.spec.partition_label_value, **shard.spec.args}
    return options_of(values, source=f"SchedulingShard {shard.metadata.name}, spec.args", base=base)


def _plugins(spec: SchedulingShardSpec) -> dict[str, _Part]:
    gpu, cpu = _strategies(spec)
    parts = {name: _Part(priority) for name, priority in PLUGIN_PRIORITIES.items()}
    parts["gpupack"].is_enabled = parts["gpusharingorder"].is_enabled = gpu == BINPACK
    parts["gpuspread"].is_enabled = gpu != BINPACK
    parts["nodeplacement"].arguments = {"cpu": cpu, "gpu": gpu}
    if spec.k_value is not None:
        parts["proportion"].arguments = {"kValue": _number(spec.k_value)}
    if spec.min_runtime is not None:
        lengths = {
            "defaultPreemptMinRuntime": spec.min_runtime.preempt_min_runtime,
            "defaultReclaimMinRuntime": spec.min_runtime.reclaim_min_runtime,
        }
        parts["minruntime"].arguments = {name: length for name, length in lengths.items() if length}
    for name, setup in spec.plugins.items():
        part = parts.setdefault(name, _Part())
        part.is_enabled = part.is_enabled if setup.enabled is None else setup.enabled
        part.priority = part.priority if setup.priority is None else setup.priority
        part.arguments = setup.arguments or part.arguments
    return parts


def _actions(spec: SchedulingShardSpec) -> dict[str, _Part]:
    parts = {name: _Part(priority) for name, priority in ACTION_PRIORITIES.items()}
    parts["consolidation"].is_enabled = SPREAD not in _strategies(spec)
    for name, setup in spec.actions.items():
        part = parts.setdefault(name, _Part())
        part.is_enabled = part.is_enabled if setup.enabled is None else setup.enabled
        part.priority = part.priority if setup.priority is None else setup.priority
    return parts


def _strategies(spec: SchedulingShardSpec) -> tuple[str, str]:
    strategy = spec.placement_strategy
    return (strategy and strategy.gpu) or BINPACK, (strategy and strategy.cpu) or BINPACK


def _in_order(parts: Mapping[str, _Part]) -> list[tuple[str, _Part]]:
    enabled = [(name, part) for name, part in parts.items() if part.is_enabled]
    return sorted(enabled, key=lambda one: (-one[1].priority, one[0]))


def _number(value: float) -> str:
    """As Go writes it: without a point where none is needed."""
    return str(int(value)) if value == int(value) else repr(value)
