"""Whose turn it is among some jobs only: whoever else waits decides it too, but is not looked at one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.scheduler.model.amounts import Amounts
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.shares.job_order import JobsByQueue, job_rank
from shoal.scheduler.shares.tree import QueueTree
from tests.scheduler.builders import a_model_job, a_model_queue
from tests.scheduler.shares.builders import a_tree, gpus
from tests.scheduler.shares.test_job_order import forests, some

Wish = tuple[int, int, Amounts, bool]
"""The queue, the priority, what the job asks for, and whether it is one of those that matter."""


def line_of(queues: list[Queue], wishes: list[Wish], total: Amounts) -> tuple[QueueTree, JobsByQueue, dict[Any, Job]]:
    """A line in which the others lie sorted, and those that matter stand by themselves."""
    tree = a_tree(*queues)
    leaves = [share.name for share in tree if share.is_leaf]
    needs: dict[str, Amounts] = {}
    players: dict[Any, Job] = {}
    others: dict[str, list[Job]] = {}
    for place, (queue, priority, amounts, matters) in enumerate(wishes):
        job = a_model_job(f"job-{place}", leaves[queue % len(leaves)], priority=priority)
        needs[job.name] = amounts
        tree.ask(job.queue, amounts)
        if matters:
            players[job.key] = job
        else:
            others.setdefault(job.queue, []).append(job)
    tree.divide(total.times(3), k=1.0)
    line = JobsByQueue(tree, next_amounts=lambda job: needs[job.name], job_key=job_rank)
    for name, jobs in others.items():
        line.lay(name, sorted((job_rank(job), job) for job in jobs), lambda _: True)
    for job in players.values():
        line.push(job)
    return tree, line, players


def turns(tree: QueueTree, line: JobsByQueue, players: dict[Any, Job], *, is_short: bool) -> list[str]:
    """Those that matter, in their turns; each takes a GPU. ``is_short``: the others are passed by where they can be."""
    left, made = dict(players), []
    while left and line:
        job = line.pop()
        if left.pop(job.key, None) is not None:
            made.append(job.name)
            tree.take(job.queue, gpus(1), is_preemptible=True)
            if is_short:
                line.confine({one.queue for one in left.values()})
        elif is_short:
            line.pass_by(job.queue, left)
    return made


@settings(max_examples=200)
@given(
    queues=forests(),
    wishes=st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 1), st.one_of(some, st.just(gpus(1))), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    total=some,
)
def test_passing_others_by_changes_nobodys_turn(queues: list[Queue], wishes: list[Wish], total: Amounts) -> None:
    assert turns(*line_of(queues, wishes, total), is_short=True) == turns(
        *line_of(queues, wishes, total), is_short=False
    )


@pytest.mark.parametrize(("waits", "expected"), [(False, ["job-0", "job-1"]), (True, ["job-1", "job-0"])])
def test_who_waits_within_a_department_decides_when_its_turn_is(waits: bool, expected: list[str]) -> None:
    quota = gpus(2)
    queues = [
        a_model_queue("d", quota=quota),
        a_model_queue("e", quota=quota, created=1),
        a_model_queue("p", "d"),
        a_model_queue("q", "e"),
    ]
    wishes: list[Wish] = [(0, 0, gpus(1), True), (1, 0, gpus(1), True)]
    if waits:  # in the queue of the first, more important than it, and beyond its department's quota
        wishes.append((0, 1, gpus(3), False))
    tree, line, players = line_of(queues, wishes, gpus(4))

    assert [job.queue for job in players.values()] == ["p", "q"]
    assert turns(tree, line, players, is_short=True) == expected
