"""A table whose changes are printed."""

from __future__ import annotations

from shoal.cli.output import Table
from shoal.cli.training.watching import Changes

HEADING = ("name", "state", "age")


def test_only_rows_that_changed_are_printed_again() -> None:
    changes = Changes()
    assert changes.text([], Table([], HEADING), None) == ""
    both = Table([("a", "Waiting", "1s"), ("b", "Running", "9s")], HEADING)
    assert changes.text(["a", "b"], both, None).splitlines() == [
        "NAME   STATE       AGE",
        "a      Waiting     1s",
        "b      Running     9s",
    ]
    older = Table([("a", "Waiting", "2s"), ("b", "Running", "10s")], HEADING)
    assert changes.text(["a", "b"], older, None) == ""
    started = Table([("a", "Running", "3s"), ("b", "Running", "11s")], HEADING)
    assert changes.text(["a", "b"], started, None) == "a      Running     3s\n"


def test_a_row_that_goes_is_said_to_be_deleted() -> None:
    changes = Changes()
    changes.text(["a"], Table([("a", "Running", "1s")], HEADING), None)
    assert changes.text([], Table([], HEADING), None) == "a      Deleted     1s\n"
    assert changes.text([], Table([], HEADING), None) == ""


def test_columns_stay_where_they_are_while_words_come_and_go() -> None:
    changes = Changes()
    states = ("Waiting", "Starting", "Running", "Suspended", "Running")
    lines = [changes.text(["a"], Table([("a", state, "1s")], HEADING), None).splitlines() for state in states]
    assert [len(each) for each in lines] == [2, 1, 1, 1, 1]
    assert {line.index("1s") for (*_, line) in lines} == {lines[0][0].index("AGE")}


def test_columns_that_must_move_get_their_heading_again() -> None:
    changes = Changes()
    changes.text(["a"], Table([("a", "Running", "1s")], HEADING), None)
    wider = Table([("a", "Running", "1s"), ("a-long-name", "Waiting", "0s")], HEADING)
    assert changes.text(["a", "b"], wider, None).splitlines() == [
        "NAME          STATE       AGE",
        "a-long-name   Waiting     0s",
    ]
