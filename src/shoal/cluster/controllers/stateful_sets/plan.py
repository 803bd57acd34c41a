"""What to do next for a StatefulSet, given what is there: a pure function from pods and claims to steps.

In order (``OrderedReady``) nothing is done for a pod before those of lower ordinals are there and available, nothing is
taken away before all that are wanted are, and always the highest ordinal first. ``Parallel`` does all of it at once.
Both replace pods of an old template last, from the highest ordinal down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shoal.api.apps import StatefulSet
from shoal.api.apps.stateful_sets import ON_DELETE, PARALLEL
from shoal.api.core import PENDING, Pod, is_available, is_finished
from shoal.api.meta import scaled_value
from shoal.cluster.controllers.stateful_sets.identity import (
    has_identity,
    has_storage,
    ordinal_of,
    pod_name,
    revision_of,
    wanted_ordinals,
)
from shoal.cluster.controllers.stateful_sets.status import is_running_and_ready
from shoal.cluster.controllers.stateful_sets.volumes import ClaimOf, changed_owners, claim_names, is_stale


@dataclass(frozen=True, kw_only=True)
class Version:
    """A revision's name, and the template that pods are made from."""

    name: str
    template: Mapping[str, Any]


@dataclass(frozen=True)
class Create:
    """Make the claims and the pod of an ordinal."""

    ordinal: int
    version: Version


@dataclass(frozen=True)
class Remove:
    """Delete a pod."""

    pod: Pod


@dataclass(frozen=True)
class CompleteClaims:
    """Make the claims that a pending pod waits for, and set their owners."""

    pod: Pod
    ordinal: int


@dataclass(frozen=True)
class Mend:
    """Make a pod's labels, volumes and the owners of its claims as they should be."""

    pod: Pod
    ordinal: int


@dataclass(frozen=True)
class SettleClaims:
    """Set the owners of the claims of a pod that is about to go."""

    pod: Pod
    ordinal: int


Step = Create | Remove | CompleteClaims | Mend | SettleClaims


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The steps, in stages: a stage with a failure ends the plan."""

    stages: list[list[Step]] = field(default_factory=list)
    at_once: bool = False
    """Whether the steps of a stage do not wait for each other."""
    replaced: int = 0
    """How many of the pods to be removed are replaced by new ones."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """A set as it is: its pods, the claims of its namespace, and the versions that its pods may have."""

    stateful_set: StatefulSet
    pods: Sequence[Pod]
    claim_of: ClaimOf
    current: Version
    update: Version
    now: datetime

    def is_unavailable(self, pod: Pod | None) -> bool:
        """Whether an ordinal has no pod that serves and stays."""
        if pod is None or pod.metadata.is_deleting:
            return True
        return not is_available(pod, min_ready_seconds=self.stateful_set.spec.min_ready_seconds, now=self.now)


def plan(seen: Observed, *, honour_max_unavailable: bool = False) -> Plan:
    """The next steps; none for a set that is being deleted.

    ``honour_max_unavailable`` replaces several pods at once where the set allows it, which Kubernetes has off.
    """
    stateful_set = seen.stateful_set
    if stateful_set.metadata.is_deleting:
        return Plan()
    in_order = stateful_set.spec.pod_management_policy != PARALLEL
    replicas, condemned = _split(stateful_set, seen.pods)

    first: list[Step] = []
    for ordinal, pod in replicas.items():
        steps, blocks = _for_replica(seen, ordinal, pod, in_order)
        first += steps
        if blocks and in_order:
            return Plan(stages=[first])
    settling: list[Step] = [
        SettleClaims(pod, ordinal)
        for ordinal, pod in condemned
        if not _claims_are_owned(seen, pod, ordinal, is_wanted=False)
    ]
    removing, blocks = _for_condemned(seen, replicas, condemned, in_order)
    stages = [first, settling, removing]
    if (blocks and in_order) or stateful_set.spec.update_strategy.type == ON_DELETE:
        return Plan(stages=stages, at_once=not in_order)
    replacing = _replaceable(seen, list(replicas.values()), honour_max_unavailable=honour_max_unavailable)
    return Plan(stages=[*stages, [Remove(pod) for pod in replacing]], at_once=not in_order, replaced=len(replacing))


def members(pods: Sequence[Pod]) -> list[Pod]:
    """Those of the pods that have an ordinal."""
    return [pod for pod in pods if ordinal_of(pod) is not None]


def _split(stateful_set: StatefulSet, pods: Sequence[Pod]) -> tuple[dict[int, Pod | None], list[tuple[int, Pod]]]:
    """What each wanted ordinal has, in order, and the pods of other ordinals, the highest first."""
    replicas: dict[int, Pod | None] = dict.fromkeys(wanted_ordinals(stateful_set))
    condemned = []
    for pod in pods:
        ordinal = ordinal_of(pod)
        if ordinal is None:
            continue
        if ordinal in replicas:
            replicas[ordinal] = pod
        else:
            condemned.append((ordinal, pod))
    return replicas, sorted(condemned, key=lambda found: found[0], reverse=True)


def _for_replica(seen: Observed, ordinal: int, pod: Pod | None, in_order: bool) -> tuple[list[Step], bool]:
    """What an ordinal needs, and whether those after it have to wait."""
    stateful_set = seen.stateful_set
    if pod is None:
        if is_stale(stateful_set, pod_name(stateful_set, ordinal), ordinal, seen.claim_of):
            return [], True
        return [Create(ordinal, _version_for(seen, ordinal))], True
    if is_finished(pod):
        return ([] if pod.metadata.is_deleting else [Remove(pod)]), True
    steps: list[Step] = []
    owned = _claims_are_owned(seen, pod, ordinal, is_wanted=True)
    if pod.status.phase == PENDING and not (owned and _has_claims(seen, ordinal)):
        steps.append(CompleteClaims(pod, ordinal))
        owned = True
    if in_order and (not is_running_and_ready(pod) or seen.is_unavailable(pod)):
        return steps, True
    if not (has_identity(stateful_set, pod, ordinal) and has_storage(stateful_set, pod, ordinal) and owned):
        steps.append(Mend(pod, ordinal))
    return steps, False


def _for_condemned(
    seen: Observed, replicas: Mapping[int, Pod | None], condemned: Sequence[tuple[int, Pod]], in_order: bool
) -> tuple[list[Step], bool]:
    """Which pods beyond the set's size go now, and whether others have to wait for that."""
    if not in_order:
        return [Remove(pod) for _, pod in condemned if not pod.metadata.is_deleting], False
    if not condemned:
        return [], False
    _, highest = condemned[0]
    if highest.metadata.is_deleting:
        return [], True
    # One that does not serve goes only if it is the first of those: what is below it must be well.
    ascending = [*replicas.items(), *reversed(condemned)]
    first_unavailable = next((ordinal for ordinal, pod in ascending if seen.is_unavailable(pod)), None)
    is_well = is_running_and_ready(highest) and not seen.is_unavailable(highest)
    if not is_well and condemned[0][0] != first_unavailable:
        return [], True
    return [Remove(highest)], True


def _replaceable(seen: Observed, replicas: Sequence[Pod | None], *, honour_max_unavailable: bool) -> list[Pod]:
    """The pods of an old template whose turn it is to be replaced."""
    rolling = seen.stateful_set.spec.update_strategy.rolling_update
    partition = rolling.partition if rolling is not None else 0
    candidates = list(reversed(replicas[partition:]))
    if honour_max_unavailable:
        allowed = _max_unavailable(seen.stateful_set) - sum(map(seen.is_unavailable, replicas))
        old = [pod for pod in candidates if pod is not None and _is_old(seen, pod)]
        return old[: max(allowed, 0)]
    for pod in candidates:
        if pod is not None and _is_old(seen, pod):
            return [pod]
        if seen.is_unavailable(pod):
            return []
    return []


def _is_old(seen: Observed, pod: Pod) -> bool:
    return revision_of(pod) != seen.update.name and not pod.metadata.is_deleting


def _max_unavailable(stateful_set: StatefulSet) -> int:
    rolling = stateful_set.spec.update_strategy.rolling_update
    value = rolling.max_unavailable if rolling is not None else None
    return max(1, scaled_value(1 if value is None else value, stateful_set.spec.replicas, round_up=False))


def _version_for(seen: Observed, ordinal: int) -> Version:
    """What a new pod is made from: below the partition it is what the others there are."""
    rolling = seen.stateful_set.spec.update_strategy.rolling_update
    partition = rolling.partition if rolling is not None else 0
    return seen.current if ordinal < seen.stateful_set.spec.ordinals.start + partition else seen.update


def _has_claims(seen: Observed, ordinal: int) -> bool:
    return all(seen.claim_of(name) is not None for name in claim_names(seen.stateful_set, ordinal).values())


def _claims_are_owned(seen: Observed, pod: Pod, ordinal: int, *, is_wanted: bool) -> bool:
    """Whether the claims that are there have the owners that the set's policy says."""
    for name in claim_names(seen.stateful_set, ordinal).values():
        claim = seen.claim_of(name)
        if claim is not None and changed_owners(claim, seen.stateful_set, pod, is_wanted=is_wanted) is not None:
            return False
    return True
