"""Which replicas of a scaling group an update takes next.

A replica is updated by deleting all its cliques: they are made anew from the set's templates. What does not work
anyway goes at once; of what works only one replica goes at a time, and only while enough others do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from shoal.api.grove import PodCliqueScalingGroup, PodCliqueScalingGroupUpdate, PodCliqueSet, ReplicasToUpdate
from shoal.gangs.groups.replicas import GroupReplica
from shoal.gangs.updates import has_seen_templates, is_rolling, updating_replicas


@dataclass(frozen=True, kw_only=True)
class Step:
    """How far the update is from now on, and the replicas to delete once that is written down.

    Written down first, so that the choice of a replica is not forgotten while it is away.
    """

    progress: PodCliqueScalingGroupUpdate | None
    delete: tuple[int, ...] = ()

    @property
    def is_running(self) -> bool:
        """Whether replicas are being replaced."""
        return self.progress is not None and self.progress.update_ended_at is None


def next_step(
    pcs: PodCliqueSet, set_replica: int, group: PodCliqueScalingGroup, replicas: Sequence[GroupReplica], now: datetime
) -> Step:
    """What the update of the set means for a scaling group now."""
    progress = group.status.update_progress
    if not has_seen_templates(pcs):
        return Step(progress=_counted(progress, replicas))
    if not is_rolling(pcs):
        return Step(progress=_counted(_closed(pcs, group, now), replicas))
    if set_replica not in updating_replicas(pcs):
        return Step(progress=_counted(progress, replicas))

    old = [replica for replica in replicas if replica.is_old]
    if progress is None or progress.pod_clique_set_generation_hash != pcs.status.current_generation_hash:
        progress = _opened(pcs, now)
    elif progress.update_ended_at is not None:
        if not old:
            return Step(progress=_counted(progress, replicas))
        progress = _opened(pcs, now)
    return _rolled(progress, old, group.spec.minimum, replicas, now)


def _rolled(
    progress: PodCliqueScalingGroupUpdate,
    old: Sequence[GroupReplica],
    minimum: int,
    replicas: Sequence[GroupReplica],
    now: datetime,
) -> Step:
    selected = _settled(progress.ready_replica_indices_selected_to_update, replicas)
    in_work = selected.current if selected is not None and selected.current not in selected.completed else None
    delete = {replica.index for replica in old if not replica.is_available or replica.index == in_work}
    ready = [replica.index for replica in old if replica.index not in delete]
    if in_work is None and ready and sum(replica.is_available for replica in replicas) >= minimum:
        selected = ReplicasToUpdate(current=min(ready), completed=selected.completed if selected else [])
        delete.add(min(ready))
    is_over = in_work is None and all(replica.is_current for replica in replicas)
    progress = msgspec.structs.replace(
        progress,
        ready_replica_indices_selected_to_update=selected,
        update_ended_at=now if is_over else None,
    )
    return Step(progress=_counted(progress, replicas), delete=tuple(sorted(delete)))


def _settled(selected: ReplicasToUpdate | None, replicas: Sequence[GroupReplica]) -> ReplicasToUpdate | None:
    """The selection, with the replica in work among the completed ones if it is updated, or not wanted any more."""
    if selected is None or selected.current in selected.completed:
        return selected
    waited_for = next((replica for replica in replicas if replica.index == selected.current), None)
    if waited_for is not None and not waited_for.is_updated:
        return selected
    return ReplicasToUpdate(current=selected.current, completed=[*selected.completed, selected.current])


def _opened(pcs: PodCliqueSet, now: datetime) -> PodCliqueScalingGroupUpdate:
    return PodCliqueScalingGroupUpdate(
        update_started_at=now, pod_clique_set_generation_hash=pcs.status.current_generation_hash
    )


def _closed(pcs: PodCliqueSet, group: PodCliqueScalingGroup, now: datetime) -> PodCliqueScalingGroupUpdate | None:
    """The progress where nothing rolls: over; where pods change only when deleted, as soon as it begins."""
    progress, target = group.status.update_progress, pcs.status.current_generation_hash
    is_known = target in (progress and progress.pod_clique_set_generation_hash, _current_hash(group))
    if pcs.spec.updates_on_delete and _current_hash(group) and not is_known:
        progress = _opened(pcs, now)
    if progress is None or progress.update_ended_at is not None:
        return progress
    return msgspec.structs.replace(progress, update_ended_at=now)


def _current_hash(group: PodCliqueScalingGroup) -> str:
    return group.status.current_pod_clique_set_generation_hash


def _counted(
    progress: PodCliqueScalingGroupUpdate | None, replicas: Sequence[GroupReplica]
) -> PodCliqueScalingGroupUpdate | None:
    if progress is None:
        return None
    members = [member for replica in replicas for member in replica.members]
    return msgspec.structs.replace(
        progress,
        updated_pod_cliques_count=sum(member.has_arrived for member in members),
        total_pod_cliques_count=len(members),
    )
