"""What a schema does to objects: what it drops, fills in and refuses, in the words of the real server.

The expected texts were recorded from a real API server, which ``test_against_kubernetes`` asks anew.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.custom import Pipeline, default_definition, kinds_of
from shoal.cluster.apiserver.refusals import Refused
from tests.cluster.apiserver.custom.gadgets import FIELDS, definition, gadget

DEFINITION = definition()
default_definition(DEFINITION)
[KIND] = kinds_of(DEFINITION)
NOT_CHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the "
    "existing errors to complete validation"
)
NOWHERE = '<nil>: Invalid value: "": '


def read(value: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    unknown: list[str] = []
    assert KIND.read is not None
    return KIND.read(copy.deepcopy(value), unknown), unknown


def problems(spec: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    new, _ = read(gadget({"name": "abc", **spec}))
    if old is None:
        return [str(each) for each in KIND.rules.validate_create(new)]
    before, _ = read(gadget({"name": "abc", **old}))
    return [str(each) for each in KIND.rules.validate_update(new, before)]


def wrong_type(name: str, expected: str, found: str) -> str:
    return f'spec.{name}: Invalid value: "{found}": spec.{name} in body must be of type {expected}: "{found}"'


def blocked(*texts: str) -> list[str]:
    return [*texts, NOT_CHECKED]


REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"flag": "x"}, blocked(wrong_type("flag", "boolean", "string"))),
    ({"set": {}}, blocked(wrong_type("set", "array", "object"))),
    ({"when": 5}, blocked(wrong_type("when", "date-time", "int64"))),
    ({"when": "x"}, blocked(wrong_type("when", "date-time", "x"))),
    ({"odd": "!"}, []),
    ({"set": [None, "a"]}, blocked(wrong_type("set[0]", "string", "null"))),
    ({"name": "A"}, ['spec.name: Invalid value: "A": spec.name in body should be at least 2 chars long']),
    ({"name": "AAA"}, ["spec.name: Invalid value: \"AAA\": spec.name in body should match '^[a-z]+$'"]),
    ({"name": "a" * 11}, blocked("spec.name: Too long: may not be more than 10 bytes")),
    (
        {"replicas": 3000000000},
        [
            f"{NOWHERE}Checked value must be of type integer with format int32 in spec.replicas",
            "spec.replicas: Invalid value: 3000000000: spec.replicas in body should be less than or equal to 10",
            ".spec.replicas: Invalid value: 3000000000: should be less than or equal to 2147483647",
        ],
    ),
    (
        {"replicas": -1},
        [
            "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0",
            ".spec.replicas: Invalid value: -1: should be a non-negative integer",
        ],
    ),
    ({"num": 9.5}, ["spec.num: Invalid value: 9.5: spec.num in body should be less than 9.5"]),
    ({"num": 0}, ["spec.num: Invalid value: 0: factor MultipleOf declared for spec.num must be positive: 0"]),
    (
        {"num": 1e30},
        [
            "spec.num: Invalid value: 1e+30: spec.num in body should be a multiple of 0.5",
            "spec.num: Invalid value: 1e+30: spec.num in body should be less than 9.5",
        ],
    ),
    ({"big": 7}, ["spec.big: Invalid value: 7: spec.big in body should be a multiple of 5"]),
    ({"mode": "C"}, blocked('spec.mode: Unsupported value: "C": supported values: "A", "B"')),
    ({"level": 3}, blocked('spec.level: Unsupported value: 3: supported values: "1", "2"')),
    ({"set": ["a", "b", "a"]}, ['spec.set[2]: Duplicate value: "a"']),
    ({"set": []}, ["spec.set: Invalid value: 0: spec.set in body should have at least 1 items"]),
    ({"set": list("abcd")}, blocked("spec.set: Too many: 4: must have at most 3 items")),
    ({"map": [{"k": "a"}, {"k": "a"}]}, ['spec.map[1]: Duplicate value: {"k":"a"}']),
    ({"map2": [{"k": "a"}, {"k": "a", "p": "TCP"}]}, ['spec.map2[1]: Duplicate value: {"k":"a","p":"TCP"}']),
    ({"map": [{"v": 1}]}, blocked("spec.map[0].k: Required value")),
    ({"labels": {}}, ["spec.labels: Invalid value: 0: spec.labels in body should have at least 1 properties"]),
    ({"labels": {"a": "aaaa"}}, blocked("spec.labels.a: Too long: may not be more than 3 bytes")),
    ({"ios": "x"}, ["spec.ios: Invalid value: \"x\": spec.ios in body should match '^[0-9]+%?$'"]),
    (
        {"ios": True},
        blocked(
            wrong_type("ios", "integer,string", "boolean"),
            f'{NOWHERE}"spec.ios" must validate at least one schema (anyOf)',
            wrong_type("ios", "integer", "boolean"),
        ),
    ),
    (
        {"one": {}},
        blocked(
            f'{NOWHERE}"spec.one" must validate one and only one schema (oneOf). Found none valid',
            "spec.one.a: Required value",
        ),
    ),
    (
        {"one": {"a": "x", "b": "y"}},
        [f'{NOWHERE}"spec.one" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
    ),
    (
        {"alt": {"a": "x", "b": 1}},
        [
            f'{NOWHERE}"spec.alt" must validate at least one schema (anyOf)',
            "spec.alt.b: Invalid value: 1: spec.alt.b in body should be greater than or equal to 3",
        ],
    ),
    (
        {"all": "yy"},
        [
            'spec.all: Invalid value: "yy": spec.all in body should be at least 3 chars long',
            "spec.all: Invalid value: \"yy\": spec.all in body should match '^x'",
            f'{NOWHERE}"spec.all" must validate all the schemas (allOf). None validated',
        ],
    ),
    ({"not": "bad"}, [f'{NOWHERE}"spec.not" must not validate the schema (not)']),
    (
        {"i64": 1.5},
        blocked(
            wrong_type("i64", "int64", "float64"),
            f"{NOWHERE}Checked value must be of type integer with format int64 in spec.i64",
        ),
    ),
    ({"rule": 1}, ["spec.rule: Invalid value: 1: must be more"]),
    ({"rule": 500}, ["spec.rule: Invalid value: 500: failed rule: self < 100"]),
    ({"rule": 5000}, ["spec.rule: Invalid value: 5000: far too big"]),
    (
        {"obj": {"a": 3, "b": 2, "c": ""}},
        [
            "spec.obj.a: Required value: failed rule: self.a < self.b",
            "spec.obj: Invalid value: failed rule: self.c.size() > 0",
        ],
    ),
    (
        {"obj": {"a": 1, "b": 2}},
        ['spec.obj: Invalid value: "object": no such key: c evaluating rule: self.c.size() > 0'],
    ),
    ({"emb": {"kind": "Pod"}}, blocked("spec.emb.apiVersion: Required value")),
    (
        {"emb": {"apiVersion": "a/b/c", "kind": "Pod", "metadata": {"name": "p/x"}}},
        [
            'spec.emb.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
            "spec.emb.metadata.name: Invalid value: \"p/x\": may not contain '/'",
        ],
    ),
]


@pytest.mark.parametrize(("spec", "expected"), REFUSED, ids=[str(spec)[:60] for spec, _ in REFUSED])
def test_a_value_that_breaks_its_schema_is_refused_in_the_words_of_kubernetes(
    spec: dict[str, Any], expected: list[str]
) -> None:
    assert problems(spec) == expected


def test_a_field_that_must_be_there_is_missed() -> None:
    assert [str(each) for each in KIND.rules.validate_create(read(gadget({}))[0])] == blocked(
        "spec.name: Required value"
    )


def test_defaults_are_filled_in_at_every_depth() -> None:
    new, unknown = read(gadget({"name": "abc", "map2": [{"k": "a"}]}))
    assert new["spec"] == {
        "name": "abc",
        "replicas": 1,
        "deflt": {"x": 1, "y": "yy"},
        "map2": [{"k": "a", "p": "TCP"}],
    }
    assert unknown == []


def test_nulls_are_dropped_or_defaulted_where_nothing_may_be_null() -> None:
    new, _ = read(gadget({"name": "abc", "flag": None, "replicas": None, "nul": None, "labels": {"a": None, "b": "c"}}))
    assert new["spec"] == {
        "name": "abc",
        "nul": None,
        "labels": {"b": "c"},
        "replicas": 1,
        "deflt": {"x": 1, "y": "yy"},
    }


def test_unknown_fields_are_dropped_and_named_in_order() -> None:
    spec = {
        "name": "abc",
        "zz": 1,
        "keep": {"z": {"y": 1}, "o": {"x": "a", "y": 1}},
        "any": [{"a": None}],
        "tmpl": {"metadata": {"q": 1}, "y": 1},
        "map": [{"k": "a", "w": 1}],
    }
    new, unknown = read(gadget(spec, foo="x"))
    assert unknown == [
        'unknown field "metadata.foo"',
        'unknown field "spec.keep.o.y"',
        'unknown field "spec.map[0].w"',
        'unknown field "spec.tmpl.metadata.q"',
        'unknown field "spec.tmpl.y"',
        'unknown field "spec.zz"',
    ]
    assert new["spec"]["keep"] == {"z": {"y": 1}, "o": {"x": "a"}}
    assert new["spec"]["any"] == [{"a": None}]
    assert new["spec"]["tmpl"] == {"metadata": {}}
    assert "foo" not in new["metadata"]


def test_an_embedded_object_keeps_its_fields_and_loses_unknown_metadata() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "foo": 1}, "spec": {"x": 1}}
    new, unknown = read(gadget({"name": "abc", "emb": pod}))
    assert new["spec"]["emb"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": 1}}
    assert unknown == ['unknown field "spec.emb.metadata.foo"']


METADATA_REFUSED = [
    (
        gadget({"name": "abc"}, labels={"a": 1}),
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
    ),
    (gadget({"name": "abc"}) | {"metadata": []}, "json: cannot unmarshal array into Go value of type v1.ObjectMeta"),
    (
        gadget({"name": "abc", "emb": {"kind": 5}}),
        "spec.emb.kind: Invalid value: 5: must be a string",
    ),
    (
        gadget({"name": "abc", "emb": {"kind": "X", "metadata": {"labels": {"a": 1}}}}),
        'spec.emb.metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field '
        "ObjectMeta.labels of type string",
    ),
]


@pytest.mark.parametrize(("value", "message"), METADATA_REFUSED)
def test_metadata_of_the_wrong_type_cannot_be_read(value: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused) as refused:
        read(value)
    assert refused.value.status.code == 400
    assert refused.value.status.message == f'Gadget in version "v1" cannot be handled as a Gadget: {message}'


def test_a_rule_about_the_old_value_runs_where_there_is_one() -> None:
    assert problems({"imm": "a"}) == []
    assert problems({"imm": "a"}, {"imm": "a"}) == []
    assert problems({"imm": "b"}, {"imm": "a"}) == ['spec.imm: Invalid value: "b": failed rule: self == oldSelf']
    assert problems({"imm": "b"}, {}) == []


def test_a_rule_with_an_optional_old_value_always_runs() -> None:
    forbidden = "spec.opt: Forbidden: failed rule: !oldSelf.hasValue() || self == oldSelf.value()"
    assert problems({"opt": "a"}) == []
    assert problems({"opt": "b"}, {"opt": "a"}) == [forbidden]


UNCHANGED: list[tuple[dict[str, Any], dict[str, Any], int]] = [
    ({"mode": "C", "flag": True}, {"mode": "C"}, 0),
    ({"mode": "D"}, {"mode": "C"}, 2),
    ({"rule": 1, "flag": True}, {"rule": 1}, 0),
    ({"rule": 2}, {"rule": 1}, 1),
    ({"map": [{"k": "b", "v": 1}, {"k": "a", "v": "x"}]}, {"map": [{"k": "a", "v": "x"}]}, 0),
    ({"map": [{"k": "a", "v": "y"}]}, {"map": [{"k": "a", "v": "x"}]}, 2),
    ({"set": ["a", "a"], "flag": True}, {"set": ["a", "a"]}, 0),
    ({"set": ["a", "a", "b"]}, {"set": ["a", "a"]}, 0),
    ({"alt": {"a": "x", "b": 9}}, {"alt": {"a": "x"}}, 0),
    ({"obj": {"a": 3, "b": 2, "c": "x"}, "flag": True}, {"obj": {"a": 3, "b": 2, "c": "x"}}, 0),
]


@pytest.mark.parametrize(("new", "old", "count"), UNCHANGED)
def test_a_value_that_was_wrong_before_is_tolerated_as_long_as_it_does_not_change(
    new: dict[str, Any], old: dict[str, Any], count: int
) -> None:
    assert len(problems(new, old)) == count


def test_a_status_is_checked_by_its_own_schema() -> None:
    old, _ = read(gadget({"name": "!"}))
    new = {**old, "status": {"replicas": "x", "conditions": [{"type": "A"}, {"type": "A"}]}}
    assert [str(each) for each in KIND.rules.validate_status(new, old)] == blocked(
        'status.replicas: Invalid value: "string": replicas in body must be of type integer: "string"',
        ".status.replicas: Invalid value: 0: .status.replicas accessor error: x is of the type string, expected int64",
        'status.conditions[1]: Duplicate value: {"type":"A"}',
    )


def test_a_body_of_any_depth_is_answered() -> None:
    raw: dict[str, Any] = {"type": "object", "properties": {"spec": {"type": "object"}}}
    raw["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] = True
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    value = {"metadata": {}, "spec": deep}
    Pipeline(raw).read(value, [])
    assert value["spec"] is deep


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text("abk", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abknpxyz"), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(FIELDS)), json_values)
def test_reading_twice_changes_nothing_more(name: str, value: Any) -> None:
    try:
        once, _ = read(gadget({"name": "abc", name: value}))
    except Refused:
        return
    twice, unknown = read(once)
    assert twice == once
    assert unknown == []
    KIND.rules.validate_create(once)
    found = KIND.rules.validate_update(once, copy.deepcopy(once))
    # The scale, embedded objects and faults in rules are not tolerated, changed or not.
    assert name in ("replicas", "emb", "rule", "imm", "opt", "obj") or found == []
