"""Flags and configuration as KAI writes them into a snapshot: durations are counted in nanoseconds there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from shoal.scheduler.configuration import Configuration, SchedulerOptions
from shoal.scheduler.snapshots.snapshot import Json

_NANO: Final = 10**9
_PLAIN: Final[Mapping[str, str]] = {
    "restrictSchedulingNodes": "restrict_node_scheduling",
    "maxNumberConsolidationPreemptees": "max_consolidation_preemptees",
    "scheduleCSIStorage": "schedule_csi_storage",
    "useSchedulingSignatures": "use_scheduling_signatures",
    "fullHierarchyFairness": "full_hierarchy_fairness",
    "allowConsolidatingReclaim": "allow_consolidating_reclaim",
    "numOfStatusRecordingWorkers": "status_workers",
    "detailedFitErrors": "detailed_fit_errors",
    "updatePodEvictionCondition": "update_pod_eviction_condition",
    "queueLabelKey": "queue_label_key",
}
_DURATIONS: Final[Mapping[str, str]] = {
    "globalDefaultStalenessGracePeriod": "default_staleness_grace_period",
    "schedulePeriod": "schedule_period",
}
_OF_SHOAL: Final[Mapping[str, str]] = {"reserveForLargeGangs": "reserve_for_large_gangs"}
_POOL: Final = (("NodePoolLabelKey", "node_pool_label_key"), ("NodePoolLabelValue", "partition_label_value"))


def parameters_of(options: SchedulerOptions) -> Json:
    """Flags as a snapshot has them. A second scheduler name is beside the first, where KAI does not look."""
    made: Json = {
        "schedulerName": options.scheduler_names[0] if options.scheduler_names else "",
        "schedulerNames": list(options.scheduler_names),
        "gangsOnly": list(options.gangs_only),
        "partitionParams": {name: getattr(options, field) for name, field in _POOL},
    }
    for name, field in {**_PLAIN, **_OF_SHOAL}.items():
        made[name] = getattr(options, field)
    for name, field in _DURATIONS.items():
        made[name] = round(getattr(options, field) * _NANO)
    return made


def options_of_parameters(parameters: Json) -> SchedulerOptions:
    """The flags that a snapshot says. KAI leaves out what is false, 0 or empty; a snapshot without any has none."""
    options = SchedulerOptions()
    if not parameters:
        return options
    found: dict[str, Any] = {}
    names = parameters.get("schedulerNames") or [parameters.get("schedulerName")]
    if known := tuple(name for name in names if isinstance(name, str) and name):
        found["scheduler_names"] = known
    found["gangs_only"] = tuple(name for name in parameters.get("gangsOnly") or () if isinstance(name, str))
    for name, field in _PLAIN.items():
        default = getattr(options, field)
        value = parameters.get(name)
        absent = default if isinstance(default, str) else type(default)()
        found[field] = value if isinstance(value, type(default)) else absent
    for name, field in _OF_SHOAL.items():
        if isinstance(parameters.get(name), bool):
            found[field] = parameters[name]
    for name, field in _DURATIONS.items():
        if isinstance(parameters.get(name), int | float):
            found[field] = parameters[name] / _NANO
    pool = parameters.get("partitionParams")
    for name, field in _POOL:
        if isinstance(pool, dict) and isinstance(pool.get(name), str):
            found[field] = pool[name]
    return replace(options, **found)


def configuration_document(configuration: Configuration) -> Json:
    """The configuration as its file would say it."""
    plugins = [
        {"name": one.name, **({"arguments": dict(one.arguments)} if one.arguments else {})}
        for one in configuration.plugins
    ]
    made: Json = {"actions": ", ".join(configuration.actions), "tiers": [{"plugins": plugins}]}
    if configuration.queue_depths:
        made["queueDepthPerAction"] = dict(configuration.queue_depths)
    budgets = configuration.budgets
    made["scenarioSearchBudgets"] = {
        "maxActionSearchDuration": {name: _seconds(length) for name, length in budgets.actions.items()},
        "maxJobSearchDuration": _seconds(budgets.job),
        "minJobSearchDuration": _seconds(budgets.least_for_job),
        "maxGeneratorSearchDuration": {name: _seconds(length) for name, length in budgets.generators.items()},
    }
    return made


def _seconds(length: float) -> str:
    return f"{length:g}s"
