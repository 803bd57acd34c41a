"""Who manages what after whole writes: the cases of the field manager's own tables, on built-in kinds."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from shoal.cluster.apiserver.apply import apply, entries_for_scale, entries_from_scale, record_update
from shoal.cluster.apiserver.kinds.tables import body_schema
from shoal.cluster.apiserver.refusals import Refused
from tests.cluster.apiserver.apply.structured import Case, cases


def _rows(*operations: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in cases("managers") if case["do"] in operations]


@pytest.mark.parametrize("case", _rows("update", "apply"))
def test_a_write_leaves_the_managers_that_it_should(case: Case) -> None:
    case = copy.deepcopy(case)
    live, new = case["live"], case["new"]
    live.setdefault("metadata", {})
    new.setdefault("metadata", {})
    schema = body_schema(live["apiVersion"], live["kind"])
    assert schema is not None
    shared: dict[str, Any] = {
        "manager": case["manager"],
        "subresource": case.get("subresource", ""),
        "now": _latest(case),
    }
    if case["do"] == "update":
        record_update(schema, live, new, **shared)
        outcome = new
    elif "error" in case:
        with pytest.raises(Refused) as refusal:
            apply(schema, live, new, force=case.get("force", False), **shared)
        assert str(refusal.value) == case["error"]
        return
    else:
        outcome = apply(schema, live, new, force=case.get("force", False), **shared)
    wanted = {"metadata": {}, **case["out"]}
    assert outcome["metadata"].get("managedFields", []) == wanted["metadata"].get("managedFields", [])
    assert _plain(outcome) == _plain(wanted)


@pytest.mark.parametrize("case", _rows("to_scale"))
def test_a_scale_is_managed_by_who_owns_the_replicas(case: Case) -> None:
    assert entries_for_scale(case["entries"], _paths(case)) == case["out"]


@pytest.mark.parametrize("case", _rows("to_parent"))
def test_who_scales_an_object_owns_its_replicas(case: Case) -> None:
    found = entries_from_scale(case["entries"], case["scale"], version=case["version"], paths=_paths(case))
    assert found == case["out"]


def _paths(case: Case) -> dict[str, tuple[str, ...] | None]:
    return {version: tuple(path) if path else None for version, path in case["paths"].items()}


def _latest(case: Case) -> str:
    entries = case.get("out", {}).get("metadata", {}).get("managedFields", [])
    return max((entry.get("time", "") for entry in entries), default="") or "2026-01-01T00:00:00Z"


def _plain(thing: Any) -> Any:
    """An object without what only its decoding settles: nulls, and its managers, which are compared before."""
    if isinstance(thing, dict):
        return {key: _plain(item) for key, item in thing.items() if item is not None and key != "managedFields"}
    return [_plain(item) for item in thing] if isinstance(thing, list) else thing
