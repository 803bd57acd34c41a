"""How many TrainJobs there are, by runtime and state, and how those ended that did."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from shoal.api.meta import find_condition, is_true
from shoal.api.trainer import TrainJob, TrainJobStatus, names

RUNNING = "Running"
_RUNTIME = ("runtime_kind", "runtime")
_DURATIONS = (10, 30, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600)


class TrainJobMetrics:
    """The figures of one process."""

    def __init__(self, registry: CollectorRegistry, train_jobs: Callable[[], Iterable[TrainJob]]) -> None:
        labels = (*_RUNTIME, "result", "reason")
        self._ended = Counter("trainer_trainjobs_finished_total", "TrainJobs that ended.", labels, registry=registry)
        self._durations = Histogram(
            "trainer_trainjob_duration_seconds",
            "How long TrainJobs took, from when they were first allowed to run.",
            (*_RUNTIME, "result"),
            buckets=_DURATIONS,
            registry=registry,
        )
        registry.register(_Present(train_jobs))

    def count_end(self, train_job: TrainJob, status: TrainJobStatus) -> None:
        """Counts a TrainJob that has just ended."""
        result = state_of(status)
        end = find_condition(status.conditions, result)
        runtime = _runtime_of(train_job)
        self._ended.labels(*runtime, result, end.reason if end else "").inc()
        begun = status.start_time or train_job.metadata.creation_timestamp
        if begun is not None and status.completion_time is not None:
            seconds = (status.completion_time - begun).total_seconds()
            self._durations.labels(*runtime, result).observe(max(0.0, seconds))


class _Present(Collector):
    """Counts what is there when it is asked: nothing has to be kept up to date."""

    def __init__(self, train_jobs: Callable[[], Iterable[TrainJob]]) -> None:
        self._train_jobs = train_jobs

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily("trainer_trainjobs", "TrainJobs, by runtime and state.", labels=(*_RUNTIME, "state"))
        count = Count((*_runtime_of(one), state_of(one.status)) for one in self._train_jobs())
        for labels, number in sorted(count.items()):
            family.add_metric(labels, number)
        yield family


def state_of(status: TrainJobStatus) -> str:
    """What a TrainJob is in a word: the condition that holds, or else that it runs."""
    for name in (names.FAILED, names.COMPLETE, names.SUSPENDED):
        if is_true(status.conditions, name):
            return name
    return RUNNING


def _runtime_of(train_job: TrainJob) -> tuple[str, str]:
    return train_job.spec.runtime_ref.kind, train_job.spec.runtime_ref.name
