"""Reading the logs of a training run: what there is, or what comes until the run is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from shoal.api.core import PODS, Pod
from shoal.api.jobset import JOB_SETS, JobSet
from shoal.api.jobset.names import JOB_SET_NAME
from shoal.api.meta import is_true
from shoal.api.trainer import TRAIN_JOBS, TrainJob, is_finished
from shoal.api.trainer.names import FAILED
from shoal.cli.exits import CommandError
from shoal.cli.output import write
from shoal.cli.training.choosing import Choice, delay, end_of, nothing_to_show
from shoal.cli.training.clusters import Place
from shoal.cli.training.remarks import remark
from shoal.cli.training.states import blocking
from shoal.cli.training.steps import Plan, Step, steps_of
from shoal.kube import ApiError, Cache, Client, Forbidden, NotFound

_NOT_READABLE = (400, 404)
"""What a node answers of a container that is gone, or never was."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A run as it is now."""

    job: TrainJob
    plan: Plan
    steps: list[Step]


async def print_logs(place: Place, choice: Choice, *, follow: bool) -> None:
    """Prints what was chosen: what there is, or with ``follow`` all until the run is over."""
    async with place.client() as (client, namespace):
        reader = _Reader(client, namespace, choice)
        try:
            job = await client.get(TRAIN_JOBS, choice.name, namespace)
        except NotFound:
            raise CommandError(f"there is no trainjob {choice.name} in {namespace}") from None
        job_set, is_shown = await _job_set(client, choice.name, namespace)
        if job_set is not None:
            _check(choice, Plan.of(job_set))
        if follow and not is_finished(job):
            await _follow(reader, shows_job_set=is_shown)
        else:
            pods = (await client.list(PODS, namespace, label_selector=_selector(choice.name))).items
            await _print_so_far(reader, _sight(job, job_set, pods))


async def _print_so_far(reader: _Reader, sight: Sight) -> None:
    chosen = [step for step in sight.steps if reader.choice.takes(step)]
    begun = [step for step in chosen if step.life is not None]
    if not begun:
        raise CommandError(nothing_to_show(sight.job, reader.choice, sight.steps))
    for step in begun:
        await reader.read(step, follow=False, tail=reader.choice.tail)
    if not reader.printed and (why := delay(sight.job, reader.choice, sight.steps)):
        raise CommandError(why)
    for step in chosen:
        _tell_trouble(step)


async def _follow(reader: _Reader, *, shows_job_set: bool) -> None:
    """Prints what is there and what comes, of every life of every container that is meant, until the run is over."""
    choice, namespace = reader.choice, reader.namespace
    cache = Cache(reader.client, namespace=namespace)
    pods = cache.informer(PODS, label_selector=_selector(choice.name))
    jobs = cache.informer(TRAIN_JOBS, field_selector=f"metadata.name={choice.name}")
    sets = cache.informer(JOB_SETS, field_selector=f"metadata.name={choice.name}") if shows_job_set else None
    changed = asyncio.Event()
    for informer in cache.informers:
        informer.subscribe(lambda _: changed.set())

    def look() -> Sight | None:
        """The run, once it is known which steps it has; None where it is deleted."""
        job = jobs.get(choice.name, namespace)
        if job is None:
            return None
        job_set = sets.get(choice.name, namespace) if sets is not None else None
        is_unknown = sets is not None and job_set is None and not is_finished(job)
        return _sight(job, job_set, [] if is_unknown else pods.items())

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(cache.run())
        await cache.wait_for_sync()
        await _until_over(reader, changed, look)
        running.cancel()


async def _until_over(reader: _Reader, changed: asyncio.Event, look: Callable[[], Sight | None]) -> None:
    seen: set[tuple[str, int]] = set()
    said: set[str] = set()
    choice, is_first = reader.choice, True
    async with asyncio.TaskGroup() as readers:
        while True:
            changed.clear()
            sight = look()
            if sight is None:
                break
            _check(choice, sight.plan)
            for step in filter(choice.takes, sight.steps):
                if step.life is not None and step.life not in seen:
                    seen.add(step.life)
                    readers.create_task(reader.read(step, follow=True, tail=choice.tail if is_first else None))
            is_first = False
            if is_finished(sight.job):
                break
            why = {delay(sight.job, choice, sight.steps)} if not seen else set(map(_trouble, sight.steps))
            for sentence in why - said - {""}:
                remark(sentence)
            said |= why
            await changed.wait()
    _close(reader, sight, has_begun=bool(seen))


def _close(reader: _Reader, sight: Sight | None, *, has_begun: bool) -> None:
    """Says how it ended, where its lines do not."""
    if sight is None:
        if not reader.printed:
            raise CommandError(f"trainjob {reader.choice.name} was deleted before it printed anything")
    elif not has_begun:
        raise CommandError(nothing_to_show(sight.job, reader.choice, sight.steps))
    elif is_true(sight.job.status.conditions, FAILED):
        if not reader.printed:
            raise CommandError(f"{end_of(sight.job)}, and nothing was printed")
        remark(end_of(sight.job))


@dataclass(slots=True)
class _Reader:
    """Prints logs, and knows whether there was anything to print."""

    client: Client
    namespace: str
    choice: Choice
    printed: bool = field(default=False)

    async def read(self, step: Step, *, follow: bool, tail: int | None) -> None:
        """Prints one container's lines."""
        prefix = "" if self.choice.is_one else f"{step.name} | "
        lines = self.client.logs(
            step.pod.metadata.name,
            self.namespace,
            container=step.container,
            follow=follow,
            tail_lines=tail,
            timestamps=self.choice.timestamps,
        )
        try:
            async for line in lines:
                self.printed = True
                write(f"{prefix}{line.decode(errors='replace')}\n")
        except ApiError as error:
            if error.code not in _NOT_READABLE:
                raise


def _sight(job: TrainJob, job_set: JobSet | None, pods: list[Pod]) -> Sight:
    plan = Plan.of(job_set) if job_set is not None else Plan.guessed(job, pods)
    return Sight(job, plan, steps_of(pods, plan))


async def _job_set(client: Client, name: str, namespace: str) -> tuple[JobSet | None, bool]:
    """The JobSet of a run, and whether one may be seen here."""
    try:
        return await client.get(JOB_SETS, name, namespace), True
    except NotFound:
        return None, True
    except Forbidden:
        return None, False


def _check(choice: Choice, plan: Plan) -> None:
    if why := choice.refusal(plan):
        raise CommandError(why)


def _tell_trouble(step: Step) -> None:
    if told := _trouble(step):
        remark(told)


def _trouble(step: Step) -> str:
    """Why a container that has run does not run now, in words."""
    found = blocking(step.status) if step.status is not None else None
    return f"{step.name}: {found}" if found is not None else ""


def _selector(name: str) -> str:
    return f"{JOB_SET_NAME}={name}"
