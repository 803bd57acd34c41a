"""Waiting until controllers have nothing left to do."""

from __future__ import annotations

from prometheus_client import Gauge

from shoal.kube import Manager
from tests.support.clusters.client import until


async def at_rest(manager: Manager) -> None:
    """Waits until every key that waited was reconciled and every event told; delayed keys do not count."""
    await manager.wait_until_working()

    async def is_idle() -> bool:
        return not _sum(manager.metrics.queue_depth) and not _sum(manager.metrics.active_workers)

    await until(is_idle, within=10)
    await manager.events.flush(within=2.0)


def _sum(gauge: Gauge) -> float:
    return sum(sample.value for family in gauge.collect() for sample in family.samples)
