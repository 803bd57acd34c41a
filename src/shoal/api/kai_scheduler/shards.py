"""Shards: one scheduler for each part of the cluster, and how it works there."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import msgspec

from shoal.api.crd import field_schema
from shoal.api.kai_scheduler.topologies import GROUP
from shoal.api.meta.conditions import Condition
from shoal.api.meta.objects import Object, Wire
from shoal.api.meta.quantity import QuantityString
from shoal.api.meta.resource import Resource

BINPACK: Final = "binpack"
SPREAD: Final = "spread"

_LONG_DURATION = "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
"""Prometheus' durations, which know days, weeks and years."""


class PlacementStrategy(Wire, frozen=True, kw_only=True):
    """Whether jobs are packed onto few nodes or spread over many."""

    gpu: Annotated[str, field_schema("For pods that ask for GPUs: binpack, also when unset, or spread.")] = ""
    cpu: Annotated[str, field_schema("For all other pods: binpack, also when unset, or spread.")] = ""


class MinRuntime(Wire, frozen=True, kw_only=True):
    """How long jobs run undisturbed where their queues say nothing."""

    preempt_min_runtime: Annotated[
        str, field_schema("How long a job runs before its own queue may evict it, as in 30s or 1h.")
    ] = ""
    reclaim_min_runtime: Annotated[
        str, field_schema("How long a job runs before other queues may evict it, as in 30s or 1h.")
    ] = ""


class UsageParameters(Wire, frozen=True, kw_only=True):
    """Which part of the past counts, and how much."""

    half_life_period: Annotated[
        str, field_schema("Use that is this old counts half, as in 24h; 0, also when unset, is no decay.")
    ] = ""
    window_size: Annotated[str, field_schema("How far the past goes back, as in 1w.", pattern=_LONG_DURATION)] = ""
    window_type: Annotated[str, field_schema("sliding, also when unset, tumbling or cron.")] = ""
    tumbling_window_start_time: Annotated[
        datetime | None, field_schema("When the first tumbling window began; now when unset.")
    ] = None
    cron_string: Annotated[str, field_schema("When a cron window begins.")] = ""
    fetch_interval: Annotated[str, field_schema("How often use is read, as in 1m.")] = ""
    staleness_period: Annotated[str, field_schema("Figures older than this count as none, as in 5m.")] = ""
    wait_timeout: Annotated[str, field_schema("How long the first figures are waited for, as in 1m.")] = ""
    extra_params: Annotated[dict[str, str], field_schema("What else a store of this type wants to know.")] = {}


class UsageStore(Wire, frozen=True, kw_only=True):
    """Where the scheduler learns what queues used in the past."""

    # Required, so it must be on the wire even when it is empty: a factory achieves that.
    client_type: Annotated[str, field_schema("The type of store, as in prometheus.", required=True)] = msgspec.field(
        default_factory=str
    )
    connection_string: Annotated[str, field_schema("Its address.")] = ""
    connection_string_env_var: Annotated[str, field_schema("The environment variable that holds its address.")] = ""
    usage_params: Annotated[UsageParameters | None, field_schema("Which part of the past counts.")] = None


class SearchBudgets(Wire, frozen=True, kw_only=True):
    """For how long the scheduler looks for jobs to evict; 0 is for as long as it takes."""

    max_action_search_duration: Annotated[
        dict[str, str], field_schema("By action; default is for all that are not named.")
    ] = {}
    max_job_search_duration: Annotated[str, field_schema("For one waiting job.")] = ""
    min_job_search_duration: Annotated[
        str, field_schema("What each waiting job gets whatever the other budgets say; less than its maximum.")
    ] = ""
    max_generator_search_duration: Annotated[
        dict[str, str], field_schema("By the way of searching; default is for all that are not named.")
    ] = {}


class ActionSetup(Wire, frozen=True, kw_only=True):
    """Whether and when an action runs."""

    enabled: Annotated[bool | None, field_schema("Whether it runs; true when unset.")] = None
    priority: Annotated[int | None, field_schema("The higher runs first.")] = None


class PluginSetup(Wire, frozen=True, kw_only=True):
    """Whether, when and how a plugin runs."""

    enabled: Annotated[bool | None, field_schema("Whether it runs; true when unset.")] = None
    priority: Annotated[int | None, field_schema("The higher runs first.")] = None
    arguments: Annotated[dict[str, str], field_schema("Its arguments, in the place of all defaults.")] = {}


class SchedulingShardSpec(Wire, frozen=True, kw_only=True):
    """One scheduler: its part of the cluster, and how it works there."""

    args: Annotated[dict[str, str], field_schema("Flags of the scheduler, without dashes.")] = {}
    partition_label_value: Annotated[
        str, field_schema("The node pool that is its part; unset, whatever is in no node pool.")
    ] = ""
    placement_strategy: Annotated[PlacementStrategy | None, field_schema("Packed or spread.")] = None
    queue_depth_per_action: Annotated[
        dict[str, int], field_schema("How many jobs of a queue an action looks at, by action.")
    ] = {}
    min_runtime: Annotated[MinRuntime | None, field_schema("How long jobs run undisturbed.")] = None
    k_value: Annotated[float | None, field_schema("How strongly past use counts; 1 when unset.")] = None
    usage_db_config: Annotated[UsageStore | None, field_schema("Where past use is read.")] = msgspec.field(
        name="usageDBConfig", default=None
    )
    scenario_search_budgets: Annotated[SearchBudgets | None, field_schema("How long evictions are sought.")] = None
    plugins: Annotated[dict[str, PluginSetup], field_schema("Plugins by name, where they differ from defaults.")] = {}
    actions: Annotated[dict[str, ActionSetup], field_schema("Actions by name, where they differ from defaults.")] = {}
    go_mem_limit_ratio: Annotated[
        float | None,
        field_schema("Accepted for KAI's sake; without effect here.", minimum=0, exclusive_minimum=True, maximum=1),
    ] = None
    go_mem_limit: Annotated[QuantityString | None, field_schema("Accepted for KAI's sake; without effect here.")] = None


class SetupStatus(Wire, frozen=True, kw_only=True):
    """Whether what was set up is there."""

    conditions: Annotated[list[Condition], field_schema("The state of it.")] = []


class SchedulingShard(Object, frozen=True, kw_only=True):
    """A part of the cluster that has a scheduler of its own."""

    spec: Annotated[SchedulingShardSpec, field_schema("The scheduler.")] = SchedulingShardSpec()
    status: Annotated[SetupStatus, field_schema("Whether it is there.")] = SetupStatus()


SHARDS = Resource(
    type=SchedulingShard, group=GROUP, version="v1", kind="SchedulingShard", plural="schedulingshards", namespaced=False
)
