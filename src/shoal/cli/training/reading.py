"""Reading the logs of a training run: what there is, or what comes until the run is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.api.core import PODS
from shoal.api.jobset.names import JOB_SET_NAME
from shoal.api.trainer import TRAIN_JOBS, is_finished
from shoal.cli.exits import CommandError
from shoal.cli.output import write
from shoal.cli.training.clusters import Place
from shoal.cli.training.steps import Step, steps_of
from shoal.kube import Cache, Client, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Whose lines, and which of them."""

    name: str
    rank: int | None
    step: str
    tail: int | None
    timestamps: bool

    def takes(self, step: Step) -> bool:
        """Whether a step is meant; initializers only where they are asked for."""
        if self.step:
            return step.name == self.step
        return step.rank is not None if self.rank is None else step.rank == self.rank

    @property
    def is_one(self) -> bool:
        """Whether there is only one whose lines are meant, so that nobody asks whose they are."""
        return bool(self.step) or self.rank is not None

    @property
    def what(self) -> str:
        """What was asked for."""
        return self.step or ("any node" if self.rank is None else f"rank {self.rank}")


async def print_logs(place: Place, choice: Choice, *, follow: bool) -> None:
    """Prints what was chosen: what there is, or with ``follow`` all until the run is over."""
    async with place.client() as (client, namespace):
        try:
            await client.get(TRAIN_JOBS, choice.name, namespace)
        except NotFound:
            raise CommandError(f"there is no trainjob {choice.name} in {namespace}") from None
        if follow:
            await _follow(client, namespace, choice)
        else:
            await _print_so_far(client, namespace, choice)


async def _print_so_far(client: Client, namespace: str, choice: Choice) -> None:
    found = steps_of((await client.list(PODS, namespace, label_selector=_selector(choice.name))).items)
    chosen = [step for step in found if choice.takes(step)]
    begun = [step for step in chosen if step.life is not None]
    if not begun:
        there = ", ".join(step.name for step in found) or "no pods yet"
        state = "has not begun" if chosen else "is not there"
        raise CommandError(f"{choice.what} of trainjob {choice.name} {state} ({there}): wait for it with --follow")
    for step in begun:
        await _print(client, namespace, choice, step, follow=False, tail=choice.tail)


async def _follow(client: Client, namespace: str, choice: Choice) -> None:
    """Prints what is there and what comes, of every life of every container that is meant, until the run is over."""
    cache = Cache(client, namespace=namespace)
    pods = cache.informer(PODS, label_selector=_selector(choice.name))
    jobs = cache.informer(TRAIN_JOBS, field_selector=f"metadata.name={choice.name}")
    changed = asyncio.Event()
    pods.subscribe(lambda _: changed.set())
    jobs.subscribe(lambda _: changed.set())

    def lives() -> Sequence[tuple[tuple[str, int], Step]]:
        chosen = (step for step in steps_of(pods.items()) if choice.takes(step))
        return [(step.life, step) for step in chosen if step.life is not None]

    def is_over() -> bool:
        job = jobs.get(choice.name, namespace)
        return job is None or is_finished(job)

    async def begin(step: Step, is_first: bool) -> None:
        await _print(client, namespace, choice, step, follow=True, tail=choice.tail if is_first else None)

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(cache.run())
        await cache.wait_for_sync()
        await _until_over(changed, lives, is_over, begin)
        running.cancel()


async def _until_over(
    changed: asyncio.Event,
    lives: Callable[[], Sequence[tuple[tuple[str, int], Step]]],
    is_over: Callable[[], bool],
    begin: Callable[[Step, bool], Coroutine[Any, Any, None]],
) -> None:
    seen: set[tuple[str, int]] = set()
    is_first = True
    async with asyncio.TaskGroup() as readers:
        while True:
            changed.clear()
            over = is_over()
            for life, step in lives():
                if life not in seen:
                    seen.add(life)
                    readers.create_task(begin(step, is_first))
            is_first = False
            if over:
                return
            await changed.wait()


async def _print(client: Client, namespace: str, choice: Choice, step: Step, *, follow: bool, tail: int | None) -> None:
    prefix = "" if choice.is_one else f"{step.name} | "
    lines = client.logs(
        step.pod.metadata.name,
        namespace,
        container=step.container,
        follow=follow,
        tail_lines=tail,
        timestamps=choice.timestamps,
    )
    async for line in lines:
        write(f"{prefix}{line.decode(errors='replace')}\n")


def _selector(name: str) -> str:
    return f"{JOB_SET_NAME}={name}"
