"""LeaderWorkerSets: a group for each replica, with its leader and its workers, which may be cut into segments.

Where the number of pods less the leader divides into segments, the leader comes on top of the first one; else it is
counted in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from shoal.api import kai_names
from shoal.api.scheduling_run_ai import SubGroup
from shoal.scheduler.grouper.base import flat_group
from shoal.scheduler.grouper.case import Case
from shoal.scheduler.grouper.fields import Json, Ungroupable, annotations_of, described, mapping, number, text, whole
from shoal.scheduler.grouper.pods import GroupedPod
from shoal.scheduler.grouper.segments import check_segments, segment_constraint, segments
from shoal.scheduler.grouper.wanted import GroupWanted

SIZE: Final = "leaderworkerset.sigs.k8s.io/size"
GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
WORKER_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"
"""Labels and annotations of a LeaderWorkerSet's pods."""

_LEADER, _WORKERS, _SEGMENT = "leader", "workers", "segment"
_TEMPLATE: Final = ("spec", "leaderWorkerTemplate")


def leader_worker_set(case: Case) -> GroupWanted:
    """One replica of a set starts as a whole; where workers are made for a ready leader, the leader starts alone."""
    minimum = _minimum(case)
    cut = _Cut.of(case.top, minimum)
    parts = _whole_parts(minimum) if cut is None else cut.parts(case)
    part_of = _by_role if cut is None else cut.part_of
    index = case.pod.metadata.labels.get(GROUP_INDEX, "")
    group = flat_group(case)
    name = f"{group.name}-group-{int(index)}" if index.isdecimal() else group.name
    return replace(group, name=name, min_member=minimum, sub_groups=parts, part_of=part_of)


def _minimum(case: Case) -> int:
    size = number(case.top, *_TEMPLATE, "size")
    if size is None or size < 1:
        raise Ungroupable(f"{described(case.top)} has {size} in spec.leaderWorkerTemplate.size: put 1 or more there")
    policy = text(case.top, "spec", "startupPolicy") or "LeaderCreated"
    if policy == "LeaderCreated":
        return size
    if policy != "LeaderReady":
        raise Ungroupable(f"{described(case.top)} has a startupPolicy {policy!r}: make it LeaderCreated or LeaderReady")
    pods = case.members or (case.pod,)
    if not any(_index_of(pod) != 0 or pod.spec.node_name for pod in pods):
        return 1
    said = case.pod.metadata.annotations.get(SIZE, "")
    return int(said) if said.isdecimal() else size


def _whole_parts(size: int) -> tuple[SubGroup, ...]:
    leader = SubGroup(name=_LEADER, min_member=1)
    return (leader, SubGroup(name=_WORKERS, min_member=size - 1)) if size > 1 else (leader,)


@dataclass(frozen=True, kw_only=True)
class _Cut:
    """How a replica is cut into segments."""

    size: int
    """Pods of the replica."""
    segment: int
    """Pods of a segment."""
    is_leader_apart: bool

    @staticmethod
    def of(owner: Json, size: int) -> _Cut | None:
        """What the set asks for; None where it is not cut, or its leader is still alone."""
        segment = _segment_size(owner)
        if segment is None or size == 1:
            return None
        if segment < 2 or segment > size:
            raise Ungroupable(f"the segments of {described(owner)} have {segment} pods: make it 2 to {size}")
        policy = text(owner, *_TEMPLATE, "subGroupPolicy", "subGroupPolicyType")
        cut = _Cut(size=size, segment=segment, is_leader_apart=policy == "LeaderExcluded")
        if cut.is_leader_apart and not cut.divides:
            raise Ungroupable(
                f"the {size - 1} workers of {described(owner)} do not divide into segments of {segment}, as "
                "LeaderExcluded demands: change the size of the one or the other"
            )
        check_segments(cut.count, described(owner))
        return cut

    @property
    def divides(self) -> bool:
        return (self.size - 1) % self.segment == 0

    @property
    def count(self) -> int:
        return (self.size - 1) // self.segment if self.divides else -(-self.size // self.segment)

    def parts(self, case: Case) -> tuple[SubGroup, ...]:
        """The segments, the leader, and the workers that share the leader's segment."""
        placement = segment_constraint(
            case.pod.metadata.annotations,
            dict(mapping(case.top, *_TEMPLATE, "workerTemplate", "metadata", "annotations")),
            whole=annotations_of(case.top),
        )
        last = self.segment if self.divides else self.size - (self.count - 1) * self.segment
        cut = segments(_SEGMENT, ((self.count - 1, self.segment), (1, last)), "", placement)
        if self.is_leader_apart:
            return (SubGroup(name=_LEADER, min_member=1), *cut)
        first = cut[0]
        workers = (first.min_member or 0) - (0 if self.divides else 1)
        return (
            SubGroup(name=first.name, min_sub_group=2, topology_constraint=placement),
            *cut[1:],
            SubGroup(name=_LEADER, parent=first.name, min_member=1),
            SubGroup(name=_WORKERS, parent=first.name, min_member=workers),
        )

    def part_of(self, pod: GroupedPod) -> str:
        """The segment of a pod; the first one has parts of its own where the leader is in it."""
        index = _index_of(pod)
        if index <= 0:
            return _LEADER if index == 0 else ""
        segment = (index - 1 if self.divides else index) // self.segment
        if segment >= self.count:
            return ""
        return _WORKERS if segment == 0 and not self.is_leader_apart else f"{_SEGMENT}-{segment}"


def _segment_size(owner: Json) -> int | None:
    said = number(owner, *_TEMPLATE, "subGroupPolicy", "subGroupSize")
    if said is not None:
        return said
    template = mapping(owner, *_TEMPLATE, "workerTemplate", "metadata", "annotations")
    written = annotations_of(owner).get(kai_names.SEGMENT_SIZE) or template.get(kai_names.SEGMENT_SIZE)
    return whole(written, f"annotation {kai_names.SEGMENT_SIZE} of {described(owner)}", least=0) if written else None


def _by_role(pod: GroupedPod) -> str:
    return _LEADER if _index_of(pod) == 0 else _WORKERS


def _index_of(pod: GroupedPod) -> int:
    """The number of a pod in its replica, 0 for the leader; one without a number is a worker."""
    said = pod.metadata.labels.get(WORKER_INDEX)
    where = f"label {WORKER_INDEX} of pod {pod.metadata.namespace}/{pod.metadata.name}"
    return -1 if said is None else whole(said, where, least=0)
