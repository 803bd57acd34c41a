"""Who holds what a job waits for: queues beyond what they are entitled to, jobs that could be evicted, and why not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from shoal.scheduler.actions.pools import Pool, has_something_to_give
from shoal.scheduler.actions.solver.victims import held, is_evictable
from shoal.scheduler.explaining.explanation import Holder, Holding, WhyKept
from shoal.scheduler.explaining.words import figures, moment
from shoal.scheduler.model.amounts import NONE, Amounts
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.session.session import Session
from shoal.scheduler.shares.job_order import has_surplus
from shoal.scheduler.shares.min_runtime import preempt_min_runtime, reclaim_min_runtime
from shoal.scheduler.shares.reclaim import is_candidate, may_reclaim, where_they_part
from shoal.scheduler.shares.tree import Share

_MOST_QUEUES: Final = 10
_MOST_JOBS: Final = 2_000
_MOST_EXAMPLES: Final = 3


def is_entitled(session: Session, job: Job) -> bool:
    """Whether the job's queue may take back from others what the job needs."""
    if job.queue not in session.shares:
        return False
    amounts = session.next_amounts(job, for_real=False)
    return may_reclaim(session.shares, job.queue, amounts, is_preemptible=job.is_preemptible)


def holders_of(session: Session, job: Job) -> list[Holder]:
    """The queues to look at: the job's own, for those less important, and others if it may take back from them."""
    own = session.shares.get(job.queue)
    if own is None:
        return []
    amounts = session.next_amounts(job, for_real=False)
    givers = Pool(session.cluster.jobs.values(), has_something_to_give, session.ordering.job_rank)
    found: list[tuple[Amounts, Holder]] = []
    if is_entitled(session, job):
        for share in session.shares:
            if share.is_leaf and share is not own and is_candidate(session.shares, job.queue, amounts, share.name):
                found.append(_other(session, job, own, share, _jobs(givers, share)))
    relevant = [one for one in found if one[1].jobs]
    relevant.sort(key=lambda one: (-one[0].gpu, -one[0].cpu, one[1].queue))
    mine = _own(session, job, own, _jobs(givers, own))
    return [*([mine] if mine.jobs else []), *(holder for _, holder in relevant[:_MOST_QUEUES])]


def _jobs(givers: Pool, share: Share) -> Iterable[Job]:
    """The least entitled first, which would have to go first."""
    return (job for _, job in islice(reversed(givers.of(share.name)), _MOST_JOBS))


def _other(session: Session, job: Job, own: Share, share: Share, jobs: Iterable[Job]) -> tuple[Amounts, Holder]:
    _, side = where_they_part(own, share)
    settings = session.min_runtimes
    length = reclaim_min_runtime(session.shares, job.queue, share.name, settings) if settings.is_enabled else 0.0
    kept = _Kept(session.now, share.allocated_non_preemptible)
    for other in jobs:
        kept.add(other, length, is_too_important=False)
    beyond = Amounts(*(max(0.0, has - may) for has, may in zip(side.allocated, side.allocatable, strict=True)))
    return beyond, _holder(share, side, beyond, kept)


def _own(session: Session, job: Job, own: Share, jobs: Iterable[Job]) -> Holder:
    settings = session.min_runtimes
    length = preempt_min_runtime(session.shares, own.name, settings) if settings.is_enabled else 0.0
    kept = _Kept(session.now, own.allocated_non_preemptible)
    for other in jobs:
        if other is not job:
            kept.add(other, length, is_too_important=other.priority >= job.priority)
    beyond = Amounts(*(max(0.0, has - may) for has, may in zip(own.allocated, own.allocatable, strict=True)))
    return _holder(own, own, beyond, kept)


def _holder(share: Share, side: Share, beyond: Amounts, kept: _Kept) -> Holder:
    return Holder(
        queue=share.name,
        allocated=figures(share.allocated),
        entitled=figures(side.allocatable),
        beyond=figures(beyond),
        jobs=kept.holdings(),
    )


@dataclass(slots=True)
class _Group:
    jobs: int = 0
    pods: int = 0
    holds: Amounts = NONE
    until: float | None = None
    examples: list[str] = field(default_factory=list)


class _Kept:
    """Jobs of a queue by why they keep what they have."""

    def __init__(self, now: float, non_preemptible: Amounts) -> None:
        self._now = now
        self._non_preemptible = non_preemptible
        self._groups: dict[WhyKept, _Group] = {}

    def add(self, job: Job, min_runtime: float, *, is_too_important: bool) -> None:
        until = None if job.last_start is None else job.last_start + min_runtime
        is_protected = until is not None and self._now < until and not has_surplus(job.root)
        why = WhyKept.MIN_RUNTIME if is_protected else WhyKept.NO_PLAN
        why = WhyKept.PRIORITY if is_too_important else why
        group = self._groups.setdefault(why, _Group())
        group.jobs += 1
        group.pods += sum(map(is_evictable, job.tasks.values()))
        group.holds = group.holds.plus(held(job))
        if why is WhyKept.MIN_RUNTIME and until is not None:
            group.until = until if group.until is None else min(until, group.until)
        if len(group.examples) < _MOST_EXAMPLES:
            group.examples.append(f"{job.namespace}/{job.name}")

    def holdings(self) -> list[Holding]:
        made = [
            Holding(
                why=why,
                jobs=group.jobs,
                pods=group.pods,
                holds=figures(group.holds),
                examples=group.examples,
                until=None if group.until is None else moment(group.until),
            )
            for why, group in self._groups.items()
        ]
        if self._non_preemptible.exceeds_somewhere(NONE):
            # Nobody looks at these one by one: their queue knows what they hold.
            holds = figures(self._non_preemptible)
            made.append(Holding(why=WhyKept.NON_PREEMPTIBLE, jobs=0, pods=0, holds=holds, examples=[]))
        return sorted(made, key=lambda one: list(WhyKept).index(one.why), reverse=True)
