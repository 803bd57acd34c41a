"""Which replicas of a scaling group an update takes next."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.grove import PodCliqueScalingGroup, PodCliqueScalingGroupUpdate, PodCliqueSetUpdate, ReplicasToUpdate
from shoal.gangs.groups.rolling import Step, next_step
from shoal.gangs.groups.status import current_hash
from shoal.gangs.hashes import generation_hash
from tests.gangs.groups.observed import MADE, NOW, a_group
from tests.gangs.groups.worlds import ROLLING, all_are, replicas_of, the_set, with_status

OLD, NEW = generation_hash(the_set(1)), generation_hash(the_set(2))
CLOSED = PodCliqueSetUpdate(update_started_at=MADE, update_ended_at=MADE)


def an_update(to: str = NEW, *, current: int | None = None, completed: Any = (), **fields: Any) -> Any:
    selected = None if current is None else ReplicasToUpdate(current=current, completed=list(completed))
    return PodCliqueScalingGroupUpdate(
        update_started_at=MADE,
        pod_clique_set_generation_hash=to,
        ready_replica_indices_selected_to_update=selected,
        total_pod_cliques_count=6,
        **fields,
    )


def selected_of(step: Step) -> tuple[int, list[int]] | None:
    assert step.progress is not None
    selected = step.progress.ready_replica_indices_selected_to_update
    return None if selected is None else (selected.current, selected.completed)


@pytest.mark.parametrize(
    ("states", "minimum", "before", "delete", "selected"),
    [
        pytest.param(all_are("well", 1), 1, None, (0,), (0, []), id="the first of those that are ready"),
        pytest.param(all_are("well", 1), 3, None, (0,), (0, []), id="as many are available as must be"),
        pytest.param(
            [("well", 1), ("pending", 1), ("unready", 1)], 1, None, (0, 1, 2), (0, []), id="what does not work, at once"
        ),
        pytest.param(
            [("well", 1), ("pending", 1), ("broken", 1)], 2, None, (1, 2), None, id="too few are available for another"
        ),
        pytest.param([("half", 1), ("well", 2), ("well", 2)], 1, None, (0,), None, id="one that lacks a clique"),
        pytest.param(
            [("missing", 2), ("well", 1), ("well", 1)], 1, an_update(current=0), (), (0, []), id="one is away: wait"
        ),
        pytest.param(
            [("fresh", 2), ("well", 1), ("well", 1)], 1, an_update(current=0), (), (0, []), id="one comes up: wait"
        ),
        pytest.param(
            [("well", 1), ("well", 1), ("well", 1)], 1, an_update(current=0), (0,), (0, []), id="chosen, still there"
        ),
        pytest.param(
            [("well", 2), ("well", 1), ("well", 1)], 1, an_update(current=0), (1,), (1, [0]), id="one has arrived: next"
        ),
        pytest.param(
            [("fresh", 2), ("well", 1), ("broken", 1)], 1, an_update(current=0), (2,), (0, []),
            id="one breaks while another is away",
        ),
        pytest.param(
            [("well", 2), ("well", 2), ("well", 1)], 1, an_update(current=1, completed=[0]), (2,), (2, [0, 1]),
            id="the last one",
        ),
        pytest.param(
            [("well", 2), ("well", 1)], 1, an_update(current=2, completed=[0]), (1,), (1, [0, 2]),
            id="the one in work was scaled away",
        ),
    ],
)  # fmt: skip
def test_the_next_replicas(
    states: Any, minimum: int, before: Any, delete: tuple[int, ...], selected: tuple[int, list[int]] | None
) -> None:
    pcs = the_set(2, progress=ROLLING)
    group = a_group(replicas=len(states), minimum=minimum, update_progress=before)

    step = next_step(pcs, 0, group, replicas_of(pcs, *states), NOW)

    assert (step.delete, selected_of(step)) == (delete, selected)
    assert step.is_running


def test_an_update_opens_with_the_set_s_hash_and_counts_cliques() -> None:
    pcs = the_set(2, progress=ROLLING)

    step = next_step(pcs, 0, a_group(replicas=3), replicas_of(pcs, ("well", 2), ("well", 1), ("old pods", 2)), NOW)

    assert step.progress is not None
    assert (step.progress.update_started_at, step.progress.pod_clique_set_generation_hash) == (NOW, NEW)
    assert (step.progress.updated_pod_cliques_count, step.progress.total_pod_cliques_count) == (3, 6)


@pytest.mark.parametrize(
    "states",
    [
        pytest.param(all_are("well", 2), id="all are updated"),
        pytest.param([("well", 2), ("pending", 2), ("fresh", 2)], id="some have no room, and are new"),
    ],
)
def test_an_update_ends_when_no_replica_is_old_or_away(states: Any) -> None:
    pcs = the_set(2, progress=ROLLING)
    group = a_group(replicas=3, update_progress=an_update(current=0))

    step = next_step(pcs, 0, group, replicas_of(pcs, *states), NOW)

    assert step.progress is not None
    assert (step.progress.update_ended_at, selected_of(step), step.delete) == (NOW, (0, [0]), ())


def test_an_update_does_not_end_while_a_replica_is_away() -> None:
    pcs = the_set(2, progress=ROLLING)
    group = a_group(replicas=3, update_progress=an_update(current=0))

    assert next_step(pcs, 0, group, replicas_of(pcs, ("well", 2), ("well", 2), ("missing", 2)), NOW).is_running


def test_an_update_that_touches_no_member_ends_where_it_begins() -> None:
    pcs = the_set(2, progress=ROLLING)

    step = next_step(pcs, 0, a_group(replicas=3), replicas_of(pcs, *all_are("well", 2)), NOW)

    assert step.progress is not None
    assert (step.progress.update_started_at, step.progress.update_ended_at) == (NOW, NOW)
    assert step.progress.ready_replica_indices_selected_to_update is None


def test_a_change_in_the_middle_begins_anew_and_takes_the_half_done_replica_at_once() -> None:
    pcs = the_set(3, progress=ROLLING)
    group = a_group(replicas=3, update_progress=an_update(to=NEW, current=0))

    step = next_step(pcs, 0, group, replicas_of(pcs, ("unready", 2), ("well", 1), ("well", 1)), NOW)

    assert step.progress is not None
    assert step.progress.pod_clique_set_generation_hash == generation_hash(the_set(3))
    assert (step.delete, selected_of(step)) == ((0, 1), (1, []))


@pytest.mark.parametrize(
    ("pcs", "group", "expected"),
    [
        pytest.param(the_set(2), a_group(), None, id="no update was ever begun"),
        pytest.param(
            the_set(2, progress=PodCliqueSetUpdate(update_started_at=MADE)), a_group(), None, id="no replica is chosen"
        ),
        pytest.param(
            the_set(2, progress=ROLLING, known=1), a_group(), None, id="the set has not told of its templates"
        ),
        pytest.param(
            the_set(2, progress=CLOSED),
            a_group(update_progress=an_update()),
            an_update(update_ended_at=NOW),
            id="left open when the set's update was over",
        ),
        pytest.param(
            the_set(2, progress=CLOSED, update="OnDelete"),
            a_group(generation_hash=OLD),
            PodCliqueScalingGroupUpdate(
                update_started_at=NOW,
                update_ended_at=NOW,
                pod_clique_set_generation_hash=NEW,
                total_pod_cliques_count=6,
            ),
            id="on delete: opened and closed at once",
        ),
        pytest.param(
            the_set(2, progress=CLOSED, update="OnDelete"),
            a_group(generation_hash=OLD, update_progress=an_update(update_ended_at=MADE)),
            an_update(update_ended_at=MADE),
            id="on delete: once",
        ),
        pytest.param(
            the_set(2, progress=CLOSED, update="OnDelete"), a_group(), None, id="on delete: a new group has no update"
        ),
    ],
)
def test_nothing_is_replaced(pcs: Any, group: PodCliqueScalingGroup, expected: Any) -> None:
    step = next_step(pcs, 0, group, replicas_of(pcs, *all_are("well", 1)), NOW)

    assert step == Step(progress=expected)


def test_another_replica_of_the_set_is_none_of_its_business() -> None:
    pcs = the_set(2, progress=ROLLING)

    assert next_step(pcs, 1, a_group(), replicas_of(pcs, *all_are("well", 1)), NOW) == Step(progress=None)


def test_a_replica_that_was_made_old_after_the_end_is_still_replaced() -> None:
    pcs = the_set(2, progress=ROLLING)
    group = a_group(replicas=3, update_progress=an_update(update_ended_at=MADE))

    step = next_step(pcs, 0, group, replicas_of(pcs, ("well", 2), ("well", 2), ("well", 1)), NOW)

    assert (step.delete, step.is_running) == ((2,), True)


STATES = st.sampled_from(["well", "fresh", "pending", "unready", "broken", "half", "missing", "going"])


@given(
    replicas=st.lists(st.tuples(STATES, st.integers(1, 2)), min_size=1, max_size=5),
    minimum=st.integers(1, 5),
    changes=st.sets(st.integers(0, 12), max_size=2),
)
def test_from_any_state_an_update_ends_and_never_takes_two_replicas_that_work(
    replicas: list[tuple[str, int]], minimum: int, changes: set[int]
) -> None:
    """A world in which what was deleted is made anew, and everything comes up sooner or later."""
    states, version = list(replicas), 2
    minimum = min(minimum, len(states))
    pcs = the_set(version, progress=ROLLING)
    group = a_group(replicas=len(states), minimum=minimum)
    coming_up = {"missing": "fresh", "going": "missing"}
    for moment in range(80):
        seen = replicas_of(pcs, *states)
        step = next_step(pcs, 0, group, seen, NOW)
        group = with_status(group, update_progress=step.progress)
        if not step.is_running and moment > max(changes, default=0):
            break
        working = [replica.index for replica in seen if replica.is_available]
        taken = [index for index in step.delete if index in working]
        assert len(taken) <= 1
        assert not taken or len(working) >= minimum
        for index, (state, of_version) in enumerate(states):
            if index in step.delete:
                states[index] = ("missing", version)
            elif state == "missing" or (state == "half" and of_version == version):
                states[index] = ("fresh", version)
            elif state != "well":
                states[index] = (coming_up.get(state, "well"), of_version)
        if moment in changes:
            version += 1
            pcs = the_set(version, progress=ROLLING)
    else:
        raise AssertionError("the update does not end")

    assert {of_version for _, of_version in states} == {version}, "a replica was skipped"
    settled = replicas_of(pcs, *[("well", version)] * len(states))
    assert current_hash(pcs, group, settled, step) == generation_hash(pcs)
    again = next_step(pcs, 0, msgspec.structs.replace(group), settled, NOW)
    assert again.delete == ()
