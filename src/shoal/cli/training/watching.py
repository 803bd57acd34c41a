"""``shoal get --watch``: the table as it is, and then each row that changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from shoal.api.core import PODS
from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES
from shoal.api.trainer.names import SUSPENDED
from shoal.cli.output import Table, to_table, write
from shoal.cli.training.fitting import fitted
from shoal.cli.training.getting import Kind
from shoal.cli.training.pages import AGE, CUT_FIRST, STATE, runtimes_table, train_jobs_table
from shoal.cli.training.showing import PODS_THAT_TELL, Question, standings
from shoal.kube import Cache, Client, Informer

DELETED = "Deleted"

Picture = Callable[[], tuple[list[Any], Table]]
"""The objects as they are, and their rows."""


async def watch(client: Client, question: Question, namespace: str, *, with_pods: bool) -> None:
    """Prints what changes, until somebody stops it."""
    cache = Cache(client, namespace=namespace)
    if question.kind is Kind.TRAIN_JOBS:
        picture = _train_jobs(cache, question, with_pods=with_pods)
    else:
        picture = _runtimes(cache, question)
    changed = asyncio.Event()
    for informer in cache.informers:
        informer.subscribe(lambda _: changed.set())
    changes = Changes()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(cache.run())
        await cache.wait_for_sync()
        while True:
            changed.clear()
            objects, table = picture()
            keys = [(one.metadata.namespace, one.metadata.name) for one in objects]
            write(changes.text(keys, table, question.width))
            await changed.wait()


class Changes:
    """Remembers what was printed, and prints what is new."""

    def __init__(self) -> None:
        self._rows: dict[Any, tuple[str, ...]] = {}
        self._widest = {STATE: SUSPENDED}
        """By column, what is kept room for, so that columns do not move with every word."""
        self._heading = ""

    def text(self, keys: Sequence[Any], table: Table, width: int | None) -> str:
        """The rows that are not as they were, getting older aside; under the heading where that is new."""
        rows = {key: tuple(str(cell) for cell in row) for key, row in zip(keys, table.rows, strict=True)}
        heading = list(table.heading)
        gone = {key: _struck(row, heading) for key, row in self._rows.items() if key not in rows}
        new = {key for key, row in rows.items() if not _is_same(row, self._rows.get(key), heading)} | set(gone)
        self._rows = rows
        if not new:
            return ""
        both = gone | rows
        for name, cells in zip(heading, zip(*both.values(), strict=True), strict=True):
            self._widest[name] = max((self._widest.get(name, ""), *cells), key=len)
        widest = [self._widest[name] for name in heading]
        whole = fitted(Table([widest, *both.values()], heading), width, CUT_FIRST)
        first, _, *lines = to_table(whole).splitlines()
        told = [line for key, line in zip(both, lines, strict=True) if key in new]
        if first != self._heading:
            told.insert(0, first)
        self._heading = first
        return "".join(f"{line}\n" for line in told)


def _is_same(row: tuple[str, ...], before: tuple[str, ...] | None, heading: Sequence[str]) -> bool:
    if before is None:
        return False
    return all(name == AGE or now == then for name, now, then in zip(heading, row, before, strict=True))


def _struck(row: tuple[str, ...], heading: Sequence[str]) -> tuple[str, ...]:
    at = heading.index(STATE) if STATE in heading else len(heading) - 1
    return (*row[:at], DELETED, *row[at + 1 :])


def _train_jobs(cache: Cache, question: Question, *, with_pods: bool) -> Picture:
    jobs = cache.informer(TRAIN_JOBS, field_selector=question.fields)
    pods = (
        cache.informer(PODS, label_selector=question.pod_labels, field_selector=PODS_THAT_TELL) if with_pods else None
    )

    def picture() -> tuple[list[Any], Table]:
        found = standings(_ordered(jobs), pods.items() if pods is not None else ())
        table = train_jobs_table(found, datetime.now(UTC), with_namespace=question.everywhere, is_wide=question.is_wide)
        return [job for job, _ in found], table

    return picture


def _runtimes(cache: Cache, question: Question) -> Picture:
    of_cluster = cache.informer(CLUSTER_TRAINING_RUNTIMES, field_selector=question.fields)
    of_namespace = cache.informer(TRAINING_RUNTIMES, field_selector=question.fields)

    def picture() -> tuple[list[Any], Table]:
        found = [*_ordered(of_cluster), *_ordered(of_namespace)]
        return found, runtimes_table(found)

    return picture


def _ordered(informer: Informer[Any]) -> list[Any]:
    return sorted(informer.items(), key=lambda one: (one.metadata.namespace, one.metadata.name))
