"""What a StatefulSet tells of its pods."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from shoal.api.apps import StatefulSet, StatefulSetStatus
from shoal.api.apps.stateful_sets import ROLLING_UPDATE
from shoal.api.core import RUNNING, Pod, is_available, is_ready
from shoal.cluster.controllers.stateful_sets.identity import revision_of


def status_of(
    stateful_set: StatefulSet,
    pods: Iterable[Pod],
    *,
    current: str,
    update: str,
    collisions: int,
    replaced: int,
    now: datetime,
) -> StatefulSetStatus:
    """The status, given the pods, the two revisions by name, and how many pods were just deleted to be replaced."""
    min_ready = stateful_set.spec.min_ready_seconds
    replicas = ready = available = at_current = at_update = 0
    for pod in pods:
        replicas += 1
        if is_running_and_ready(pod):
            ready += 1
            available += is_available(pod, min_ready_seconds=min_ready, now=now)
        if not pod.metadata.is_deleting:
            at_current += revision_of(pod) == current
            at_update += revision_of(pod) == update
    status = StatefulSetStatus(
        observed_generation=stateful_set.metadata.generation,
        replicas=replicas,
        ready_replicas=ready,
        available_replicas=available,
        current_replicas=at_current - replaced,
        updated_replicas=at_update,
        current_revision=current,
        update_revision=update,
        collision_count=collisions,
    )
    return _completed(stateful_set, status)


def is_running_and_ready(pod: Pod) -> bool:
    """Whether a pod runs, and says that it can serve."""
    return pod.status.phase == RUNNING and is_ready(pod)


def _completed(stateful_set: StatefulSet, status: StatefulSetStatus) -> StatefulSetStatus:
    """A rolling update has ended when every pod is there, ready and new: what was new is current then."""
    wanted = stateful_set.spec.replicas
    if stateful_set.spec.update_strategy.type == ROLLING_UPDATE and (
        status.updated_replicas == status.ready_replicas == status.replicas == wanted
    ):
        return msgspec.structs.replace(
            status, current_replicas=status.updated_replicas, current_revision=status.update_revision
        )
    return status
