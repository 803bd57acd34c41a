"""Equal parts of schemas, which are compiled once and judged once."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.apiserver.custom import sharing
from shoal.cluster.apiserver.custom.checks import compile_check
from shoal.cluster.apiserver.custom.definitions import validate_definition
from shoal.cluster.apiserver.custom.pipeline import Pipeline

PORT: dict[str, Any] = {
    "type": "object",
    "properties": {"port": {"type": "integer", "maximum": 9}, "protocol": {"type": "string", "default": "TCP"}},
}


def a_schema(**places: Any) -> dict[str, Any]:
    spec = {"type": "object", "properties": places}
    return {"type": "object", "properties": {"spec": spec}}


def a_definition(schema: dict[str, Any]) -> dict[str, Any]:
    names = {"kind": "Ship", "listKind": "ShipList", "plural": "ships", "singular": "ship"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    return {"metadata": {"name": "ships.example.com"}, "spec": spec}


def test_what_is_made_of_equal_parts_is_one_thing() -> None:
    made: list[dict[str, Any]] = []

    @sharing.by_content
    def make(raw: dict[str, Any]) -> int:
        made.append(raw)
        return len(made)

    assert make({"type": "string"}) == make({"type": "string"}) == 1
    assert make({"type": "integer"}) == 2
    sharing.forget()
    assert make({"type": "string"}) == 3


def test_what_is_made_of_nothing_is_kept_as_well() -> None:
    calls: list[None] = []
    make = sharing.by_content(lambda raw: calls.append(None))
    assert make({}) is make({}) is None
    assert len(calls) == 1


def test_however_many_parts_there_are_the_table_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_MOST", 3)
    calls: list[int] = []
    make = sharing.by_content(lambda raw: calls.append(raw["maximum"]))
    for number in (1, 2, 3, 4, 4, 1):
        make({"maximum": number})
    assert calls == [1, 2, 3, 4, 1]


def test_a_part_is_compiled_once_for_all_kinds() -> None:
    assert compile_check({**PORT}) is compile_check({**PORT})


def test_places_with_equal_schemas_are_told_apart_in_problems() -> None:
    pipeline = Pipeline(a_schema(first=PORT, second=PORT))
    value: dict[str, Any] = {"spec": {"first": {"port": 10, "x": 1}, "second": {"port": 11}}}
    unknown: list[str] = []
    pipeline.read(value, unknown)
    assert unknown == ['unknown field "spec.first.x"']
    assert value["spec"]["second"] == {"port": 11, "protocol": "TCP"}
    assert [problem.path for problem in pipeline.validate(value)] == ["spec.first.port", "spec.second.port"]


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        pytest.param({"type": "array"}, "items", id="not structural"),
        pytest.param({"type": "strin"}, "type", id="no type"),
        pytest.param({"type": "integer", "default": "a"}, "default", id="a default that does not fit"),
        pytest.param(
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"},
            "x-kubernetes-list-map-keys",
            id="a list without keys",
        ),
        pytest.param(
            {"type": "string", "x-kubernetes-validations": [{"rule": "self > 1"}]},
            "x-kubernetes-validations[0].rule",
            id="a rule that does not compile",
        ),
    ],
)
def test_a_wrong_part_is_told_at_each_of_its_places_and_every_time(wrong: dict[str, Any], path: str) -> None:
    inner = {"type": "object", "properties": {"part": wrong}}
    definition = a_definition(a_schema(first=inner, second=inner))
    root = "spec.validation.openAPIV3Schema.properties[spec]"
    for _ in range(2):
        told = {problem.path for problem in validate_definition(definition)}
        assert {f"{root}.properties[{name}].properties[part].{path}" for name in ("first", "second")} <= told


def test_what_is_right_in_a_spec_may_be_wrong_in_metadata() -> None:
    schema = a_schema(name={"type": "string", "default": "a"})
    assert validate_definition(a_definition(schema)) == []
    schema["properties"]["metadata"] = {"type": "object", "properties": {"name": {"type": "string", "default": "a"}}}
    [problem] = validate_definition(a_definition(schema))
    assert problem.path.endswith("properties[metadata].properties[name].default")
