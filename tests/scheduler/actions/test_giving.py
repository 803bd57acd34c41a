"""What was given in a cycle and taken back in it is free: whoever is promised it in the end gets it now."""

from __future__ import annotations

from shoal.scheduler.actions.giving import give_what_is_free
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.settings import Settings
from shoal.scheduler.session.statement import Reason
from tests.scheduler.session.model_state import state_of
from tests.scheduler.session.worlds import World

WHY = Reason(action="reclaim")


def tasks_of(job: Job) -> list[Task]:
    return list(job.tasks.values())


def given(session: Session, *places: tuple[Task, int]) -> None:
    statement = session.statement()
    for task, row in places:
        statement.allocate(task, row)
    statement.commit()


def moved(session: Session, victim: Task, *promises: tuple[Task, int]) -> None:
    statement = session.statement()
    statement.evict(victim, WHY)
    for task, row in promises:
        statement.pipeline(task, row)
    statement.commit()


def decided(session: Session) -> list[tuple[str, str, str]]:
    return sorted((type(one).__name__, one.task.name, one.task.node) for one in session.decisions)


def test_a_promise_of_what_another_was_given_a_moment_ago_is_kept_at_once() -> None:
    world = World({"n": 1})
    first, second = world.job("first"), world.job("second")
    session = Session(world.cluster, Settings(), now=5.0)
    before = state_of(session)
    given(session, (tasks_of(first)[0], 0))
    moved(session, tasks_of(first)[0], (tasks_of(second)[0], 0))

    give_what_is_free(session)

    assert decided(session) == [("Bind", "second-0", "n")]
    assert tasks_of(first)[0].status is Status.PENDING
    assert session.started == {second.key: 5.0}
    session.close()
    assert state_of(session) == before


def test_who_was_given_one_place_and_promised_another_gets_the_other() -> None:
    world = World({"m": 1, "n": 1})
    job, other = world.job("job"), world.job("other")
    session = Session(world.cluster, Settings(), now=5.0)
    before = state_of(session)
    given(session, (tasks_of(job)[0], 0))
    moved(session, tasks_of(job)[0], (tasks_of(job)[0], 1), (tasks_of(other)[0], 0))

    give_what_is_free(session)

    assert decided(session) == [("Bind", "job-0", "n"), ("Bind", "other-0", "m")]
    session.close()
    assert state_of(session) == before


def test_a_gang_that_waits_for_one_that_really_ends_waits_whole() -> None:
    world = World({"m": 1, "n": 1})
    running, first, gang = world.job("running", on="n"), world.job("first"), world.job("gang", pods=2)
    session = Session(world.cluster, Settings(), now=5.0)
    given(session, (tasks_of(first)[0], 0))
    moved(session, tasks_of(first)[0], (tasks_of(gang)[0], 0))
    moved(session, tasks_of(running)[0], (tasks_of(gang)[1], 1))

    give_what_is_free(session)

    assert decided(session) == [
        ("Eviction", "running-0", "n"),
        ("Promise", "gang-0", "m"),
        ("Promise", "gang-1", "n"),
    ]
    assert session.nodes.idle[0, 2] == 1


def test_where_nothing_was_taken_back_promises_stay_what_they_are() -> None:
    world = World({"n": 1})
    job = world.job("job")
    session = Session(world.cluster, Settings(), now=5.0)
    statement = session.statement()
    statement.pipeline(tasks_of(job)[0], 0)
    statement.commit()

    give_what_is_free(session)

    assert decided(session) == [("Promise", "job-0", "n")]
