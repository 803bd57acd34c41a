"""What is remembered of a service between two looks at it: when its changes happened, and when the last look was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import datetime

from shoal.api.core import Pod, Service, pod_condition
from shoal.kube.store import Key, key_of

PER_POD = 0.0001
"""Seconds of rest for each pod of a service."""


class TriggerTimes:
    """Tells when the change happened that a service's endpoints are about to be written for."""

    def __init__(self) -> None:
        self._seen: dict[Key, dict[str, datetime]] = {}

    def of(self, service: Service, pods: Iterable[Pod]) -> datetime | None:
        """The earliest of the changes since the last call; None where none can be dated.

        Of a service that is seen for the first time it is its creation. A pod's change is dated by its readiness.
        """
        now_seen = {pod.metadata.name: moment for pod in pods if (moment := _ready_since(pod)) is not None}
        known = self._seen.get(key_of(service))
        self._seen[key_of(service)] = now_seen
        if known is None:
            return service.metadata.creation_timestamp
        changed = [moment for name, moment in now_seen.items() if (last := known.get(name)) is None or moment > last]
        return min(changed, default=None)

    def forget(self, key: Key) -> None:
        """The service is gone."""
        self._seen.pop(key, None)


class Pacing:
    """Keeps large services from being looked at for every single pod.

    A look costs in proportion to the number of pods; so does the rest after it. A burst of changes is then written in a
    few steps, and the cost of n pods that come one by one is not the square of n.
    """

    def __init__(self, *, at_least: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._at_least = at_least
        self._clock = clock
        self._rested: dict[Key, float] = {}

    def wait(self, key: Key) -> float:
        """Seconds until a service may be looked at again; 0 where it may be now."""
        until = self._rested.get(key)
        return max(0.0, until - self._clock()) if until is not None else 0.0

    def looked(self, key: Key, pods: int) -> None:
        """A service with so many pods was looked at."""
        self._rested[key] = self._clock() + max(self._at_least, pods * PER_POD)

    def forget(self, key: Key) -> None:
        """The service is gone."""
        self._rested.pop(key, None)


def _ready_since(pod: Pod) -> datetime | None:
    condition = pod_condition(pod, "Ready")
    return condition.last_transition_time if condition is not None else None
