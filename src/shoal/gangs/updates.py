"""Updates: how a change of a set's templates reaches its replicas, one of them at a time.

The set's status says what runs: ``updateProgress`` without an end, and in ``currentlyUpdating`` the replica in work.
Everyone else follows: cliques in no scaling group replace their pods, scaling groups recreate their cliques. All of it
goes by hashes of templates, so that a change in the middle of an update is just another hash to arrive at.

Give these rules the set with the status that is about to be written: the hash that they go by is the one in its status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from shoal.api.grove import (
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodCliqueSetStatus,
    PodCliqueSetUpdate,
    ReplicaUpdate,
    names,
)
from shoal.gangs.hashes import generation_hash, template_hash
from shoal.gangs.plan import PlannedClique, standalone_cliques
from shoal.gangs.replicas import ReplicaSeen
from shoal.gangs.termination import broken_since, due_of, termination_delay, was_ever_healthy, was_ever_scheduled

Hashes = Mapping[str, str]
"""The hash of each clique's template, by the clique's name."""


def expected_hashes(pcs: PodCliqueSet) -> Hashes:
    """The hashes that the set's cliques should have: computed once by whoever looks at many of them."""
    template = pcs.spec.template
    return {clique.name: template_hash(clique, template.priority_class_name) for clique in template.cliques}


def has_seen_templates(pcs: PodCliqueSet) -> bool:
    """Whether the set's status tells of the templates that it has now: until then nothing can be said of updates."""
    return pcs.status.current_generation_hash == generation_hash(pcs)


def is_rolling(pcs: PodCliqueSet) -> bool:
    """Whether an update is on its way through the replicas."""
    progress = pcs.status.update_progress
    return progress is not None and progress.update_ended_at is None and not pcs.spec.updates_on_delete


def updating_replicas(pcs: PodCliqueSet) -> frozenset[int]:
    """The replicas whose pods are replaced now; none when nothing rolls."""
    progress = pcs.status.update_progress
    if progress is None or not is_rolling(pcs):
        return frozenset()
    return frozenset(replica.replica_index for replica in progress.currently_updating if not replica.update_ended_at)


def has_template(
    pcs: PodCliqueSet, planned: PlannedClique, clique: PodClique | None, *, hashes: Hashes | None = None
) -> bool:
    """Whether a clique is there and was made from the template that the set has now, whatever its pods are."""
    if clique is None or clique.metadata.is_deleting:
        return False
    return clique.metadata.labels.get(names.TEMPLATE_HASH_LABEL) == _expected(pcs, planned, hashes)


def is_clique_updated(
    pcs: PodCliqueSet, planned: PlannedClique, clique: PodClique | None, *, hashes: Hashes | None = None
) -> bool:
    """Whether a clique has arrived at the set's templates with enough ready pods.

    One that was scaled below its minimum cannot have as many, and must not hold up an update for ever.
    ``hashes`` are the expected ones, for callers that ask for many cliques of one set.
    """
    if clique is None or not has_template(pcs, planned, clique, hashes=hashes):
        return False
    status, enough = clique.status, min(clique.spec.minimum, clique.spec.replicas)
    return (
        status.current_pod_clique_set_generation_hash == pcs.status.current_generation_hash
        and status.current_pod_template_hash == _expected(pcs, planned, hashes)
        and status.ready_replicas >= enough
        and status.updated_replicas >= enough
    )


def is_group_updated(pcs: PodCliqueSet, group: PodCliqueScalingGroup | None) -> bool:
    """Whether a scaling group has arrived at the set's templates with enough of its replicas available."""
    return (
        group is not None
        and not group.metadata.is_deleting
        and group.status.current_pod_clique_set_generation_hash == pcs.status.current_generation_hash
        and group.status.available_replicas >= min(group.spec.minimum, group.spec.replicas)
    )


def is_replica_updated(pcs: PodCliqueSet, replica: ReplicaSeen, *, hashes: Hashes | None = None) -> bool:
    """Whether all cliques and scaling groups of a replica have arrived at the set's templates."""
    return all(
        is_clique_updated(pcs, planned, replica.cliques.get(planned.name), hashes=hashes)
        for planned in standalone_cliques(pcs, replica.index)
    ) and all(is_group_updated(pcs, replica.groups.get(name)) for name in _group_names(pcs, replica.index))


def start(pcs: PodCliqueSet, new_hash: str, now: datetime) -> PodCliqueSetStatus:
    """The set's status once its templates have this hash.

    The first hash is only stored. A change in the middle of an update begins it anew with the replica that was in work:
    choosing another one would leave two of them half done.
    """
    status = pcs.status
    if status.current_generation_hash == new_hash:
        return status
    if not status.current_generation_hash:
        return msgspec.structs.replace(status, current_generation_hash=new_hash)
    in_work = [ReplicaUpdate(replica_index=index, update_started_at=now) for index in sorted(updating_replicas(pcs))]
    return msgspec.structs.replace(
        status,
        current_generation_hash=new_hash,
        updated_replicas=0,
        update_progress=PodCliqueSetUpdate(
            update_started_at=now,
            update_ended_at=now if pcs.spec.updates_on_delete else None,
            currently_updating=in_work,
        ),
    )


def advance(pcs: PodCliqueSet, replicas: Sequence[ReplicaSeen], now: datetime) -> PodCliqueSetUpdate | None:
    """The next ``updateProgress``: the replica in work until it is updated, then the next one, then the end.

    Counts are of cliques in no scaling group, and of scaling groups. They are kept true while an update rolls, and
    always where pods are updated by deleting them; those of an update that has rolled to its end stay as they were.
    """
    progress = pcs.status.update_progress
    if progress is None:
        return None
    if progress.update_ended_at is not None and not pcs.spec.updates_on_delete:
        return progress
    hashes = expected_hashes(pcs)
    wanted = [replica for replica in replicas if replica.index < pcs.spec.replicas]
    counted = _with_counts(pcs, progress, wanted, hashes)
    if pcs.spec.updates_on_delete:
        ended = progress.update_ended_at or now
        return msgspec.structs.replace(counted, update_ended_at=ended, currently_updating=[])

    left = [replica for replica in wanted if not _is_done(pcs, replica, hashes)]
    in_work = updating_replicas(pcs) & {replica.index for replica in left}
    if in_work:
        kept = [replica for replica in progress.currently_updating if replica.replica_index == min(in_work)]
        return msgspec.structs.replace(counted, currently_updating=kept)
    if not left:
        return msgspec.structs.replace(counted, update_ended_at=now, currently_updating=[])
    chosen = ReplicaUpdate(replica_index=next_replica(pcs, left, now), update_started_at=now)
    return msgspec.structs.replace(counted, currently_updating=[chosen])


def next_replica(pcs: PodCliqueSet, left: Sequence[ReplicaSeen], now: datetime) -> int:
    """The replica whose update costs least: one without scheduled pods, then one that is broken, then the first."""
    delay = termination_delay(pcs)

    def cost(replica: ReplicaSeen) -> tuple[int, int]:
        since = broken_since(pcs, replica)
        if not _has_scheduled_pods(replica):
            return (0, replica.index)
        # One whose time is up is about to be torn down, and made anew from the new templates.
        is_broken = since is not None and not due_of({replica.index: since}, delay, now).replicas
        return (1 if is_broken else 2, replica.index)

    return min(left, key=cost).index


def _is_done(pcs: PodCliqueSet, replica: ReplicaSeen, hashes: Hashes) -> bool:
    """Whether the update need not wait for a replica.

    One that was never scheduled and is wholly made from the new templates has nothing left to update. Waiting until it
    is ready would stop the update for good where there is no room for it.
    """
    return is_replica_updated(pcs, replica, hashes=hashes) or _waits_for_room(pcs, replica, hashes)


def _waits_for_room(pcs: PodCliqueSet, replica: ReplicaSeen, hashes: Hashes) -> bool:
    planned = standalone_cliques(pcs, replica.index)
    groups = [replica.groups.get(name) for name in _group_names(pcs, replica.index)]
    return (
        not _has_scheduled_pods(replica)
        and not any(map(was_ever_scheduled, replica.cliques.values()))
        and all(_pods_have_template(pcs, one, replica.cliques.get(one.name), hashes) for one in planned)
        and all(group is not None and not was_ever_healthy(group) and _has_hash(pcs, group) for group in groups)
    )


def _pods_have_template(pcs: PodCliqueSet, planned: PlannedClique, clique: PodClique | None, hashes: Hashes) -> bool:
    if clique is None or not has_template(pcs, planned, clique, hashes=hashes):
        return False
    return clique.status.current_pod_template_hash == _expected(pcs, planned, hashes)


def _has_hash(pcs: PodCliqueSet, group: PodCliqueScalingGroup) -> bool:
    return group.status.current_pod_clique_set_generation_hash == pcs.status.current_generation_hash


def _has_scheduled_pods(replica: ReplicaSeen) -> bool:
    return any(clique.status.scheduled_replicas for clique in (*replica.cliques.values(), *replica.members))


def _with_counts(
    pcs: PodCliqueSet, progress: PodCliqueSetUpdate, replicas: Sequence[ReplicaSeen], hashes: Hashes
) -> PodCliqueSetUpdate:
    cliques = [
        is_clique_updated(pcs, planned, replica.cliques.get(planned.name), hashes=hashes)
        for replica in replicas
        for planned in standalone_cliques(pcs, replica.index)
    ]
    groups = [
        is_group_updated(pcs, replica.groups.get(name))
        for replica in replicas
        for name in _group_names(pcs, replica.index)
    ]
    return msgspec.structs.replace(
        progress,
        updated_pod_cliques_count=sum(cliques),
        total_pod_cliques_count=len(cliques),
        updated_pod_clique_scaling_groups_count=sum(groups),
        total_pod_clique_scaling_groups_count=len(groups),
    )


def _group_names(pcs: PodCliqueSet, replica: int) -> list[str]:
    groups = pcs.spec.template.pod_clique_scaling_groups
    return [names.scaling_group(pcs.metadata.name, replica, group.name) for group in groups]


def _expected(pcs: PodCliqueSet, planned: PlannedClique, hashes: Hashes | None) -> str:
    if hashes is not None:
        return hashes[planned.template.name]
    return template_hash(planned.template, pcs.spec.template.priority_class_name)
