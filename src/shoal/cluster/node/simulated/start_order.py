"""Pods that wait for others to be ready, as the init container ``grove-initc`` would make them wait.

A pod waits in its init phase until enough pods of each clique that the container names, in the same gang, are ready.
The ready pods of gangs are counted as they change, and those that wait are kept by what they wait for: all pods of a
clique wait for the same, so that a change costs no more in a large gang than in a small one, and nothing where there is
no gang.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from shoal.api.core import Pod, is_ready
from shoal.api.grove import names, start_order
from shoal.kube import Change, Key

Gang: TypeAlias = tuple[str, str]
"""The namespace and the name of a PodGang."""
Awaited: TypeAlias = tuple[tuple[str, int], ...]
"""The cliques that are waited for, each with the number of its pods that must be ready."""


def waits_in(pod: Pod) -> str:
    """The init container in which a pod may wait for others; empty where it has none."""
    return next((one.name for one in pod.spec.init_containers if one.name == start_order.CONTAINER), "")


class StartOrder:
    """Who waits for whom."""

    def __init__(self) -> None:
        self._ready: defaultdict[Gang, Counter[str]] = defaultdict(Counter)
        self._waiting: defaultdict[Gang, dict[Awaited, dict[Key, None]]] = defaultdict(dict)

    def follow(self, change: Change[Pod]) -> None:
        """Counts the ready pods of gangs, and forgets those that are gone."""
        before, after = _place(change.before), _place(change.after)
        if before != after:
            if before is not None:
                self._count(*before, -1)
            if after is not None:
                self._count(*after, 1)
        if change.after is None and waits_in(change.latest):
            self._forget(change.latest)

    def must_wait(self, pod: Pod) -> bool:
        """Whether a pod still waits; it is among those that ``released`` tells of until it does not."""
        awaited = _awaited(pod)
        gang = _gang(pod)
        if not awaited or _has_waited(pod) or not self._missing(gang, awaited):
            self._forget(pod)
            return False
        self._waiting[gang].setdefault(awaited, {})[_key(pod)] = None
        return True

    def matters(self, change: Change[Pod]) -> bool:
        """Whether a change may let others start."""
        after = _place(change.after)
        return after is not None and after != _place(change.before)

    def released(self, pod: Pod) -> list[Key]:
        """The pods of the same gang that waited and need to no longer."""
        gang = _gang(pod)
        waiting = self._waiting.get(gang)
        if not waiting:
            return []
        done = [awaited for awaited in waiting if not self._missing(gang, awaited)]
        released = [key for awaited in done for key in waiting.pop(awaited)]
        if not waiting:
            del self._waiting[gang]
        return released

    def _missing(self, gang: Gang, awaited: Awaited) -> Sequence[start_order.Missing]:
        return start_order.missing(dict(awaited), self._ready.get(gang, {}))

    def _count(self, gang: Gang, clique: str, step: int) -> None:
        counts = self._ready[gang]
        counts[clique] += step
        if counts[clique] <= 0:
            del counts[clique]
            if not counts:
                del self._ready[gang]

    def _forget(self, pod: Pod) -> None:
        gang = _gang(pod)
        waiting = self._waiting.get(gang)
        if waiting is None:
            return
        for awaited in [awaited for awaited, keys in waiting.items() if _key(pod) in keys]:
            del waiting[awaited][_key(pod)]
            if not waiting[awaited]:
                del waiting[awaited]
        if not waiting:
            del self._waiting[gang]


def _gang(pod: Pod) -> Gang:
    return pod.metadata.namespace, pod.metadata.labels.get(names.GANG_LABEL, "")


def _key(pod: Pod) -> Key:
    return Key(pod.metadata.namespace, pod.metadata.name)


def _place(pod: Pod | None) -> tuple[Gang, str] | None:
    """The gang and the clique that a ready pod counts for."""
    if pod is None:
        return None
    clique = pod.metadata.labels.get(names.CLIQUE_LABEL)
    return (_gang(pod), clique) if clique is not None and is_ready(pod) else None


def _awaited(pod: Pod) -> Awaited:
    """Whom a pod is told to wait for; nobody where that cannot be understood."""
    return next((_understood(one.args) for one in pod.spec.init_containers if one.name == start_order.CONTAINER), ())


def _understood(arguments: Iterable[str]) -> Awaited:
    try:
        return tuple(start_order.awaited(arguments).items())
    except start_order.InvalidArguments:
        return ()


def _has_waited(pod: Pod) -> bool:
    return any(
        status.name == start_order.CONTAINER and status.state.terminated is not None
        for status in pod.status.init_container_statuses
    )
