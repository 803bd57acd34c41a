"""The rules of structured merge on plain values, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.apiserver.apply import check
from shoal.cluster.apiserver.apply.compare import compared
from shoal.cluster.apiserver.apply.elements import shown
from shoal.cluster.apiserver.apply.entries import Entry, Owner, fields_of
from shoal.cluster.apiserver.apply.fieldset import Tree, difference, joined, paths
from shoal.cluster.apiserver.apply.merge import merged
from shoal.cluster.apiserver.apply.ownership import (
    NEVER_OWNED,
    Conflicts,
    after_apply,
    after_update,
    under_schema,
)
from shoal.cluster.apiserver.apply.prune import owned, without
from tests.cluster.apiserver.apply.structured import Case, cases, shape


def _values(operation: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in cases("values") if case["do"] == operation]


@pytest.mark.parametrize("case", _values("compared"))
def test_a_comparison_finds_what_is_new_changed_and_gone(case: Case) -> None:
    taken, removed = compared(shape("values", case["schema"]), case.get("value"), case["other"])
    assert (taken or {}) == joined(case["added"], case["modified"])
    assert (removed or {}) == case["removed"]


@pytest.mark.parametrize("case", _values("merged"))
def test_a_merge_keeps_what_is_not_applied(case: Case) -> None:
    place = shape("values", case["schema"])
    other = case["other"]
    assert merged(place, case.get("value"), other) == case["out"]


@pytest.mark.parametrize("case", _values("owned"))
def test_a_configuration_owns_its_leaves_and_items(case: Case) -> None:
    assert owned(shape("values", case["schema"]), case.get("value")) == case["out"]


@pytest.mark.parametrize("case", _values("without"))
def test_removed_fields_are_gone_and_emptied_parents_are_null(case: Case) -> None:
    assert without(shape("values", case["schema"]), case.get("value"), case["items"]) == case["out"]


@pytest.mark.parametrize("case", _values("checked"))
def test_a_configuration_must_fit_its_schema(case: Case) -> None:
    place = shape("values", case["schema"])
    found = check.problems(place, case.get("value"))
    assert check.fits(place, case.get("value")) == (not found)
    message = check.message(found) if found else ""
    assert sorted(message.split("\n")) == sorted(case.get("error", "").split("\n"))


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in cases("sequences")])
def test_owners_after_a_sequence_of_writes(case: Case) -> None:
    place = shape("sequences", case["schema"])
    live: Any = None
    entries: dict[Owner, Entry] = {}
    resets: Tree = case.get("ignored", {})
    for step in case["steps"]:
        if step["do"] == "schema":
            place = shape("sequences", step["schema"])
            continue
        owner = (step["by"], "", "", "")
        version = step.get("version", "v1")
        known = under_schema(place, entries, versions=None, is_fixed=False)
        conflicts: dict[str, list[str]] = {}
        if step["do"] == "update":
            entries = after_update(
                place, live, step["object"], known, owner=owner, version=version, now="", resets=resets
            )
            live = step["object"]
        else:
            try:
                live, entries = after_apply(
                    place,
                    live,
                    step["object"],
                    known,
                    owner=owner,
                    version=version,
                    now="",
                    force=step["do"] == "force",
                    resets=resets,
                    versions=None,
                )
            except Conflicts as found:
                conflicts = {
                    name[0]: sorted("".join(map(shown, path)) for path in paths(tree))
                    for name, tree in found.fields.items()
                }
        assert conflicts == step.get("conflicts", {})
        assert live == step["live"]
        assert _owned(entries) == {by: fields for by, tree in step["owned"].items() if (fields := _named(tree))}


def _owned(entries: dict[Owner, Entry]) -> dict[str, Tree]:
    return {owner[0]: fields_of(entry) for owner, entry in entries.items()}


def _named(tree: Tree) -> Tree:
    return difference(tree, NEVER_OWNED)
