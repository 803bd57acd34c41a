"""How often a set is looked at while it changes."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.gangs.sets.pace import Pace
from shoal.kube import Key

KEY = Key("default", "web")


def test_the_first_change_is_looked_at_at_once() -> None:
    assert Pace().wait(KEY, 1, 0.0) == 0
    assert Pace().wait(KEY, 1, 100.0) == 0


def test_what_is_asked_for_newly_never_waits() -> None:
    pace = Pace()
    pace.wait(KEY, 1, 0.0)
    assert pace.wait(KEY, 1, 0.01) > 0
    assert pace.wait(KEY, 2, 0.02) == 0


def test_changes_that_follow_are_looked_at_when_it_is_quiet() -> None:
    pace = Pace(quiet=0.1, longest=1.0)
    pace.wait(KEY, 1, 0.0)
    assert pace.wait(KEY, 1, 0.05) == pytest.approx(0.1)
    assert pace.wait(KEY, 1, 0.12) == pytest.approx(0.1), "another change: it is not quiet yet"
    assert pace.wait(KEY, 1, 0.22) == 0


def test_a_change_waits_no_longer_than_it_may_however_many_follow() -> None:
    pace = Pace(quiet=0.1, longest=1.0)
    pace.wait(KEY, 1, 0.0)
    moment, looks = 0.0, []
    while moment < 3.0:
        moment += 0.03
        if not pace.wait(KEY, 1, moment):
            looks.append(moment)
    assert len(looks) == 2
    assert looks[0] <= 1.1


def test_after_a_while_without_changes_one_is_looked_at_at_once_again() -> None:
    pace = Pace(quiet=0.1, longest=1.0)
    pace.wait(KEY, 1, 0.0)
    assert pace.wait(KEY, 1, 1.5) == 0


def test_a_look_that_failed_is_taken_later_each_time_however_often_it_is_asked_for() -> None:
    pace = Pace()
    moment, waits = 0.0, []
    for _ in range(9):
        assert pace.wait(KEY, 1, moment) == 0
        pace.failed(KEY)
        waits.append(pace.wait(KEY, 1, moment))
        assert 0 < pace.wait(KEY, 1, moment + waits[-1] / 2) < waits[-1]
        moment += waits[-1]
    assert waits[:3] == pytest.approx([0.1, 0.2, 0.4])
    assert waits[-2:] == pytest.approx([10.0, 10.0])
    pace.wait(KEY, 1, moment)
    pace.succeeded(KEY)
    assert pace.wait(KEY, 1, moment) == pytest.approx(0.1)


@given(st.lists(st.floats(0.001, 2.0), min_size=1, max_size=60))
def test_every_change_is_seen_in_time(gaps: list[float]) -> None:
    """As the queue does it: whoever is told to wait comes back after that time, or with the next change before."""
    pace = Pace(quiet=0.1, longest=1.0)
    changes = list(accumulate(gaps))
    unseen: list[float] = []
    back: float | None = None
    while changes or back is not None:
        if changes and (back is None or changes[0] < back):
            moment = changes.pop(0)
            unseen.append(moment)
        else:
            assert back is not None
            moment = back
        wait = pace.wait(KEY, 1, moment)
        back = moment + wait if wait else None
        if not wait:
            assert all(moment - change <= 1.001 for change in unseen)
            unseen = []
    assert unseen == []
