"""How much is used: rates from one measurement to the next, written as NodeMetrics and PodMetrics.

The processor's counters only grow, so a rate needs two of them. A container that began within the last minutes had
used nothing at its start, which is as good as a first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from shoal.api.meta import Duration, Quantity, QuantityFormat, format_time
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.nodes.exposition import Container, Exposition, Measured, Point

LONGEST_WINDOW = 300.0
"""A rate over more seconds than this says nothing of now."""

_SHORTEST_WINDOW = 0.5


@dataclass(frozen=True, slots=True)
class Usage:
    """What is used now: the processor as an average over the seconds before."""

    nanocores: int
    bytes: int
    at: float
    window: float


@dataclass(slots=True)
class Series:
    """The last two measurements that differ in time."""

    latest: Measured
    earlier: Point | None = None

    def usage(self) -> Usage | None:
        """The rate between them; None while it cannot be known."""
        cpu, memory = self.latest.cpu, self.latest.memory
        if cpu is None or memory is None:
            return None
        begin = self._begin(cpu)
        if begin is None:
            return None
        window = cpu.at - begin.at
        return Usage(int((cpu.value - begin.value) / window * 1e9), int(memory.value), cpu.at, window)

    def _begin(self, cpu: Point) -> Point | None:
        if self.earlier is not None and cpu.value >= self.earlier.value:
            return self.earlier
        started = self.latest.started
        if started is not None and _SHORTEST_WINDOW <= cpu.at - started <= LONGEST_WINDOW:
            return Point(0.0, started)
        return None


@dataclass(slots=True)
class Readings:
    """What is known of a node and its containers."""

    node: Series = field(default_factory=lambda: Series(Measured()))
    containers: dict[Container, Series] = field(default_factory=dict)

    def advanced(self, told: Exposition) -> Readings:
        """What is known once an agent has told this; containers that it no longer tells of are forgotten."""
        return Readings(
            node=_advanced(self.node, told.node),
            containers={key: _advanced(self.containers.get(key), new) for key, new in told.containers.items()},
        )


def _advanced(held: Series | None, new: Measured) -> Series:
    before = held.latest.cpu if held is not None else None
    if held is None or before is None or new.cpu is None:
        return Series(new)
    passed = new.cpu.at - before.at
    if 0 <= passed < _SHORTEST_WINDOW:
        # An agent may measure more rarely than it is asked.
        return Series(new, held.earlier)
    return Series(new, before if 0 < passed <= LONGEST_WINDOW else None)


def node_metrics(name: str, labels: Mapping[str, str], usage: Usage, *, now: datetime) -> Object:
    """A NodeMetrics, but for its apiVersion and kind."""
    return {"metadata": _metadata(name, "", labels, now), **_times(usage), "usage": _amounts(usage)}


def pod_metrics(
    namespace: str, name: str, labels: Mapping[str, str], series: Iterable[tuple[str, Series]], *, now: datetime
) -> Object | None:
    """A PodMetrics, but for its apiVersion and kind; None while anything is unknown of any of its containers."""
    used: list[tuple[str, Usage]] = []
    for container, one in series:
        usage = one.usage()
        if usage is None:
            return None
        used.append((container, usage))
    if not used:
        return None
    oldest = min((usage for _, usage in used), key=lambda usage: usage.at)
    return {
        "metadata": _metadata(name, namespace, labels, now),
        **_times(oldest),
        "containers": [{"name": container, "usage": _amounts(usage)} for container, usage in sorted(used)],
    }


def _metadata(name: str, namespace: str, labels: Mapping[str, str], now: datetime) -> Object:
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata["creationTimestamp"] = format_time(now)
    if labels:
        metadata["labels"] = dict(labels)
    return metadata


def _times(usage: Usage) -> Object:
    window = Duration(round(usage.window * 1000) * 10**6)
    return {"timestamp": format_time(datetime.fromtimestamp(usage.at, UTC)), "window": str(window)}


def _amounts(usage: Usage) -> Object:
    cpu = Quantity(usage.nanocores)
    return {"cpu": str(cpu), "memory": str(Quantity.of(usage.bytes, QuantityFormat.BINARY_SI))}
