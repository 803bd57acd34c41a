"""Counters under names of any kind, which forget what nobody has counted for the longest time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric, UnknownMetricFamily
from prometheus_client.registry import Collector

_TOTAL: Final = "_total"
MOST_SERIES: Final = 10_000


class Counts(Collector):
    """One counter.

    The library has every counter end in ``_total``. Those of KAI's that do not are exposed without a type, so that they
    keep their names. Of labels that name objects, only the last so many are kept: objects come and go for ever.
    """

    def __init__(
        self,
        name: str,
        words: str,
        labels: Sequence[str],
        *,
        registry: CollectorRegistry,
        most: int = MOST_SERIES,
        from_the_start: Iterable[tuple[str, ...]] = (),
    ) -> None:
        """``from_the_start``: the series that are shown though nothing was counted yet."""
        self._name, self._words, self._labels, self._most = name, words, labels, most
        self._lock = threading.Lock()
        self._values: dict[tuple[str, ...], float] = dict.fromkeys(from_the_start, 0.0)
        registry.register(self)

    def add(self, labels: tuple[str, ...] = (), amount: float = 1) -> None:
        """Counts."""
        with self._lock:
            self._values[labels] = self._values.pop(labels, 0.0) + amount
            if len(self._values) > self._most:
                del self._values[next(iter(self._values))]

    def collect(self) -> Iterator[Metric]:
        """What was counted."""
        family = self._family()
        with self._lock:
            values = sorted(self._values.items())
        for labels, value in values:
            family.add_metric(labels, value)
        yield family

    def describe(self) -> Iterator[Metric]:
        """The name alone."""
        yield self._family()

    def _family(self) -> CounterMetricFamily | UnknownMetricFamily:
        if self._name.endswith(_TOTAL):
            return CounterMetricFamily(self._name, self._words, labels=self._labels)
        return UnknownMetricFamily(self._name, self._words, labels=self._labels)
