"""Segments: a gang's workers in runs of equal size, each of which stays close together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from shoal.api import kai_names
from shoal.api.scheduling_run_ai import SubGroup, TopologyConstraint
from shoal.scheduler.grouper.fields import Ungroupable
from shoal.scheduler.grouper.wanted import MOST_SEGMENTS


@lru_cache(maxsize=256)
def segments(
    prefix: str, sizes: tuple[tuple[int, int], ...], parent: str, constraint: TopologyConstraint | None
) -> tuple[SubGroup, ...]:
    """The segments ``prefix-0``, ``prefix-1`` and so on; ``sizes`` say how many times which minimum.

    The same gang asks for them once for each of its pods, and may have thousands.
    """
    minimums = [minimum for times, minimum in sizes for _ in range(times)]
    return tuple(
        SubGroup(name=f"{prefix}-{index}", parent=parent, min_member=minimum, topology_constraint=constraint)
        for index, minimum in enumerate(minimums)
    )


def check_segments(count: int, what: str) -> None:
    """Raises Ungroupable where a gang would have more segments than is sensible."""
    if count > MOST_SEGMENTS:
        raise Ungroupable(f"{what} would have {count} segments, and {MOST_SEGMENTS} are the most: make them larger")


def segment_constraint(*annotated: Mapping[str, str], whole: Mapping[str, str]) -> TopologyConstraint | None:
    """How close together a segment stays: the first of several sets of annotations that says it.

    ``whole`` are the annotations of the workload, which may name the topology for all of its parts.
    """

    def said(key: str, *more: Mapping[str, str]) -> str:
        return next((value for one in (*annotated, *more) if (value := one.get(key, ""))), "")

    topology = said(kai_names.TOPOLOGY, whole)
    required, preferred = said(kai_names.SEGMENT_TOPOLOGY_REQUIRED), said(kai_names.SEGMENT_TOPOLOGY_PREFERRED)
    if not topology or not (required or preferred):
        return None
    return TopologyConstraint(topology=topology, required_topology_level=required, preferred_topology_level=preferred)
