"""Who grows and who shrinks, and by how much: the arithmetic of rollouts and of scaling.

While a Deployment is rolled out there are never more pods than its size and the surge, and never fewer available ones
than its size less what may be unavailable. While it is scaled in the middle of that, every ReplicaSet keeps its share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from shoal.api.apps import DESIRED_REPLICAS, MAX_REPLICAS, ROLLING_UPDATE, Deployment, ReplicaSet
from shoal.api.meta import scaled_value

_COUNT = re.compile(r"[0-9]+")
_INT32 = 2**31
_BEGINNING = datetime.min.replace(tzinfo=UTC)


class Resize(NamedTuple):
    """A ReplicaSet and the size that it is to have; it may have that size and not know of the Deployment's new one."""

    of: ReplicaSet
    size: int


def age(found: ReplicaSet) -> tuple[datetime, str]:
    """Sorts ReplicaSets from the oldest to the youngest."""
    return (found.metadata.creation_timestamp or _BEGINNING, found.metadata.name)


def fenceposts(deployment: Deployment) -> tuple[int, int]:
    """How many pods may be too many and how many too few; never both none, or nothing could ever be replaced."""
    rolling = deployment.spec.strategy.rolling_update
    surge = scaled_value((rolling and rolling.max_surge) or 0, deployment.spec.replicas, round_up=True)
    missing = scaled_value((rolling and rolling.max_unavailable) or 0, deployment.spec.replicas, round_up=False)
    return (surge, missing) if surge or missing else (0, 1)


def max_surge(deployment: Deployment) -> int:
    """How many pods more than its size a Deployment may have."""
    return fenceposts(deployment)[0] if _is_rolling(deployment) else 0


def max_unavailable(deployment: Deployment) -> int:
    """How many pods of its size may be missing."""
    if not _is_rolling(deployment) or deployment.spec.replicas == 0:
        return 0
    return min(fenceposts(deployment)[1], deployment.spec.replicas)


def new_size(deployment: Deployment, new: int, total: int) -> int:
    """The size of the newest ReplicaSet, from what it has and all have together: as large as there is room for."""
    wanted = deployment.spec.replicas
    if not _is_rolling(deployment) or new > wanted:
        return wanted
    room = wanted + max_surge(deployment) - total
    return new + max(0, min(room, wanted - new))


def is_being_scaled(deployment: Deployment, sets: Iterable[ReplicaSet]) -> bool:
    """Whether a ReplicaSet with pods was sized for another size of the Deployment."""
    told = (_count(one, DESIRED_REPLICAS) for one in sets if one.spec.replicas > 0)
    return any(count is not None and count != deployment.spec.replicas for count in told)


def unhealthy_first(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Resize]:
    """How old ReplicaSets shrink by the pods that are not available anyway; the oldest first.

    The new ReplicaSet's pods that are not available yet count as if they were not there: they must not make room for
    themselves.
    """
    left = removable(deployment, new, old)
    resizes = []
    for one in old:
        cut = min(left, one.spec.replicas - one.status.available_replicas)
        if one.spec.replicas > 0 and cut > 0:
            resizes.append(Resize(one, one.spec.replicas - cut))
            left -= cut
    return resizes


def removable(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> int:
    """How many of the old pods may go at all.

    None while an old ReplicaSet has more available pods than its size: it is still shrinking, and what it counts cannot
    be built on.
    """
    if any(one.status.available_replicas > one.spec.replicas for one in old):
        return 0
    total = new.spec.replicas + sum(one.spec.replicas for one in old)
    unavailable = new.spec.replicas - new.status.available_replicas
    return max(0, total - _least_available(deployment) - unavailable)


def surplus_last(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Resize]:
    """How old ReplicaSets shrink by the pods that the new ones have made superfluous; the oldest first."""
    available = new.status.available_replicas + sum(one.status.available_replicas for one in old)
    left = available - _least_available(deployment)
    resizes = []
    for one in old:
        cut = min(left, one.spec.replicas)
        if cut > 0:
            resizes.append(Resize(one, one.spec.replicas - cut))
            left -= cut
    return resizes


def scaled_sizes(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Resize]:
    """The sizes that follow from another size of the Deployment, without furthering a rollout that is under way.

    A single ReplicaSet takes it all. Several share it as they shared the old size.
    """
    everyone = [*old, new] if new is not None else list(old)
    active = [one for one in everyone if one.spec.replicas > 0]
    if len(active) <= 1:
        chosen = active[0] if active else new or max(old, key=age, default=None)
        if chosen is None or chosen.spec.replicas == deployment.spec.replicas:
            return []
        return [Resize(chosen, deployment.spec.replicas)]
    if new is not None and _is_saturated(deployment, new):
        return [Resize(one, 0) for one in old if one.spec.replicas > 0]
    return _shares(deployment, active) if _is_rolling(deployment) else []


def _shares(deployment: Deployment, active: Sequence[ReplicaSet]) -> list[Resize]:
    wanted = deployment.spec.replicas
    allowed = wanted + max_surge(deployment) if wanted > 0 else 0
    change = allowed - sum(one.spec.replicas for one in active)
    # The largest first; among equals the youngest grows first, and the oldest shrinks first.
    ordered = sorted(active, key=age, reverse=change > 0)
    ordered.sort(key=lambda one: -one.spec.replicas)
    sizes = []
    left = change
    for one in ordered:
        part = _part(deployment, one) if left else 0
        part = min(part, left) if change > 0 else max(part, left)
        sizes.append(one.spec.replicas + part)
        left -= part
    sizes[0] = max(0, sizes[0] + left)
    return [Resize(one, size) for one, size in zip(ordered, sizes, strict=True)]


def _part(deployment: Deployment, one: ReplicaSet) -> int:
    """By how much a ReplicaSet grows or shrinks to keep its share of the Deployment."""
    if deployment.spec.replicas == 0:
        return -one.spec.replicas
    # A ReplicaSet that nobody told of the old size is measured by what there was.
    total_before = _count(one, MAX_REPLICAS) or deployment.status.replicas
    if total_before == 0:
        return 0
    share = one.spec.replicas * (deployment.spec.replicas + max_surge(deployment)) / total_before
    return int(share + 0.5) - one.spec.replicas


def _is_saturated(deployment: Deployment, new: ReplicaSet) -> bool:
    wanted = deployment.spec.replicas
    return new.spec.replicas == _count(new, DESIRED_REPLICAS) == new.status.available_replicas == wanted


def _least_available(deployment: Deployment) -> int:
    return deployment.spec.replicas - max_unavailable(deployment)


def _is_rolling(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type == ROLLING_UPDATE


def _count(one: ReplicaSet, annotation: str) -> int | None:
    text = one.metadata.annotations.get(annotation, "")
    count = int(text) if _COUNT.fullmatch(text) else None
    return count if count is not None and count < _INT32 else None
