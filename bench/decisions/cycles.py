"""One cycle on a workload, as the scheduler runs it, and how long it took."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass

from bench.decisions.clusters import NOW
from bench.decisions.workloads import Workload
from shoal.scheduler.actions import cycle
from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.model.cluster import Cluster
from shoal.scheduler.session.filters import Filters, FilterSettings
from shoal.scheduler.session.pod_index import PodIndex
from shoal.scheduler.session.session import Session, shares_of
from shoal.scheduler.session.settings import Settings
from shoal.scheduler.shares.tree import QueueTree


class DecidedOtherwise(Exception):
    """A cycle did not decide what it was measured for."""


@dataclass(frozen=True, slots=True)
class Took:
    """What a cycle took, in seconds."""

    deciding: float
    """From the model as it is kept to the decisions."""
    putting_back: float
    """Until the model is as it was."""
    simulations: int
    cpu: float
    """CPU seconds of deciding: what else the machine does changes them less."""


class Kept:
    """What the scheduler keeps from cycle to cycle beside the model: made once, not measured."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self.pools = Pools(cluster.jobs.values())
        self.shares: QueueTree = shares_of(cluster, settings, cluster.gpu_memory_range[0])
        self.filters = Filters(cluster.nodes, FilterSettings())
        self.pods = PodIndex(cluster.nodes)
        for row, node in enumerate(cluster.nodes.nodes):
            for hold in node.holds.values():
                self.pods.add(hold.task, row)


def measure(workload: Workload, rounds: int, limit: float) -> list[Took]:
    """So many cycles on the same cluster, each put back before the next; no more of them once the limit has passed.

    The garbage of making the cluster is not in them.
    """
    settings = Settings()
    cluster = workload.make()
    kept = Kept(cluster, settings)
    gc.collect()
    gc.freeze()
    try:
        took = [_once(workload, cluster, kept, settings)]
        while len(took) < rounds and sum(one.deciding for one in took) < limit:
            took.append(_once(workload, cluster, kept, settings))
        return took
    finally:
        gc.unfreeze()


def _once(workload: Workload, cluster: Cluster, kept: Kept, settings: Settings) -> Took:
    cpu, start = time.process_time(), time.perf_counter()
    session = Session(cluster, settings, now=NOW, filters=kept.filters, pods=kept.pods, shares=kept.shares)
    cycle.run(session, workload.actions, kept.pools)
    decided, cpu = time.perf_counter(), time.process_time() - cpu
    calls = session.calls
    session.close()
    closed = time.perf_counter()
    found = calls.binds, calls.evictions, calls.pipelines
    if found != (workload.binds, workload.evictions, workload.pipelines):
        raise DecidedOtherwise(f"{workload.name}: {found} binds, evictions and promises, not as it should be")
    return Took(decided - start, closed - decided, sum(session.effort.values()), cpu)
