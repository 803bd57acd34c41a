"""What a change changed: the decisions of two replays, side by side."""

from __future__ import annotations

from shoal.scheduler.explaining.explanation import Fact
from shoal.scheduler.replaying.running import Eviction, Placement, Replay, Waiting


class Moved(Fact, frozen=True, kw_only=True):
    """A pod that gets another node than it would have."""

    namespace: str
    pod: str
    job: str
    before: str
    after: str


class Restated(Fact, frozen=True, kw_only=True):
    """A job that waits both times, for another reason."""

    namespace: str
    job: str
    queue: str
    before: str
    after: str


class Difference(Fact, frozen=True, kw_only=True):
    """From the first replay to the second."""

    placed: list[Placement]
    """Pods that get a node, or the promise of one, only now."""
    not_placed: list[Placement]
    """Pods that would have got one."""
    moved: list[Moved]
    evicted: list[Eviction]
    not_evicted: list[Eviction]
    waiting: list[Waiting]
    """Jobs that wait only now."""
    not_waiting: list[Waiting]
    """Jobs that would have waited, and do so no longer."""
    restated: list[Restated]

    @property
    def is_nothing(self) -> bool:
        """Whether all stays as it is, the reasons of those that wait apart."""
        return not (
            self.placed
            or self.not_placed
            or self.moved
            or self.evicted
            or self.not_evicted
            or self.waiting
            or self.not_waiting
        )


def difference(before: Replay, after: Replay) -> Difference:
    """What is otherwise in the second."""
    placed = {_pod(one): one for one in before.placements}, {_pod(one): one for one in after.placements}
    evicted = {_pod(one): one for one in before.evictions}, {_pod(one): one for one in after.evictions}
    waits = {_job(one): one for one in before.waiting}, {_job(one): one for one in after.waiting}
    return Difference(
        placed=[one for key, one in placed[1].items() if key not in placed[0]],
        not_placed=[one for key, one in placed[0].items() if key not in placed[1]],
        moved=[
            Moved(namespace=one.namespace, pod=one.pod, job=one.job, before=placed[0][key].node, after=one.node)
            for key, one in placed[1].items()
            if key in placed[0] and placed[0][key].node != one.node
        ],
        evicted=[one for key, one in evicted[1].items() if key not in evicted[0]],
        not_evicted=[one for key, one in evicted[0].items() if key not in evicted[1]],
        waiting=[one for key, one in waits[1].items() if key not in waits[0]],
        not_waiting=[one for key, one in waits[0].items() if key not in waits[1]],
        restated=[
            Restated(
                namespace=one.namespace,
                job=one.job,
                queue=one.queue,
                before=waits[0][key].message,
                after=one.message,
            )
            for key, one in waits[1].items()
            if key in waits[0] and waits[0][key].message != one.message
        ],
    )


def _pod(one: Placement | Eviction) -> tuple[str, str]:
    return one.namespace, one.pod


def _job(one: Waiting) -> tuple[str, str]:
    return one.namespace, one.job
