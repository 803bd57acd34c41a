"""Telling users what keeps their pods from being grouped: once for each pod and problem, as an event on the pod."""

from __future__ import annotations

from typing import Final

import structlog
from prometheus_client import Counter

from shoal.kube import About, Key, Manager
from shoal.kube.store import key_of
from shoal.scheduler.grouper.pods import GROUPED_PODS, GroupedPod

REASON: Final = "PodGrouperWarning"

log = structlog.get_logger("shoal.scheduler.grouper")


class Problems:
    """What was told of which pod."""

    def __init__(self, manager: Manager) -> None:
        self._events = manager.events
        self._told: dict[Key, str] = {}
        self._counter = Counter(
            "kai_podgrouper_problems_total",
            "Problems that kept a pod from its group.",
            registry=manager.metrics.registry,
        )

    def tell(self, pod: GroupedPod, problem: Exception) -> None:
        """Tells of a problem, unless it is the one that was told of this pod last."""
        said, key = str(problem), key_of(pod)
        if self._told.get(key) == said:
            return
        self._told[key] = said
        self._counter.inc()
        log.warning("a pod cannot be grouped", pod=str(key), problem=said)
        self._events.warning(About.of(GROUPED_PODS, pod), REASON, said)

    def forget(self, pod: Key) -> None:
        """The pod is well, or gone: a problem that comes back is told again."""
        self._told.pop(pod, None)
