"""The comparer itself: it finds every kind of difference, in both directions, and nothing where there is none."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.support.schemas.crd_diff import ABSENT, Difference, Intended, differences, unexplained

SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "words",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["levels", "mode"],
            "properties": {
                "levels": {
                    "type": "array",
                    "maxItems": 16,
                    "x-kubernetes-list-type": "atomic",
                    "items": {"type": "string", "pattern": "^a$"},
                    "x-kubernetes-validations": [{"rule": "size(self) > 0", "message": "words"}],
                },
                "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                "amounts": {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}},
            },
        }
    },
}
DEFINITION: dict[str, Any] = {
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"kind": "Thing", "plural": "things", "shortNames": ["th"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Age", "type": "date", "jsonPath": ".a", "description": "words"}],
            }
        ],
    },
}


def changed(*path: Any, to: Any = None, without: str = "") -> dict[str, Any]:
    """The definition with one place set or one key removed; the path starts at its only version."""
    definition = deepcopy(DEFINITION)
    place: Any = definition["spec"]["versions"][0]
    for step in path[: None if without else -1]:
        place = place[step]
    if without:
        del place[without]
    else:
        place[path[-1]] = to
    return definition


def in_spec(*path: Any, to: Any = None, without: str = "") -> dict[str, Any]:
    start = ("schema", "openAPIV3Schema", "properties", "spec", "properties")
    return changed(*start, *path, to=to, without=without)


def named(key: str, value: Any) -> dict[str, Any]:
    definition = deepcopy(DEFINITION)
    definition["spec"]["names"][key] = value
    return definition


@pytest.mark.parametrize(
    ("other", "path", "fact"),
    [
        pytest.param({**DEFINITION, "spec": {**DEFINITION["spec"], "scope": "N"}}, "definition", "scope", id="scope"),
        pytest.param(named("shortNames", ["t"]), "definition.names", "shortNames", id="short names"),
        pytest.param(named("categories", ["all"]), "definition.names", "categories", id="categories"),
        pytest.param(changed("name", to="v2"), "v1", "version", id="version"),
        pytest.param(changed("served", to=False), "v1", "served", id="served"),
        pytest.param(changed(without="subresources"), "v1", "subresources", id="subresources"),
        pytest.param(changed("selectableFields", to=[{"jsonPath": ".a"}]), "v1", "selectableFields", id="selectable"),
        pytest.param(changed(without="additionalPrinterColumns"), "v1", "columns", id="columns"),
        pytest.param(
            changed("additionalPrinterColumns", 0, "jsonPath", to=".b"), "v1 column Age", "jsonPath", id="column"
        ),
        pytest.param(in_spec(without="mode"), "v1.spec.mode", "field", id="field"),
        pytest.param(in_spec("mode", "type", to="integer"), "v1.spec.mode", "type", id="type"),
        pytest.param(in_spec("mode", "enum", to=["a"]), "v1.spec.mode", "enum", id="enum"),
        pytest.param(in_spec("mode", "default", to="b"), "v1.spec.mode", "default", id="default"),
        pytest.param(in_spec("mode", without="default"), "v1.spec.mode", "default", id="no default"),
        pytest.param(in_spec("mode", "nullable", to=True), "v1.spec.mode", "nullable", id="nullable"),
        pytest.param(in_spec("levels", "maxItems", to=17), "v1.spec.levels", "maxItems", id="bound"),
        pytest.param(
            in_spec("levels", "x-kubernetes-list-type", to="set"), "v1.spec.levels", "x-kubernetes-list-type", id="list"
        ),
        pytest.param(in_spec("levels", "items", "pattern", to="^b$"), "v1.spec.levels[]", "pattern", id="item"),
        pytest.param(in_spec("levels", without="items"), "v1.spec.levels[]", "items", id="items"),
        pytest.param(
            in_spec("amounts", "additionalProperties", "format", to="int64"), "v1.spec.amounts{}", "format", id="value"
        ),
        pytest.param(
            in_spec("levels", "x-kubernetes-validations", to=[]), "v1.spec.levels", "rule size(self) > 0", id="rule"
        ),
        pytest.param(
            in_spec("levels", "x-kubernetes-validations", 0, "reason", to="FieldValueInvalid"),
            "v1.spec.levels rule size(self) > 0",
            "reason",
            id="reason of a rule",
        ),
        pytest.param(
            in_spec("levels", "x-kubernetes-validations", 0, without="message"),
            "v1.spec.levels rule size(self) > 0",
            "message",
            id="rule without words",
        ),
        pytest.param(
            changed("schema", "openAPIV3Schema", "properties", "spec", "required", to=["mode"]),
            "v1.spec",
            "required",
            id="required",
        ),
    ],
)
def test_a_difference_is_found_from_either_side(other: dict[str, Any], path: str, fact: str) -> None:
    for ours, theirs in ((DEFINITION, other), (other, DEFINITION)):
        assert (path, fact) in {(found.path, found.fact) for found in differences(ours, theirs)}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(DEFINITION, id="itself"),
        pytest.param(changed("schema", "openAPIV3Schema", "description", to="other words"), id="description"),
        pytest.param(in_spec("levels", "x-kubernetes-validations", 0, "message", to="other words"), id="message"),
        pytest.param(in_spec("levels", "x-kubernetes-validations", 0, "rule", to="size(self)\n  > 0"), id="layout"),
        pytest.param(in_spec("mode", "enum", to=["b", "a"]), id="order of an enum"),
        pytest.param(in_spec("levels", "maxItems", to=16.0), id="16 and 16.0"),
        pytest.param(
            changed("schema", "openAPIV3Schema", "properties", "spec", "required", to=["mode", "levels"]), id="required"
        ),
        pytest.param({**DEFINITION, "metadata": {"name": "things.example.com", "labels": {"a": "b"}}}, id="labels"),
        pytest.param(
            {**DEFINITION, "spec": {**DEFINITION["spec"], "conversion": {"strategy": "None"}}}, id="no conversion"
        ),
    ],
)
def test_words_and_order_are_no_difference(other: dict[str, Any]) -> None:
    assert differences(DEFINITION, other) == []


def test_true_and_one_are_two_values() -> None:
    ours, theirs = in_spec("mode", "default", to=1), in_spec("mode", "default", to=True)
    assert differences(ours, theirs) == [Difference("v1.spec.mode", "default", 1, True)]


def test_a_missing_field_is_one_difference_however_much_is_below_it() -> None:
    definition = changed("schema", "openAPIV3Schema", "properties", to={})
    assert differences(definition, DEFINITION) == [Difference("v1.spec", "field", ABSENT, "there")]


@pytest.mark.parametrize(
    ("path", "covered"),
    [
        pytest.param("v1.spec.mode", True, id="the path"),
        pytest.param("v1.*.mode", True, id="one field"),
        pytest.param("v1.**", True, id="everything below"),
        pytest.param("v1.spec", False, id="the parent"),
        pytest.param("v1.*", False, id="too few fields"),
        pytest.param("v1xspec.mode", False, id="a dot is a dot"),
    ],
)
def test_an_intended_difference_is_found_by_its_path(path: str, covered: bool) -> None:
    difference = Difference("v1.spec.mode", "type", "string", "integer")
    assert Intended(path, "type", "why").covers(difference) is covered
    assert not Intended(path, "format", "why").covers(difference)
    assert Intended(path, "*", "why").covers(difference) is covered


def test_what_is_not_listed_and_what_is_listed_in_vain_are_both_told() -> None:
    found = differences(in_spec("mode", "type", to="integer"), DEFINITION)
    assert unexplained(found, [Intended("v1.spec.mode", "type", "because")]) == []
    assert unexplained(found, []) == ["v1.spec.mode: type is 'integer' here and 'string' upstream"]
    assert unexplained([], [Intended("v1.spec.mode", "type", "because")]) == [
        "v1.spec.mode: type is listed as intended (because) and does not differ"
    ]
