"""The scheduler with all that belongs to it, added to one manager."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.api.visualizer import Publish
from shoal.kube import Manager
from shoal.scheduler.binding import BindingSettings, add_binding
from shoal.scheduler.defaults import add_defaults
from shoal.scheduler.explaining import Questions, short
from shoal.scheduler.grouper import GrouperSettings, add_grouper
from shoal.scheduler.podgroups import add_pod_groups
from shoal.scheduler.queues import QueueSettings, add_queues
from shoal.scheduler.scale_adjuster import add_scale_adjuster
from shoal.scheduler.session.session import total_of
from shoal.scheduler.session.settings import Settings
from shoal.scheduler.shares.usage import UsageSettings, past_use
from shoal.scheduler.watching.carrying import Carrier
from shoal.scheduler.watching.cycles import Cycles, CycleSettings
from shoal.scheduler.watching.dialects import add_dialects
from shoal.scheduler.watching.measuring import Measuring
from shoal.scheduler.watching.mirror import Mirror, MirrorSettings
from shoal.scheduler.watching.publishing import Publishing
from shoal.scheduler.watching.telling import Telling
from shoal.scheduler.watching.watches import Watches


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """Whose pods it schedules, how, and how often."""

    mirror: MirrorSettings = MirrorSettings()
    engine: Settings = Settings()
    cycles: CycleSettings = CycleSettings()
    grouper: GrouperSettings = GrouperSettings()
    binding: BindingSettings = BindingSettings()
    queues: QueueSettings = QueueSettings()
    metrics_namespace: str = "kai"
    """What the names of the scheduler's metrics begin with."""
    usage: UsageSettings | None = None
    """Which past of queues counts; None: none."""


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler that was added to a manager, for those who show what it does."""

    cycles: Cycles
    mirror: Mirror
    questions: Questions


def add_scheduler(
    manager: Manager, settings: SchedulerSettings = SchedulerSettings(), publish: Publish | None = None
) -> Scheduler:
    """The scheduler alone: it decides while its process leads. ``publish`` is given a view after every cycle."""
    pool = settings.mirror.node_pool
    mirror = Mirror(settings.mirror)
    telling = Telling(manager, mirror, node_pool=pool)
    carrier = Carrier(
        manager,
        mirror,
        node_pool_key=settings.mirror.node_pool_key,
        node_pool=pool,
        why=lambda eviction: telling.evictions.get(eviction.task.uid, ""),
    )
    cycles = Cycles(mirror, carrier, settings.engine, settings.cycles)
    measuring = Measuring(
        manager.metrics.registry,
        settings.engine,
        settings.cycles.actions,
        namespace=settings.metrics_namespace,
        node_pool=pool,
    )
    carrier.on_bound.append(measuring.bound)
    carrier.on_evicted.append(measuring.evicted)
    questions = Questions(cycles.wake)
    cycles.on_outcome += (telling.collect, questions.answer, measuring.decided)
    cycles.at_the_end.append(measuring.ended)
    cycles.afterwards.append(telling.tell)
    if publish is not None:
        cycles.on_outcome.append(Publishing(mirror, publish, short).after)
    Watches(manager, mirror, cycles.wake)
    add_dialects(manager, mirror, cycles.wake)
    _run(manager, settings, cycles, mirror, measuring)
    return Scheduler(cycles, mirror, questions)


def _run(manager: Manager, settings: SchedulerSettings, cycles: Cycles, mirror: Mirror, measuring: Measuring) -> None:
    """Has cycles run while the process leads; where the past counts, once it is known."""
    if settings.usage is None:
        manager.add_leader_task(cycles.run)
        return
    past = past_use(settings.usage, name=settings.mirror.node_pool, wake=cycles.wake, on_answer=measuring.queried)
    cycles.beforehand.append(lambda now: past.tell(now, mirror.shares, total_of(mirror.cluster)))

    async def run_with_past() -> None:
        await past.known()
        await cycles.run()

    manager.add_leader_task(past.run)
    manager.add_leader_task(run_with_past)


def add_everything(
    manager: Manager, settings: SchedulerSettings = SchedulerSettings(), publish: Publish | None = None
) -> Scheduler:
    """The scheduler, and the controllers that it works with."""
    add_defaults(manager)
    add_queues(manager, settings.queues)
    add_pod_groups(manager)
    add_grouper(manager, settings.grouper)
    add_binding(manager, settings.binding)
    add_scale_adjuster(manager)
    return add_scheduler(manager, settings, publish)
