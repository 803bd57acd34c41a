"""Cycle after cycle: take in what changed, decide in a thread of its own, carry it out, and show what came of it.

A cycle begins as soon as something changed, a moment later so that what comes together is decided together; while
something waits also every so often, since time passes for delays and grace periods. No two cycles overlap.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog

from shoal.api import kai_names as names
from shoal.scheduler.actions import cycle
from shoal.scheduler.actions.pools import Key, Pools
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.plugins import NO_PLUGINS, Plugins
from shoal.scheduler.session.session import Eviction, Session
from shoal.scheduler.session.settings import ACTIONS, Settings
from shoal.scheduler.watching.carrying import Carrier, moment
from shoal.scheduler.watching.keeping import KeptPools
from shoal.scheduler.watching.mirror import Mirror

log = structlog.get_logger("shoal.scheduler")


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSettings:
    """How often, and what."""

    period: float = 1.0
    """Seconds between two cycles while something waits."""
    gather: float = 0.02
    """Seconds that a change waits for others."""
    actions: Sequence[str] = ACTIONS
    plugins: Plugins = NO_PLUGINS
    """What third parties have to say."""


@dataclass(slots=True)
class Outcome:
    """What one cycle came to."""

    number: int
    at: float
    seconds: float
    """How long it took to decide."""
    session: Session
    pools: Pools
    """Who waits, who has something to give, and who is unwell, as it came out."""
    opening: float = 0.0
    """How long it took until the first action could begin."""
    closing: float = 0.0
    """How long it took to put the model back."""
    whole: float = 0.0
    """From the first look at what changed until everything was carried out."""
    changed_jobs: set[Key] = field(default_factory=set)
    """Jobs that were not as they were when the last cycle began."""
    changed_nodes: set[str] = field(default_factory=set)


class Cycles:
    """Runs cycles."""

    def __init__(
        self,
        mirror: Mirror,
        carrier: Carrier,
        engine: Settings,
        settings: CycleSettings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._mirror = mirror
        self._carrier = carrier
        self._engine = engine
        self._settings = settings
        self._clock = clock
        self._news = asyncio.Event()
        self._kept = KeptPools(engine, settings.plugins)
        self.number = 0
        self.beforehand: list[Callable[[float], None]] = []
        """Done in a cycle's thread, at its moment, before what there is is divided among queues."""
        self.on_outcome: list[Callable[[Outcome], None]] = []
        """Told of every cycle, in its thread, before the model is put back."""
        self.afterwards: list[Callable[[], Awaitable[None]]] = []
        """Done after what was decided is carried out."""
        self.at_the_end: list[Callable[[Outcome], None]] = []
        """Told of every cycle that is over."""

    def wake(self) -> None:
        """Something changed."""
        self._news.set()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._settings.period):
                    await self._news.wait()
                await asyncio.sleep(self._settings.gather)
            except TimeoutError:
                if not self._has_to_look():
                    continue
            self._news.clear()
            try:
                await self.once()
            except Exception:
                # Whatever it was, those whom it does not concern are not to wait for it.
                log.exception("cycle failed")
                await asyncio.sleep(self._settings.period)

    async def once(self) -> Outcome:
        """One cycle."""
        now, begin = self._clock(), time.perf_counter()
        try:
            self._mirror.catch_up(now)
            outcome = await asyncio.to_thread(self._decide, now)
        except Exception:
            self._kept.forget()  # nobody knows how far it came: the next cycle looks at all jobs
            raise
        await self._carry_out(outcome, now)
        outcome.whole = time.perf_counter() - begin
        for one in self.afterwards:
            await one()
        for tell in self.at_the_end:
            tell(outcome)
        return outcome

    def _has_to_look(self) -> bool:
        """Whether anything may change by itself: somebody waits, or a gang may become stale."""
        jobs = self._mirror.cluster.jobs
        pools = self._kept.renewed(jobs, self._mirror.changed_jobs)
        if pools is None:
            return any(job.pending or job.stale_since is not None for job in jobs.values())
        return bool(len(pools.waiting) or pools.unwell)

    def _decide(self, now: float) -> Outcome:
        self.number += 1
        mirror = self._mirror
        changed_jobs, changed_nodes = mirror.changed_jobs, mirror.changed_nodes
        mirror.changed_jobs, mirror.changed_nodes = set(), set()
        try:
            return self._decided(now, changed_jobs, changed_nodes)
        except Exception:
            # Whoever shows what changed has not been told.
            mirror.changed_jobs |= changed_jobs
            mirror.changed_nodes |= changed_nodes
            raise

    def _decided(self, now: float, changed_jobs: set[Key], changed_nodes: set[str]) -> Outcome:
        mirror, begin = self._mirror, time.perf_counter()
        for prepare in self.beforehand:
            prepare(now)
        kept = self._kept.renewed(mirror.cluster.jobs, changed_jobs)
        with self._resting(now, kept):
            session = Session(
                mirror.cluster,
                self._engine,
                now=now,
                filters=mirror.filters,
                pods=mirror.pods,
                shares=mirror.shares,
                plugins=self._settings.plugins,
                numa=mirror.numa(self._engine.numa),
            )
            try:
                opened = time.perf_counter()
                pools = cycle.run(session, self._settings.actions, kept)
                outcome = Outcome(
                    number=self.number,
                    at=now,
                    seconds=time.perf_counter() - begin,
                    session=session,
                    pools=pools,
                    opening=opened - begin,
                    changed_jobs=changed_jobs,
                    changed_nodes=changed_nodes,
                )
                for tell in self.on_outcome:
                    tell(outcome)
            finally:
                ended = time.perf_counter()
                session.close()
            outcome.closing = time.perf_counter() - ended
        return outcome

    @contextmanager
    def _resting(self, now: float, kept: Pools | None) -> Iterator[None]:
        """Leaves jobs alone whose binding failed just now."""
        resting: list[Job] = []
        for key in self._mirror.rest(now):
            task = self._mirror.task(key)
            if task is not None and not task.job.is_backed_off:
                resting.append(task.job)
                task.job.is_backed_off = True
                if kept is not None:
                    kept.look_again(task.job)
        try:
            yield
        finally:
            for job in resting:
                job.is_backed_off = False
                if kept is not None:
                    kept.look_again(job)

    async def _carry_out(self, outcome: Outcome, now: float) -> None:
        session = outcome.session
        if session.decisions:
            log.info(
                "cycle",
                number=outcome.number,
                binds=session.calls.binds,
                evictions=session.calls.evictions,
                promises=session.calls.pipelines,
                seconds=round(outcome.seconds, 3),
            )
        await self._carrier.carry_out(session.decisions, now)
        marks: dict[tuple[str, str], dict[str, str | None]] = {}
        for key in session.started:
            marks.setdefault(key, {})[names.LAST_START] = moment(now)
        for key, since in session.stale.items():
            marks.setdefault(key, {})[names.STALE_SINCE] = None if since is None else moment(since)
        for decision in session.decisions:
            if isinstance(decision, Eviction):
                marks.setdefault(decision.task.job.key, {})[names.LAST_EVICTION] = moment(now)
        async with asyncio.TaskGroup() as group:
            for (namespace, name), annotations in marks.items():
                if self._mirror.remember((namespace, name), annotations):
                    self._mirror.changed_jobs.add((namespace, name))
                    continue
                group.create_task(self._carrier.mark(namespace, name, annotations))
