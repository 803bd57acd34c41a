"""The cluster in a few numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from shoal.api.visualizer import JobView, NodeView
from shoal.visualizer.shapes.jobs import job_status
from shoal.visualizer.shapes.resources import exact, whole

NOBODY: Final[Mapping[str, Any]] = MappingProxyType({})


class Devices(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """GPUs with the fractions that whole numbers lose."""

    total: float
    allocated: float


class NodeSums(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What nodes come to."""

    total: int
    healthy: int
    gpus: Devices


class Summary(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename={
        "total_nodes": "totalNodes",
        "healthy_nodes": "healthyNodes",
        "total_gpus": "totalGPUs",
        "allocated_gpus": "allocatedGPUs",
        "total_queues": "totalQueues",
        "job_counts": "jobCounts",
    },
):
    """What the first page shows."""

    total_nodes: int
    healthy_nodes: int
    total_gpus: int
    allocated_gpus: int
    total_queues: int
    job_counts: dict[str, int]
    """Jobs in each state that any is in."""
    gpus: Devices


def node_sums(nodes: Collection[NodeView]) -> NodeSums:
    """Sums over nodes, rounded once at the end."""
    return NodeSums(
        total=len(nodes),
        healthy=sum(node.ready for node in nodes),
        gpus=Devices(
            total=exact(math.fsum(node.allocatable.gpus for node in nodes)),
            allocated=exact(math.fsum(node.used.gpus for node in nodes)),
        ),
    )


def job_counts(
    jobs: Mapping[str, JobView], before: Mapping[str, JobView] = NOBODY, counts_before: Mapping[str, int] = NOBODY
) -> dict[str, int]:
    """How many jobs are in each state; found from the counts of jobs before by looking only at those that changed."""
    changed = [(was, job) for uid, job in jobs.items() if (was := before.get(uid)) is not job]
    counts = dict(counts_before)
    added = 0
    for was, job in changed:
        status = job_status(job)
        counts[status] = counts.get(status, 0) + 1
        if was is None:
            added += 1
        else:
            counts[job_status(was)] -= 1
    if len(before) + added > len(jobs):
        for uid in before.keys() - jobs.keys():
            counts[job_status(before[uid])] -= 1
    return {status: count for status, count in counts.items() if count}


def summary_shape(nodes: NodeSums, queues: int, counts: Mapping[str, int]) -> Summary:
    """The numbers as they are shown."""
    return Summary(
        total_nodes=nodes.total,
        healthy_nodes=nodes.healthy,
        total_gpus=whole(nodes.gpus.total),
        allocated_gpus=whole(nodes.gpus.allocated),
        total_queues=queues,
        job_counts={status: counts[status] for status in sorted(counts)},
        gpus=nodes.gpus,
    )
