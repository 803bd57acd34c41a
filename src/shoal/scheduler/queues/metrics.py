"""The metrics of queues, under KAI's names.

They are made when somebody asks, from what the controller last found of each queue: nothing is left behind by a queue
that is gone or has other labels now, and a process that only stands by shows none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from shoal.api.scheduling_run_ai import Queue
from shoal.scheduler.queues.quotas import Figures, held, quota_of
from shoal.scheduler.queues.settings import QueueSettings
from shoal.scheduler.resource_lists import Amounts

LABELS: Final = ("queue_name", "queue_metadata_name", "queue_display_name")

_FIGURES: Final = (
    ("queue_info", "1 for each queue."),
    ("queue_deserved_gpus", "GPUs that the queue is guaranteed; -1 is unlimited."),
    ("queue_quota_cpu_cores", "CPU cores that the queue is guaranteed; -1 is unlimited."),
    ("queue_quota_memory_bytes", "Bytes of memory that the queue is guaranteed; -1 is unlimited."),
    ("queue_allocated_gpus", "GPUs that jobs of the queue and of those below it hold."),
    ("queue_allocated_cpu_cores", "CPU cores that jobs of the queue and of those below it hold."),
    ("queue_allocated_memory_bytes", "Bytes of memory that jobs of the queue and of those below it hold."),
)
_DIGITS: Final = 4


class QueueMetrics(Collector):
    """What is known of each queue, as metrics."""

    def __init__(self, registry: CollectorRegistry, settings: QueueSettings) -> None:
        self._settings = settings
        self._extra = sorted(settings.queue_label_to_metric_label)
        self._shown: dict[str, tuple[list[str], Figures, Figures]] = {}
        registry.register(self)

    def show(self, queue: Queue, allocated: Amounts) -> None:
        """Shows a queue as it is now."""
        self._shown[queue.metadata.name] = (self._labels(queue), quota_of(queue.spec), held(allocated))

    def forget(self, name: str) -> None:
        """Shows a queue no more."""
        self._shown.pop(name, None)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All metrics of all queues."""
        prefix = f"{self._settings.metrics_namespace}_" if self._settings.metrics_namespace else ""
        labels = [*LABELS, *(self._settings.queue_label_to_metric_label[key] for key in self._extra)]
        families = [GaugeMetricFamily(prefix + name, words, labels=labels) for name, words in _FIGURES]
        for _, (values, quota, allocated) in sorted(self._shown.items()):
            figures = (1.0, *map(_or_minus_one, quota), *allocated)
            for family, figure in zip(families, figures, strict=True):
                family.add_metric(values, round(figure, _DIGITS))
        yield from families

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """The names alone, so that registering asks for no figures."""
        prefix = f"{self._settings.metrics_namespace}_" if self._settings.metrics_namespace else ""
        for name, words in _FIGURES:
            yield GaugeMetricFamily(prefix + name, words)

    def _labels(self, queue: Queue) -> list[str]:
        name, labels = queue.metadata.name, queue.metadata.labels
        defaults = self._settings.queue_label_to_default_metric_value
        return [name, name, queue.spec.display_name, *(labels.get(key, defaults.get(key, "")) for key in self._extra)]


def _or_minus_one(quota: float) -> float:
    """Unlimited as dashboards know it."""
    return -1.0 if quota == math.inf else quota
