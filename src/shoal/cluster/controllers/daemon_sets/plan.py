"""Which pods of a DaemonSet to make and delete, so that every node has what it should: a rule over what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from shoal.api.apps import REVISION_HASH, DaemonSet
from shoal.api.core import FAILED, SUCCEEDED, Pod, is_active, is_available, is_ready
from shoal.api.meta import IntOrString, scaled_value
from shoal.cluster.controllers.daemon_sets.eligibility import Verdict
from shoal.cluster.controllers.daemon_sets.objects import is_updated, oldest_first

ROLLING_UPDATE = "RollingUpdate"


@dataclass(frozen=True, kw_only=True)
class Observed:
    """A DaemonSet as it is: what each node means to it, and the pods that are on or for each node."""

    daemon_set: DaemonSet
    verdicts: Mapping[str, Verdict]
    """By the name of every node that there is."""
    pods: Mapping[str, Sequence[Pod]]
    """By the name of their node, which may be gone."""
    hash: str
    """Of the revision of the present template."""
    generation: int | None
    """Of the present template, by the server's own count."""
    now: datetime

    def is_updated(self, pod: Pod) -> bool:
        """Whether a pod was made from the present template."""
        return is_updated(pod, self.hash, self.generation)

    def is_available(self, pod: Pod) -> bool:
        """Whether a pod has been ready for long enough."""
        return is_available(pod, min_ready_seconds=self.daemon_set.spec.min_ready_seconds, now=self.now)


@dataclass(kw_only=True)
class Work:
    """What to do: the nodes that get a pod, and the pods that go."""

    create_on: list[str] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)
    failed: list[tuple[str, Pod]] = field(default_factory=list)
    """Of those that go, the ones that had failed, with their node."""
    succeeded: list[tuple[str, Pod]] = field(default_factory=list)
    look_again_after: float | None = None
    """Seconds until a failed pod that is left for now may be deleted."""

    def __bool__(self) -> bool:
        return bool(self.create_on or self.delete)


def wanted_work(seen: Observed, delay_of: Callable[[str], float]) -> Work:
    """What it takes to have one pod on each node that should have one, and none where none may be.

    ``delay_of`` says for how many seconds a failed pod of a node is still to be left alone.
    """
    work = Work()
    surges = surge_of(seen.daemon_set, 1) > 0
    for node, verdict in seen.verdicts.items():
        pods = seen.pods.get(node)
        if pods is None:
            if verdict is Verdict.RUN:
                work.create_on.append(node)
        elif verdict is not Verdict.LEAVE and len(pods) == 1 and is_active(pods[0]):
            continue
        elif verdict is Verdict.LEAVE:
            work.delete += [pod for pod in pods if not pod.metadata.is_deleting]
        else:
            _keep_one(seen, work, node, delay_of, surges=surges)
    for node, pods in seen.pods.items():
        if node not in seen.verdicts:
            # They can never be bound, and nobody else takes them away.
            work.delete += [pod for pod in pods if not pod.spec.node_name and not pod.metadata.is_deleting]
    return work


def _keep_one(seen: Observed, work: Work, node: str, delay_of: Callable[[str], float], *, surges: bool) -> None:
    """Adds what it takes to leave a node with one pod, or with an old and a new one while it ``surges``."""
    running = []
    for pod in seen.pods[node]:
        if pod.metadata.is_deleting:
            continue
        if pod.status.phase == FAILED:
            delay = delay_of(node)
            if delay > 0:
                work.look_again_after = min(delay, work.look_again_after or delay)
                continue
            work.failed.append((node, pod))
            work.delete.append(pod)
        elif pod.status.phase == SUCCEEDED:
            work.succeeded.append((node, pod))
            work.delete.append(pod)
        else:
            running.append(pod)
    if len(running) <= 1:
        if not running and surges and seen.verdicts[node] is Verdict.RUN:
            # A new pod need not wait until the old one is gone.
            work.create_on.append(node)
        return
    ordered = oldest_first(running)
    if not surges:
        work.delete += ordered[1:]
        return
    new = [pod for pod in ordered if pod.metadata.labels.get(REVISION_HASH) == seen.hash]
    old = [pod for pod in ordered if pod.metadata.labels.get(REVISION_HASH) != seen.hash]
    work.delete += [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or seen.is_available(new[0])):
        work.delete.append(old[0])


def surge_of(daemon_set: DaemonSet, desired: int) -> int:
    """On how many of the desired nodes there may be a second pod."""
    strategy = daemon_set.spec.update_strategy
    rolling = strategy.rolling_update if strategy.type == ROLLING_UPDATE else None
    return _scaled(rolling.max_surge if rolling is not None else None, desired)


def unavailable_of(daemon_set: DaemonSet, desired: int) -> int:
    """How many of the desired nodes may be without a pod that serves."""
    strategy = daemon_set.spec.update_strategy
    rolling = strategy.rolling_update if strategy.type == ROLLING_UPDATE else None
    return _scaled(rolling.max_unavailable if rolling is not None else None, desired)


def _scaled(value: IntOrString | None, total: int) -> int:
    return scaled_value(value, total, round_up=True) if value is not None else 0
