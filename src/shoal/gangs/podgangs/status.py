"""How far a gang is: made, placed, ready, or broken.

Conditions and what they say change only with the state of the gang as a whole, never with each pod, so that a gang of a
thousand pods costs as many writes of its status as one of two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from shoal.api.core import Pod, is_ready, pod_condition
from shoal.api.meta import Condition, is_true, set_condition
from shoal.api.scheduler_grove_io import (
    INITIALIZED,
    PENDING,
    READY,
    RUNNING,
    SCHEDULED,
    STARTING,
    UNHEALTHY,
    PodGangStatus,
)
from shoal.gangs.podgangs.membership import Members, References

_ANSWERS: Final[Mapping[str, tuple[tuple[str, str], tuple[str, str]]]] = {
    INITIALIZED: (
        ("PodGangPodsCreationPending", "not every pod of the gang is made and named in spec.podgroups yet"),
        ("PodGangPodsCreated", "every pod of the gang was made and named in spec.podgroups"),
    ),
    SCHEDULED: (
        ("TooFewPodsScheduled", "not every podgroup has minReplicas pods with a node"),
        ("EnoughPodsScheduled", "every podgroup has minReplicas pods with a node"),
    ),
    READY: (
        ("TooFewPodsReady", "not every podgroup has minReplicas ready pods"),
        ("EnoughPodsReady", "every podgroup has minReplicas ready pods"),
    ),
    UNHEALTHY: (
        ("NothingLost", "the gang has not fallen below minReplicas ready pods since it began to run"),
        ("ReadyPodsLost", "the gang ran, and a podgroup has fewer than minReplicas ready pods now"),
    ),
}
"""Reason and message of each condition: where it is False, where it is True."""

_SIGNALS: Final = (INITIALIZED, READY, UNHEALTHY)


@dataclass(frozen=True, kw_only=True)
class GangSeen:
    """A gang and its pods, as they were seen."""

    minimums: Mapping[str, int]
    """How many pods of each clique must start together."""
    members: Members
    named_before: References
    """The pods that the PodGang named when it was read."""
    named_now: References
    """The pods that it names now."""
    is_up: Callable[[Pod], bool] = is_ready
    """Whether a pod does, or has done, what it is for."""


def status_of(before: PodGangStatus, seen: GangSeen, now: datetime) -> PodGangStatus:
    """The status of a gang; conditions of others stay as they are.

    A gang is initialised when all its pods are there and named, and stays so while any pod that it named lives: pods
    are replaced and added one by one. When all of them are gone (the gang was torn down) it begins anew.
    """
    is_whole = seen.members.is_complete and seen.named_now == seen.members.references
    was_initialized = is_true(before.conditions, INITIALIZED)
    is_initialized = is_whole or (was_initialized and _has_survivors(seen))
    is_scheduled = _enough(seen, is_scheduled_pod)
    is_running = _enough(seen, seen.is_up)
    ran = is_true(before.conditions, READY) or is_true(before.conditions, UNHEALTHY)
    answers = {
        INITIALIZED: is_initialized,
        SCHEDULED: is_scheduled,
        READY: is_running,
        UNHEALTHY: not is_running and ran and is_initialized,
    }
    conditions = before.conditions
    for question, answer in answers.items():
        reason, message = _ANSWERS[question][answer]
        told = Condition(type=question, status="True" if answer else "False", reason=reason, message=message)
        conditions = set_condition(conditions, told, now)
    phase = RUNNING if is_running else STARTING if is_scheduled else PENDING
    return msgspec.structs.replace(before, phase=phase, conditions=conditions)


def is_urgent(before: PodGangStatus, after: PodGangStatus) -> bool:
    """Whether others wait for a change of status: gates are lifted once a gang is initialised, sets tell what runs.

    That a gang is there and has no pods yet, or has nodes and soon runs, is told once it lasts.
    """
    return any(is_true(before.conditions, name) != is_true(after.conditions, name) for name in _SIGNALS)


def is_scheduled_pod(pod: Pod) -> bool:
    """Whether a pod has a node."""
    condition = pod_condition(pod, "PodScheduled")
    return condition is not None and condition.status == "True"


def _has_survivors(seen: GangSeen) -> bool:
    named = {reference.name for references in seen.named_before.values() for reference in references}
    return any(pod.metadata.name in named for pods in seen.members.pods.values() for pod in pods)


def _enough(seen: GangSeen, holds: Callable[[Pod], bool]) -> bool:
    """Whether in each clique at least its minimum of pods are so."""
    pods: Mapping[str, Sequence[Pod]] = seen.members.pods
    return all(
        sum(1 for pod in pods.get(clique, ()) if holds(pod)) >= minimum for clique, minimum in seen.minimums.items()
    )
