"""The rules for shards: what a scheduler could not be started with is refused where it is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shoal.api.kai_scheduler import SchedulingShard, SchedulingShardSpec, SearchBudgets, UsageStore
from shoal.api.kai_scheduler.shards import BINPACK, SPREAD
from shoal.kube.admission import FieldProblem, invalid, not_supported, required
from shoal.scheduler.admission.durations import duration_problems, parsed_duration

ACTIONS: Final = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
WINDOWS: Final = ("sliding", "tumbling", "cron")


def shard_problems(shard: SchedulingShard) -> Iterator[FieldProblem]:
    """What no scheduler understands, or what contradicts itself."""
    spec = shard.spec
    yield from _placement(spec)
    yield from _depths(spec)
    if spec.min_runtime is not None:
        yield from duration_problems("spec.minRuntime.preemptMinRuntime", spec.min_runtime.preempt_min_runtime)
        yield from duration_problems("spec.minRuntime.reclaimMinRuntime", spec.min_runtime.reclaim_min_runtime)
    if spec.usage_db_config is not None:
        yield from _usage(spec.usage_db_config)
    if spec.scenario_search_budgets is not None:
        yield from _budgets(spec.scenario_search_budgets)


def enabled_actions(spec: SchedulingShardSpec) -> list[str]:
    """The actions of a shard's cycles: the usual ones, less or more what it says of them; spreading moves nothing."""
    strategy = spec.placement_strategy
    spreads = strategy is not None and SPREAD in (strategy.gpu, strategy.cpu)
    usual = {action: not (spreads and action == "consolidation") for action in ACTIONS}
    for action, setup in spec.actions.items():
        if setup.enabled is not None:
            usual[action] = setup.enabled
        else:
            usual.setdefault(action, True)
    return [action for action, is_enabled in usual.items() if is_enabled]


def _placement(spec: SchedulingShardSpec) -> Iterator[FieldProblem]:
    if spec.placement_strategy is None:
        return
    for resource in ("gpu", "cpu"):
        strategy: str = getattr(spec.placement_strategy, resource)
        if strategy and strategy not in (BINPACK, SPREAD):
            yield not_supported(f"spec.placementStrategy.{resource}", strategy, (BINPACK, SPREAD))


def _depths(spec: SchedulingShardSpec) -> Iterator[FieldProblem]:
    known = enabled_actions(spec)
    for action in spec.queue_depth_per_action:
        if action not in known:
            yield not_supported("spec.queueDepthPerAction", action, known)


def _usage(usage: UsageStore) -> Iterator[FieldProblem]:
    parameters = usage.usage_params
    if parameters is None:
        return
    path = "spec.usageDBConfig.usageParams"
    if parameters.window_type and parameters.window_type not in WINDOWS:
        yield not_supported(f"{path}.windowType", parameters.window_type, WINDOWS)
    if parameters.window_type == "cron" and not parameters.cron_string:
        yield required(f"{path}.cronString", "a cron window needs the times at which it begins")
    yield from duration_problems(f"{path}.halfLifePeriod", parameters.half_life_period)
    yield from duration_problems(f"{path}.fetchInterval", parameters.fetch_interval)
    yield from duration_problems(f"{path}.stalenessPeriod", parameters.staleness_period)
    yield from duration_problems(f"{path}.waitTimeout", parameters.wait_timeout)


def _budgets(budgets: SearchBudgets) -> Iterator[FieldProblem]:
    path = "spec.scenarioSearchBudgets"
    for action, limit in budgets.max_action_search_duration.items():
        yield from duration_problems(f"{path}.maxActionSearchDuration[{action}]", limit)
    for generator, limit in budgets.max_generator_search_duration.items():
        yield from duration_problems(f"{path}.maxGeneratorSearchDuration[{generator}]", limit)
    least, most = budgets.min_job_search_duration, budgets.max_job_search_duration
    yield from duration_problems(f"{path}.minJobSearchDuration", least)
    yield from duration_problems(f"{path}.maxJobSearchDuration", most)
    shortest, longest = parsed_duration(least or "0s"), parsed_duration(most or "4m")
    if shortest and longest and longest.nanoseconds > 0 and shortest.nanoseconds >= longest.nanoseconds:
        yield invalid(f"{path}.minJobSearchDuration", least, f"must be less than maxJobSearchDuration ({most or '4m'})")
