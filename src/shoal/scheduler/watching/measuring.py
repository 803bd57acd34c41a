"""The metrics of the scheduler, under KAI's names: what cycles take, what they do, and what queues are entitled to.

Cycles and what is carried out are counted as they come; queues are shown as the last cycle left them, so that nothing
remains of one that is gone. A process that only stands by has decided nothing, and shows nothing of queues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from shoal.scheduler.actions import consolidation, preempt, reclaim
from shoal.scheduler.session.session import Bind, Eviction
from shoal.scheduler.session.settings import SearchBudgets, Settings
from shoal.scheduler.shares.tree import Share
from shoal.scheduler.watching.counting import Counts
from shoal.scheduler.watching.cycles import Outcome

QUEUE_LABELS: Final = ("queue_name", "queue_metadata_name", "queue_display_name")
_MILLI: Final = 1000.0
_GIGA: Final = 1e9
_LATENCIES: Final = tuple(5.0 * 2**step for step in range(10))
_SEARCHES: Final = tuple(0.001 * 2**step for step in range(16))
_SEARCHING: Final = (consolidation.NAME, reclaim.NAME, preempt.NAME)
"""The actions that look for victims."""

_QUEUE_FIGURES: Final = (
    ("queue_fair_share_cpu_cores", "CPU cores that the queue is entitled to now."),
    ("queue_fair_share_memory_gb", "Gigabytes (1,000,000,000 bytes) of memory that the queue is entitled to now."),
    ("queue_fair_share_gpu", "GPUs that the queue is entitled to now."),
    ("queue_cpu_usage", "The part of the cluster's CPU cores that the queue used lately, 0 to 1."),
    ("queue_memory_usage", "The part of the cluster's memory that the queue used lately, 0 to 1."),
    ("queue_gpu_usage", "The part of the cluster's GPUs that the queue used lately, 0 to 1."),
)


class Measuring:
    """Counts what a scheduler does."""

    def __init__(
        self,
        registry: CollectorRegistry,
        engine: Settings,
        actions: Sequence[str],
        *,
        namespace: str = "kai",
        node_pool: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``namespace``: what all names begin with, if anything."""
        prefix = f"{namespace}_" if namespace else ""
        self._pool = node_pool or "default"
        self._plugins = engine.plugins
        self._clock = clock

        def gauge(name: str, words: str, labels: Sequence[str] = ()) -> Gauge:
            return Gauge(prefix + name, words, labels, registry=registry)

        def counts(name: str, words: str, labels: Sequence[str], start: Iterable[tuple[str, ...]] = ()) -> Counts:
            return Counts(prefix + name, words, labels, registry=registry, from_the_start=start)

        def latency(name: str, words: str) -> Histogram:
            return Histogram(prefix + name, words, buckets=_LATENCIES, registry=registry)

        self._whole = gauge(
            "e2e_scheduling_latency_milliseconds", "The last cycle, from the first look to the last order written."
        )
        self._opening = gauge(
            "open_session_latency_milliseconds", "How long the last cycle took until its first action began."
        )
        self._closing = gauge(
            "close_session_latency_milliseconds", "How long the last cycle took to put its model back."
        )
        self._plugin = gauge(
            "plugin_scheduling_latency_milliseconds",
            "What a plugin took of it when the last cycle began and ended.",
            ("plugin", "OnSession"),
        )
        self._action = gauge(
            "action_scheduling_latency_milliseconds", "How long an action of the last cycle took.", ("action",)
        )
        self._scheduling = latency(
            "task_scheduling_latency_milliseconds", "From a pod's creation until it was given a node."
        )
        self._binding = latency("task_bind_latency_milliseconds", "How long an order for the binder took to write.")
        self._querying = latency(
            "usage_query_latency_milliseconds", "How long a server took to say what queues used in the past."
        )

        own, searching = _named(actions), _named(name for name in actions if name in _SEARCHING)
        by_action = ("action",)
        self._served = counts("podgroups_scheduled_by_action", "PodGroups that were given a place.", by_action, own)
        self._sought = counts(
            "podgroups_acted_on_by_action", "PodGroups that victims were sought for.", by_action, searching
        )
        self._simulated = counts("scenarios_simulation_by_action", "Scenarios simulated.", by_action, searching)
        self._filtered = counts(
            "scenarios_filtered_by_action", "Scenarios dropped before they were simulated.", by_action, searching
        )
        self._preempted = counts(
            "total_preemption_attempts", "PodGroups that others were evicted for by preempt.", (), [()]
        )
        self._evicted = counts(
            "pod_group_evicted_pods_total",
            "Pods evicted, by PodGroup; of those that were evicted from last.",
            ("podgroup", "namespace", "uid", "nodepool", "action"),
        )
        self._searches = counts(
            "scenario_search_jobs_total", "Jobs that victims were sought for.", ("action", "result", "reduced_budget")
        )
        self._exhausted = counts(
            "scenario_search_action_budget_exhausted_total", "Actions whose time was up.", by_action, searching
        )
        self._scenarios = counts(
            "scenario_search_scenarios_total", "Scenarios by what became of them.", ("action", "generator", "state")
        )
        self._attempts = Histogram(
            f"{prefix}scenario_search_duration_seconds",
            "How long one scenario took.",
            ("action", "generator", "result"),
            buckets=_SEARCHES,
            registry=registry,
        )
        _show_budgets(prefix, registry, engine.budgets, [name for (name,) in searching])
        self._queues = _QueueFigures(prefix, registry)

    def decided(self, outcome: Outcome) -> None:
        """Counts what a cycle did; in its thread, before the model is put back."""
        measures, session = outcome.session.measures, outcome.session
        for counter, counted in (
            (self._served, measures.served),
            (self._sought, measures.sought),
            (self._simulated, session.effort),
            (self._filtered, measures.filtered),
            (self._exhausted, measures.exhausted),
        ):
            _add_all(counter, counted)
        if attempts := measures.served[preempt.NAME]:
            self._preempted.add((), attempts)
        for tried, count in measures.searches.items():
            self._searches.add((tried.action, tried.result, str(tried.is_cut_short).lower()), count)
        for scenario, count in measures.scenarios.items():
            self._scenarios.add(scenario, count)
        for attempt, lengths in measures.attempts.items():
            series = self._attempts.labels(*attempt)
            for seconds in lengths:
                series.observe(seconds)
        self._queues.show(session.shares)

    def ended(self, outcome: Outcome) -> None:
        """Shows how long a cycle took, once it is over."""
        self._whole.set(outcome.whole * _MILLI)
        self._opening.set(outcome.opening * _MILLI)
        self._closing.set(outcome.closing * _MILLI)
        measures = outcome.session.measures
        for action, seconds in measures.seconds.items():
            self._action.labels(action).set(seconds * _MILLI)
        for plugin in self._plugins:
            # Plugins are asked, not opened: what they take is part of the actions. Only shares are divided beforehand.
            seconds = measures.dividing if plugin == "proportion" else 0.0
            self._plugin.labels(plugin, "OnSessionOpen").set(seconds * _MILLI)
            self._plugin.labels(plugin, "OnSessionClose").set(0.0)

    def bound(self, bind: Bind, seconds: float) -> None:
        """The binder was given an order, which took so long to write."""
        self._binding.observe(seconds * _MILLI)
        self._scheduling.observe(max(0.0, self._clock() - bind.task.created) * _MILLI)

    def evicted(self, eviction: Eviction) -> None:
        """A pod was evicted."""
        job = eviction.task.job
        self._evicted.add((job.name, job.namespace, job.uid, self._pool, eviction.reason.action))

    def queried(self, seconds: float) -> None:
        """A server said what queues used, and took so long for it."""
        self._querying.observe(seconds * _MILLI)


class _QueueFigures(Collector):
    """What queues are entitled to and what they used, as the last cycle had it."""

    def __init__(self, prefix: str, registry: CollectorRegistry) -> None:
        self._prefix = prefix
        self._shown: Sequence[tuple[tuple[str, str, str], tuple[float, ...]]] = ()
        registry.register(self)

    def show(self, shares: Iterable[Share]) -> None:
        """Shows these."""
        self._shown = [(_labels(share), _figures(share)) for share in shares]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All figures of all queues."""
        families = list(self.describe())
        for labels, figures in self._shown:
            for family, figure in zip(families, figures, strict=True):
                family.add_metric(labels, figure)
        yield from families

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """The names alone."""
        for name, words in _QUEUE_FIGURES:
            yield GaugeMetricFamily(self._prefix + name, words, labels=QUEUE_LABELS)


def _labels(share: Share) -> tuple[str, str, str]:
    """The first is what people call a queue: its display name, where it has one."""
    queue = share.queue
    return queue.title or queue.name, queue.name, queue.title


def _figures(share: Share) -> tuple[float, ...]:
    fair, used = share.fair_share, share.queue.usage
    return fair.cpu / _MILLI, fair.memory / _GIGA, fair.gpu, used.cpu, used.memory, used.gpu


def _named(names: Iterable[str]) -> list[tuple[str, ...]]:
    return [(name,) for name in names]


def _add_all(counter: Counts, counted: Mapping[str, int]) -> None:
    for name, count in counted.items():
        if count:
            counter.add((name,), count)


def _show_budgets(prefix: str, registry: CollectorRegistry, budgets: SearchBudgets, actions: Iterable[str]) -> None:
    """What searches may take, which never changes; 0 is as long as it takes."""
    of_action = Gauge(
        f"{prefix}scenario_search_action_budget_configured_seconds",
        "How long an action may look for victims; 0: as long as it takes.",
        ("action",),
        registry=registry,
    )
    for action in actions:
        of_action.labels(action).set(budgets.of_action(action))
    Gauge(
        f"{prefix}scenario_search_job_budget_configured_seconds",
        "How long victims may be sought for one job; 0: as long as it takes.",
        registry=registry,
    ).set(budgets.job)
    of_generator = Gauge(
        f"{prefix}scenario_search_generator_budget_configured_seconds",
        "How long victims may be sought for one job in one way; 0: as long as it takes.",
        ("generator",),
        registry=registry,
    )
    for generator, seconds in budgets.generators.items():
        of_generator.labels(generator).set(seconds)
