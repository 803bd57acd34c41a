"""Entries of lists: what is there is replaced in its place, the rest is added in order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.training.framework.upserts import upsert_env, upsert_mounts, upsert_ports, upsert_volumes

A, B = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}
NEW_A = {"name": "A", "value": "3"}

PORTS = {
    "the same number": ([{"containerPort": 1, "name": "x"}], {"containerPort": 1}, [{"containerPort": 1}]),
    "the same name": (
        [{"containerPort": 1, "name": "x"}],
        {"containerPort": 2, "name": "x"},
        [{"containerPort": 2, "name": "x"}],
    ),
    "no name takes the place of no name": (
        [{"containerPort": 8080}],
        {"containerPort": 29500},
        [{"containerPort": 29500}],
    ),
    "neither": (
        [{"containerPort": 1, "name": "x"}],
        {"containerPort": 2},
        [{"containerPort": 1, "name": "x"}, {"containerPort": 2}],
    ),
}


def test_a_variable_is_replaced_where_it_stands() -> None:
    assert upsert_env([A, B], [NEW_A]) == (NEW_A, B)


def test_a_variable_that_is_not_there_comes_last() -> None:
    assert upsert_env([B], [A]) == (B, A)


def test_volumes_are_the_same_by_name() -> None:
    assert upsert_volumes([{"name": "v", "emptyDir": {}}], [{"name": "v", "secret": {}}]) == (
        {"name": "v", "secret": {}},
    )


def test_mounts_are_the_same_by_path() -> None:
    present = [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]
    assert upsert_mounts(present, [{"name": "w", "mountPath": "/b"}]) == (present[0], {"name": "w", "mountPath": "/b"})


@pytest.mark.parametrize(("present", "new", "expected"), PORTS.values(), ids=PORTS)
def test_ports_are_the_same_by_number_or_name(present: Any, new: Any, expected: Any) -> None:
    assert list(upsert_ports(present, [new])) == expected


names = st.sampled_from("abcdef")
entries = st.lists(st.builds(lambda name, value: {"name": name, "value": value}, names, st.text(max_size=2)))


@given(entries, entries)
def test_putting_in_the_same_again_changes_nothing(present: Any, new: Any) -> None:
    once = upsert_env(present, new)
    latest = {one["name"]: one for one in new}
    assert upsert_env(once, latest.values()) == once


@given(st.lists(names, unique=True), st.lists(names, unique=True))
def test_what_was_there_keeps_its_order_and_what_is_new_follows_in_its_own(present: Any, new: Any) -> None:
    found = [one["name"] for one in upsert_env([{"name": one} for one in present], [{"name": one} for one in new])]
    assert found == [*present, *(one for one in new if one not in present)]
