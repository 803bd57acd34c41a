"""Statements: whatever is done through one can be taken back, and only its outcome counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.scheduler.actions import cycle
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.resources import GPU
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.scenarios.building import cluster_of, settings_of
from shoal.scheduler.scenarios.cases import ACTIONS, Scenario
from shoal.scheduler.session.session import Bind, Eviction, Promise, Session
from shoal.scheduler.session.settings import Settings
from shoal.scheduler.session.statement import Reason, Statement, Verb
from tests.scheduler.actions.random_clusters import clusters
from tests.scheduler.session.model_state import state_of
from tests.scheduler.session.worlds import World

NOW = 1_000_000.0
WHY = Reason(action="test")


def a_session(world: World) -> Session:
    return Session(world.cluster, Settings(), now=world.now)


def tasks_of(*jobs: Job) -> list[Task]:
    return [task for job in jobs for task in job.tasks.values()]


class Hand:
    """Does with a statement what is possible, by numbers that anybody may draw."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.statement = session.statement()
        self._tasks = [task for job in session.cluster.jobs.values() for task in job.tasks.values()]

    def does(self, verb: int, which: int, where: int) -> None:
        task, row = self._tasks[which % len(self._tasks)], where % len(self._session.nodes)
        groups: tuple[str, ...] = (f"new-{where}",) * bool(task.request.is_shared)
        if verb == 0 and task.hold is not None and task.status not in (Status.RELEASING, Status.STUCK_IN_RELEASING):
            self.statement.evict(task, WHY)
        elif verb == 1 and task.hold is None:
            self.statement.allocate(task, row, groups)
        elif verb == 2 and (task.hold is None or task.status is Status.RELEASING):
            self.statement.pipeline(task, row, groups)
        elif verb == 3:
            self.statement.roll_back(where % (self.statement.checkpoint + 1))
        elif verb == 4:
            last = {op.task.uid: op for op in self.statement.operations}
            given = [op.task for op in last.values() if op.verb is Verb.ALLOCATE]
            self.statement.promise_instead(given[: where % 4])
        elif verb == 5:
            self.statement.commit()


MOVES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30), st.integers(0, 7)), max_size=25)


@settings(max_examples=50)
@given(clusters(5), MOVES)
def test_whatever_a_statement_does_it_takes_back(scenario: Scenario, moves: list[tuple[int, int, int]]) -> None:
    session = Session(cluster_of(scenario, NOW), settings_of(scenario), now=NOW)
    before = state_of(session)
    hand = Hand(session)
    for move in moves:
        hand.does(*move)

    hand.statement.roll_back()

    assert state_of(session) == before


@settings(max_examples=50)
@given(clusters(5), MOVES, MOVES)
def test_what_came_before_a_checkpoint_stays(
    scenario: Scenario, first: list[tuple[int, int, int]], then: list[tuple[int, int, int]]
) -> None:
    session = Session(cluster_of(scenario, NOW), settings_of(scenario), now=NOW)
    hand = Hand(session)
    for move in first:
        hand.does(*move)
    between, checkpoint = state_of(session), hand.statement.checkpoint
    for verb, which, where in then:
        if verb in (0, 1, 2):  # the others reach back behind the checkpoint
            hand.does(verb, which, where)

    hand.statement.roll_back(checkpoint)

    assert state_of(session) == between


@settings(max_examples=50)
@given(clusters(5), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30), st.integers(0, 7)), max_size=25))
def test_a_session_that_is_closed_leaves_the_model_as_it_was(
    scenario: Scenario, moves: list[tuple[int, int, int]]
) -> None:
    session = Session(cluster_of(scenario, NOW), settings_of(scenario), now=NOW)
    before = state_of(session)
    hand = Hand(session)
    for move in moves:
        hand.does(*move)
    hand.statement.commit()

    session.close()

    assert state_of(session) == before


@settings(max_examples=50)
@given(clusters())
def test_a_cycle_leaves_the_model_as_it_was(scenario: Scenario) -> None:
    session = Session(cluster_of(scenario, NOW), settings_of(scenario), now=NOW)
    before = state_of(session)
    cycle.run(session, ACTIONS)

    session.close()

    assert state_of(session) == before
    session.close()
    assert state_of(session) == before


def test_an_evicted_task_that_is_put_back_where_it_was_is_left_alone() -> None:
    world = World({"n": 1})
    (task,) = tasks_of(world.job("a", on="n"))
    session = a_session(world)
    before = state_of(session)
    statement = session.statement()
    statement.evict(task, WHY)
    assert task.status is Status.RELEASING
    assert session.shares["q"].allocated.gpu == 0

    statement.pipeline(task, 0)
    statement.commit()

    assert session.decisions == []
    assert state_of(session) == before


def test_an_evicted_task_that_gets_another_place_has_two_for_a_while() -> None:
    world = World({"m": 1, "n": 1})
    (task,) = tasks_of(world.job("a", on="m"))
    session = a_session(world)
    statement = session.statement()

    statement.evict(task, WHY)
    statement.pipeline(task, 1)
    statement.commit()

    assert session.decisions == [Eviction(task, WHY), Promise(task, "n")]
    assert session.nodes.idle[:, GPU].tolist() == [0, 1]
    assert session.nodes.releasing[:, GPU].tolist() == [1, -1]
    assert session.shares["q"].allocated.gpu == 1


def test_what_is_given_may_be_promised_instead() -> None:
    world = World({"n": 2})
    first, second = tasks_of(world.job("a", pods=2))
    session = a_session(world)
    statement = session.statement()
    statement.allocate(first, 0)
    statement.allocate(second, 0)

    statement.promise_instead([first, second])
    statement.commit()

    assert session.decisions == [Promise(first, "n"), Promise(second, "n")]
    assert session.nodes.idle[0, GPU] == 2
    assert session.nodes.releasing[0, GPU] == -2


def test_a_promise_that_is_broken_is_no_eviction() -> None:
    world = World({"n": 1})
    (task,) = tasks_of(world.job("a"))
    session = a_session(world)
    promising = session.statement()
    promising.pipeline(task, 0)
    promising.commit()

    breaking = session.statement()
    breaking.evict(task, WHY)
    breaking.commit()

    assert session.decisions == []
    assert task.status is Status.PENDING
    assert session.nodes.releasing[0, GPU] == 0


def given_to(session: Session, tasks: Sequence[Task]) -> None:
    statement = session.statement()
    for task in tasks:
        statement.allocate(task, 0)
    statement.commit()


def test_whoever_got_a_place_in_this_cycle_and_loses_it_again_is_not_evicted() -> None:
    world = World({"n": 1})
    (task,) = tasks_of(world.job("a"))
    session = a_session(world)
    given_to(session, [task])
    assert session.decisions == [Bind(task, "n", ())]
    assert session.calls.binds == 1

    statement = session.statement()
    statement.evict(task, WHY)
    statement.commit()

    assert session.decisions == []
    assert session.calls.binds == 0


@pytest.mark.parametrize(("least", "bound"), [(3, 0), (2, 2)], ids=["which it needs", "which it can do without"])
def test_a_gang_of_which_a_part_lost_its_place_again_waits_with_it(least: int, bound: int) -> None:
    world = World({"m": 3, "n": 1})
    tasks = tasks_of(world.job("a", pods=3, least=least))
    session = a_session(world)
    given_to(session, tasks)

    statement = session.statement()
    statement.evict(tasks[2], WHY)
    statement.pipeline(tasks[2], 1)
    statement.commit()

    assert sum(isinstance(one, Bind) for one in session.decisions) == bound
    assert sum(isinstance(one, Promise) for one in session.decisions) == 3 - bound
    before = state_of(session)
    assert before["tasks"][tasks[2].uid][0] is Status.PIPELINED
    session.close()
    np.testing.assert_array_equal(session.nodes.idle, session.nodes.allocatable)


def test_a_gang_that_ran_before_goes_on_though_a_part_of_it_moves() -> None:
    world = World({"m": 2, "n": 1})
    tasks = tasks_of(world.job("a", pods=2, on="m"))
    session = a_session(world)
    statement = session.statement()
    statement.evict(tasks[1], WHY)
    statement.pipeline(tasks[1], 1)
    statement.commit()

    assert session.decisions == [Eviction(tasks[1], WHY), Promise(tasks[1], "n")]
    assert tasks[0].status is Status.RUNNING


def test_those_who_keep_something_of_jobs_hear_of_every_change_and_of_its_end() -> None:
    world = World({"n": 1})
    job = world.job("a")
    session = a_session(world)
    heard: list[tuple[str, int]] = []
    session.on_change.append(lambda changed: heard.append((changed.name, changed.pending)))

    given_to(session, tasks_of(job))
    session.close()

    assert heard == [("a", 0), ("a", 1)]


def test_an_undone_statement_is_heard_of_by_nobody() -> None:
    world = World({"n": 1})
    (task,) = tasks_of(world.job("a"))
    session = a_session(world)
    heard: list[Job] = []
    session.on_change.append(heard.append)
    statement: Statement = session.statement()
    statement.allocate(task, 0)
    statement.roll_back()

    assert heard == []
