"""Gang termination: what was broken for too long is torn down as a whole, so that it may start as a whole again.

A gang that was never scheduled is not broken, it waits: only what once had its pods on nodes takes part. Whether that
is so is told by times alone: a condition that says no since an object was made has never said yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shoal.api.grove import (
    CLIQUE_SCHEDULED,
    GANG_TERMINATION_IN_PROGRESS,
    MIN_AVAILABLE_BREACHED,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    names,
)
from shoal.api.meta import Condition, InvalidDuration, ObjectMeta, find_condition, is_true, parse_duration
from shoal.gangs.plan import standalone_cliques
from shoal.gangs.replicas import ReplicaSeen

DEFAULT_DELAY = timedelta(hours=4)
FIRST_REPORT = timedelta(seconds=5)
"""How long after its creation an object's first conditions may be told: a change later than that was a real one."""


@dataclass(frozen=True, kw_only=True)
class Due:
    """The replicas to tear down now, and in how many seconds the next one may be due."""

    replicas: tuple[int, ...] = ()
    again_after: float | None = None


def due(pcs: PodCliqueSet, replicas: Sequence[ReplicaSeen], now: datetime) -> Due:
    """The replicas of a set that were broken for longer than its delay."""
    broken = {replica.index: since for replica in replicas if (since := broken_since(pcs, replica)) is not None}
    return due_of(broken, termination_delay(pcs), now)


def due_group_replicas(
    replicas: Mapping[int, Sequence[PodClique]], *, healthy: int, minimum: int, delay: timedelta, now: datetime
) -> Due:
    """The replicas of a scaling group, given by their cliques, that were broken for longer than the delay.

    Where fewer than the minimum are healthy the whole replica of the set is broken, which is not the group's to mend.
    """
    if healthy < minimum:
        return Due()
    breaches = {index: list(_breaches_of_cliques(cliques)) for index, cliques in replicas.items()}
    return due_of({index: min(times) for index, times in breaches.items() if times}, delay, now)


def due_of(broken: Mapping[int, datetime], delay: timedelta, now: datetime) -> Due:
    """Which of the replicas that are broken since some time have waited for the delay."""
    left = {index: (since + delay - now).total_seconds() for index, since in broken.items()}
    waiting = [seconds for seconds in left.values() if seconds > 0]
    return Due(
        replicas=tuple(sorted(index for index, seconds in left.items() if seconds <= 0)),
        again_after=min(waiting, default=None),
    )


def broken_since(pcs: PodCliqueSet, replica: ReplicaSeen) -> datetime | None:
    """Since when a replica of a set has been too small to work; None where it is well or was never scheduled.

    A replica that lacks a clique is being made or torn down already, and is let be.
    """
    cliques = [replica.cliques.get(planned.name) for planned in standalone_cliques(pcs, replica.index)]
    if any(clique is None or clique.metadata.is_deleting for clique in cliques):
        return None
    times = [
        *_breaches_of_cliques(clique for clique in cliques if clique is not None),
        *_breaches_of_groups(replica),
    ]
    return min(times, default=None)


def termination_delay(pcs: PodCliqueSet) -> timedelta:
    """How long a gang of the set may be broken.

    Admission refuses what is no duration; where it was not asked, the default stands.
    """
    text = pcs.spec.template.termination_delay
    if text is None:
        return DEFAULT_DELAY
    try:
        return parse_duration(text).to_timedelta()
    except InvalidDuration:
        return DEFAULT_DELAY


def is_breached(found: PodClique | PodCliqueScalingGroup) -> bool:
    """Whether too few of its pods, or replicas, are well."""
    return is_true(found.status.conditions, MIN_AVAILABLE_BREACHED)


def was_ever_scheduled(clique: PodClique) -> bool:
    """Whether enough of a clique's pods have been on nodes, now or once."""
    scheduled = find_condition(clique.status.conditions, CLIQUE_SCHEDULED)
    return scheduled is not None and (scheduled.status == "True" or _has_changed(clique.metadata, scheduled))


def was_ever_healthy(group: PodCliqueScalingGroup) -> bool:
    """Whether enough of a scaling group's replicas have been well, now or once."""
    breached = find_condition(group.status.conditions, MIN_AVAILABLE_BREACHED)
    return breached is not None and (breached.status == "False" or _has_changed(group.metadata, breached))


def _breaches_of_cliques(cliques: Iterable[PodClique]) -> Iterator[datetime]:
    for clique in cliques:
        if is_breached(clique) and was_ever_scheduled(clique):
            yield _breached_since(clique)


def _breaches_of_groups(replica: ReplicaSeen) -> Iterator[datetime]:
    for group in replica.groups.values():
        is_torn_down = is_true(group.status.conditions, GANG_TERMINATION_IN_PROGRESS)
        if not is_breached(group) or is_torn_down or group.metadata.is_deleting:
            continue
        if was_ever_healthy(group):
            yield _breached_since(group)
        else:
            # One that broke right after it was made has no time that tells it from one that waits: its cliques do.
            yield from _breaches_of_cliques(_members_of(group, replica))


def _members_of(group: PodCliqueScalingGroup, replica: ReplicaSeen) -> Iterator[PodClique]:
    for member in replica.members:
        if member.metadata.labels.get(names.SCALING_GROUP_LABEL) == group.metadata.name:
            yield member


def _breached_since(found: PodClique | PodCliqueScalingGroup) -> datetime:
    condition = find_condition(found.status.conditions, MIN_AVAILABLE_BREACHED)
    assert condition is not None
    since = condition.last_transition_time or found.metadata.creation_timestamp
    assert since is not None, "an object of the server has a creation time"
    return since


def _has_changed(metadata: ObjectMeta, condition: Condition) -> bool:
    """Whether a condition's answer is not the first one that it ever had."""
    changed, made = condition.last_transition_time, metadata.creation_timestamp
    return changed is not None and made is not None and changed > made + FIRST_REPORT
