"""Whatever an object holds: the rules answer, and what they complete stays as a server would write it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.cluster.apiserver.builtin.workloads import (
    prepare_ephemeral_containers,
    prepare_resize,
    validate_ephemeral_containers_update,
    validate_resize,
)
from shoal.cluster.apiserver.kinds.decode import decode
from shoal.cluster.apiserver.kinds.kind import Kind
from shoal.cluster.apiserver.schema import Schema
from tests.cluster.apiserver.builtin.workloads.objects import changed
from tests.cluster.apiserver.builtin.workloads.server import KINDS

_TEXTS = st.sampled_from(
    ["", "a", "A b", "a.b/c", "a/b/c", "..", "/x", "Always", "Never", "In", "Exists", "Localhost", "Indexed", "0-2"]
)
_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "date-time": st.just("2026-01-01T00:00:00Z"),
    "micro-time": st.just("2026-01-01T00:00:00.000000Z"),
    "quantity": st.sampled_from(["0", "1", "1500m", "-1", "1Gi", "1u", "1.0005"]),
    "int-or-string": st.sampled_from([0, 1, -1, "25%", "x"]),
    "byte": st.just(""),
}
_DEEPEST = 9


def values(schema: Schema, draw: Any, depth: int = 0) -> Any:
    """A value of a shape; few of many fields, so that values stay small."""
    if schema.format in _SCALARS:
        return draw(_SCALARS[schema.format])
    if schema.type == "object":
        if schema.additional is not None:
            keys = draw(st.lists(st.sampled_from(["cpu", "memory", "a!", "example.com/gpu"]), max_size=2, unique=True))
            return {key: values(schema.additional, draw, depth + 1) for key in keys}
        names = sorted(schema.properties)
        if not names or depth > _DEEPEST:
            return {}
        most = 6 if depth < 4 else 3
        chosen = draw(st.lists(st.sampled_from(names), max_size=most, unique=True))
        return {name: values(schema.properties[name], draw, depth + 1) for name in chosen}
    if schema.type == "array" and schema.items is not None:
        return [values(schema.items, draw, depth + 1) for _ in range(draw(st.integers(0, 2)))]
    if schema.type == "boolean":
        return draw(st.booleans())
    if schema.type in ("integer", "number"):
        return draw(st.sampled_from([0, 1, -1, 80, 65536, 2**31 - 1]))
    return draw(_TEXTS) if schema.type == "string" else {"any": 1}


@st.composite
def objects(draw: Any, kind: Kind) -> dict[str, Any]:
    made: dict[str, Any] = values(kind.schema, draw)
    return {**made, "apiVersion": kind.api_version, "kind": kind.kind}


@pytest.mark.parametrize("key", sorted(KINDS), ids=lambda key: key[1])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_rules_have_an_answer_to_everything(key: tuple[str, str], data: st.DataObject) -> None:
    kind = KINDS[key]
    new, old = (decode(kind.schema, data.draw(objects(kind)), []) for _ in range(2))
    for each in (new, old):
        kind.rules.defaults(each)
    before = copy.deepcopy(old)
    for read in kind.rules.fields.values():
        assert isinstance(read(new), str)
    kind.rules.validate_update(new, old)
    kind.rules.validate_status(new, old)
    kind.rules.warnings(new)
    kind.rules.prepare_update(copy.deepcopy(new), old)
    kind.rules.prepare_status(copy.deepcopy(new), old)
    kind.rules.prepare_create(new)
    kind.rules.validate_create(new)
    if kind.kind == "Pod":
        for prepare, validate in (
            (prepare_resize, validate_resize),
            (prepare_ephemeral_containers, validate_ephemeral_containers_update),
        ):
            changed_pod = copy.deepcopy(new)
            prepare(changed_pod, old)
            validate(changed_pod, old)
    assert old == before, "the old object was touched"


@pytest.mark.parametrize("key", sorted(KINDS), ids=lambda key: key[1])
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_defaults_are_complete_and_stay_in_normal_form(key: tuple[str, str], data: st.DataObject) -> None:
    kind = KINDS[key]
    made = decode(kind.schema, data.draw(objects(kind)), [])
    kind.rules.defaults(made)
    assert decode(kind.schema, copy.deepcopy(made), []) == made
    again = copy.deepcopy(made)
    kind.rules.defaults(again)
    assert again == made


@pytest.mark.parametrize("key", sorted(KINDS), ids=lambda key: key[1])
def test_a_good_object_has_no_problem_as_an_update_of_itself(key: tuple[str, str]) -> None:
    kind = KINDS[key]
    made = decode(kind.schema, changed(key, {"metadata/uid": "u"}), [])
    kind.rules.defaults(made)
    kind.rules.prepare_create(made)
    same = copy.deepcopy(made)
    kind.rules.prepare_update(same, made)
    assert same == made
    assert kind.rules.validate_create(made) == []
    assert kind.rules.validate_update(same, made) == []
    assert kind.rules.validate_status(same, made) == []
