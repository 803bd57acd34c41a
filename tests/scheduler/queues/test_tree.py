"""Queues above and below each other, also where their parents make no tree."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from shoal.scheduler.queues.tree import ancestors, descendants, orphaned

TREE = {"top": "", "a": "top", "b": "top", "a1": "a", "a2": "a", "lost": "nobody", "below-lost": "lost"}
CIRCLE = {"x": "y", "y": "z", "z": "x", "hanging": "x"}
OWN = {"self": "self"}


def children(parents: Mapping[str, str], name: str) -> list[str]:
    return [child for child, parent in parents.items() if parent == name]


@pytest.mark.parametrize(
    ("parents", "name", "above"),
    [
        pytest.param(TREE, "top", [], id="a root"),
        pytest.param(TREE, "a1", ["a", "top"], id="a leaf"),
        pytest.param(TREE, "below-lost", ["lost", "nobody"], id="up to a parent that is not there"),
        pytest.param(TREE, "unknown", [], id="a queue that is not there"),
        pytest.param(CIRCLE, "x", ["y", "z"], id="a circle"),
        pytest.param(CIRCLE, "hanging", ["x", "y", "z"], id="below a circle"),
        pytest.param(OWN, "self", [], id="its own parent"),
    ],
)
def test_those_above_are_found_nearest_first(parents: Mapping[str, str], name: str, above: list[str]) -> None:
    assert list(ancestors(name, parents.get)) == above


@pytest.mark.parametrize(
    ("parents", "name", "below"),
    [
        pytest.param(TREE, "top", {"a", "b", "a1", "a2"}, id="a root"),
        pytest.param(TREE, "a2", set(), id="a leaf"),
        pytest.param(CIRCLE, "x", {"y", "z", "hanging"}, id="a circle"),
        pytest.param(OWN, "self", set(), id="its own parent"),
    ],
)
def test_those_below_are_found_once_each(parents: Mapping[str, str], name: str, below: set[str]) -> None:
    found = list(descendants(name, lambda queue: children(parents, queue)))
    assert set(found) == below
    assert len(found) == len(below)


@pytest.mark.parametrize(
    ("parents", "name", "reason"),
    [
        pytest.param(TREE, "top", "", id="a root"),
        pytest.param(TREE, "a1", "", id="a leaf"),
        pytest.param(TREE, "lost", "ParentNotFound", id="no parent"),
        pytest.param(TREE, "below-lost", "ParentNotFound", id="a parent without a parent"),
        pytest.param(CIRCLE, "y", "ParentCycle", id="a circle"),
        pytest.param(CIRCLE, "hanging", "ParentCycle", id="below a circle"),
        pytest.param(OWN, "self", "ParentCycle", id="its own parent"),
    ],
)
def test_a_queue_without_a_way_to_a_root_is_an_orphan(parents: Mapping[str, str], name: str, reason: str) -> None:
    found = orphaned(name, parents.get)
    assert (found.reason if found else "") == reason


def test_the_message_names_what_is_missing() -> None:
    found = orphaned("below-lost", TREE.get)
    assert found is not None
    assert found.message == "queue 'nobody', the parent of 'lost', does not exist: create it or name another"
