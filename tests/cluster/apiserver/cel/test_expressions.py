"""Expressions mean what they mean in Kubernetes: its own tables, and the types that schemas give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.cel import CelError, CompileError, compile_expression
from shoal.cluster.apiserver.cel.escapes import escaped, unescaped
from shoal.cluster.apiserver.cel.types import INT, list_of, optional_of
from shoal.cluster.apiserver.cel.values import NOTHING, Nothing, Optional
from shoal.cluster.apiserver.custom.rule_types import rule_type

CASES = yaml.safe_load((Path(__file__).parent / "kubernetes_cases.yaml").read_text())


def value_of(expression: str, **bindings: Any) -> Any:
    return compile_expression(expression, {}).evaluate(bindings)


@pytest.mark.parametrize("case", CASES["functions"], ids=[case["name"] for case in CASES["functions"]])
def test_functions_of_kubernetes_libraries_give_what_its_own_tests_expect(case: dict[str, Any]) -> None:
    if "compile_error" in case:
        with pytest.raises(CompileError) as refused:
            value_of(case["expression"])
        for wanted in case["compile_error"]:
            assert wanted in str(refused.value) or re.search(wanted, str(refused.value))
    elif "error" in case:
        with pytest.raises(CelError) as failed:
            value_of(case["expression"])
        assert case["error"] in str(failed.value) or re.search(case["error"], str(failed.value))
    else:
        value = value_of(case["expression"])
        if isinstance(value, Optional | Nothing):
            value = value.value if isinstance(value, Optional) else "none"
        assert value == case["value"]


@pytest.mark.parametrize("expression", CASES["true"])
def test_rules_that_hold_in_kubernetes_hold_here(expression: str) -> None:
    assert value_of(expression) is True


@pytest.mark.parametrize("case", CASES["errors"], ids=[case["expression"] for case in CASES["errors"]])
def test_rules_that_fail_in_kubernetes_fail_here(case: dict[str, str]) -> None:
    with pytest.raises((CelError, CompileError)) as failed:
        value_of(case["expression"])
    assert case["error"] in str(failed.value)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "ratio": {"type": "number"},
        "name": {"type": "string"},
        "when": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "wait": {"type": "string", "format": "duration"},
        "key": {"type": "string", "format": "byte"},
        "port": {"x-kubernetes-int-or-string": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "ratios": {"type": "array", "items": {"type": "number"}},
        "moments": {"type": "array", "items": {"type": "string", "format": "date-time"}},
        "items": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}},
        },
        "a-b.c/d": {"type": "string"},
        "a__b": {"type": "string"},
        "in": {"type": "integer"},
        "namespace": {"type": "string"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "maybe": {"type": "string", "nullable": True},
        "pod": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}
OBJECT: dict[str, Any] = {
    "replicas": 3,
    "ratio": 2,
    "name": "abc",
    "when": "2020-01-02T03:04:05Z",
    "day": "2020-01-02",
    "wait": "1h30m",
    "key": "aGk=",
    "port": "80%",
    "labels": {"a": "b"},
    "ratios": [1, 2.5],
    "moments": ["2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"],
    "items": [{"name": "x"}, {"name": "y"}],
    "set": ["a", "b"],
    "map": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
    "a-b.c/d": "odd",
    "a__b": "under",
    "in": 7,
    "namespace": "ns",
    "free": {"x": 1},
    "maybe": None,
    "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},
}
TRUE_OF_OBJECT = [
    "self.replicas + 1 == 4",
    "type(self.ratio) == double && self.ratio / 4.0 == 0.5",
    "double(self.replicas) > self.ratio",
    "self.when < timestamp('2021-01-01T00:00:00Z')",
    "self.when.getFullYear() == 2020 && self.day.getDate() == 2",
    "self.wait > duration('1h') && self.wait == duration('90m')",
    "self.key == b'hi'",
    "type(self.port) == string && self.port.endsWith('%')",
    "type(self.port) == int ? self.port > 0 : self.port.matches('^[0-9]+%$')",
    "self.labels.all(k, k == 'a' && self.labels[k] == 'b')",
    "self.labels.all(k, v, k != v)",
    "self.ratios.sum() == 3.5 && self.ratios.max() == 2.5",
    "self.ratios.all(r, r >= 1.0)",
    "self.moments.isSorted() && self.moments.max() > self.when",
    "self.moments.exists(m, m > self.when)",
    "self.items.exists_one(i, i.name == 'x')",
    "self.items.map(i, i.name) == ['x', 'y']",
    "self.items.filter(i, i.name > 'x').size() == 1",
    "self.set == ['b', 'a']",
    "self.set + ['a', 'c'] == ['c', 'b', 'a']",
    "self.map == oldSelf.map && self.map[0] != oldSelf.map[0]",
    "(self.map + oldSelf.map).size() == 2",
    "self.a__dash__b__dot__c__slash__d == 'odd'",
    "self.a__underscores__b == 'under'",
    "self.__in__ == 7",
    "self.__namespace__ == 'ns' && self.namespace == 'ns' && has(self.namespace)",
    "!has(self.labels.b) && has(self.labels.a)",
    "self.?labels.?b.orValue('z') == 'z'",
    "self.?name.orValue('z') == 'abc'",
    "self.items[?5].hasValue() == false",
    "self.pod.metadata.name == 'p' && self.pod.kind == 'Pod'",
    "self == oldSelf",
    "self.items == oldSelf.items",
    "self.name in ['abc', 'def'] && !('x' in self.labels)",
    "self.labels.?b.optMap(v, v + 'x').orValue('none') == 'none'",
    "false && self.labels['zz'] == '' || true",
    "self.labels['zz'] == '' || true",
    "self.items.transformMap(i, v, v.name)[0] == 'x'",
]


@pytest.mark.parametrize("expression", TRUE_OF_OBJECT)
def test_values_have_the_types_that_their_schema_gives_them(expression: str) -> None:
    given_type = rule_type(SCHEMA)
    assert given_type is not None
    program = compile_expression(expression, {"self": given_type, "oldSelf": given_type})
    assert program.evaluate({"self": OBJECT, "oldSelf": {**OBJECT, "map": OBJECT["map"][::-1]}}) is True


REFUSED = {
    "self.replica > 1": "ERROR: <input>:1:5: undefined field 'replica'\n | self.replica > 1\n | ....^",
    "self.replicas > 'a'": "ERROR: <input>:1:15: found no matching overload for '_>_' applied to '(int, string)'",
    "self.ratio == 1": "found no matching overload for '_==_' applied to '(double, int)'",
    "foo(self.replicas)": "ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')",
    "nope.x == 1": "ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')",
    "self.replicas.all(k, v, v > 2)": "expression of type 'int' cannot be range of a comprehension (must be list, map, "
    "or dynamic)",
    "has(self)": "ERROR: <input>:1:5: invalid argument to has() macro",
    "self.replicas > ": "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', "
    "'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    "self.free.x == 1": "undefined field 'x'",
    "self.name == null": "found no matching overload for '_==_' applied to '(string, null)'",
    "self.replicas.startsWith('a')": "found no matching overload for 'startsWith' applied to 'int.(string)'",
    "self.items.all(x, 1)": "expected type 'bool' but found 'int'",
    "'a'.matches('(')": "invalid matches argument",
    "math.greatest(1, 2) == 2": "undeclared reference to 'math' (in container '')",
    "[1, 'a'].size() == 1": "expected type 'int' but found 'string'",
}


@pytest.mark.parametrize(("expression", "message"), REFUSED.items(), ids=list(REFUSED))
def test_an_expression_that_cannot_be_right_is_refused_in_the_words_of_kubernetes(
    expression: str, message: str
) -> None:
    given_type = rule_type(SCHEMA)
    assert given_type is not None
    with pytest.raises(CompileError) as refused:
        compile_expression(expression, {"self": given_type})
    assert message in str(refused.value)


FAILING = {
    "self.labels['zz'] == ''": "no such key: zz",
    "self.items[7].name == ''": "index out of bounds: 7",
    "1 / (self.replicas - 3) == 1": "division by zero",
    "self.replicas + 9223372036854775807 > 0": "integer overflow",
    "self.port > 3": "no such overload",
    "oldSelf.value() == self": "optional.none() dereference",
}


@pytest.mark.parametrize(("expression", "message"), FAILING.items(), ids=list(FAILING))
def test_an_expression_without_a_value_says_why(expression: str, message: str) -> None:
    given_type = rule_type(SCHEMA)
    assert given_type is not None
    program = compile_expression(expression, {"self": given_type, "oldSelf": optional_of(given_type)})
    with pytest.raises(CelError, match=re.escape(message)):
        program.evaluate({"self": OBJECT, "oldSelf": NOTHING})


def test_a_loop_without_end_is_cut_off() -> None:
    program = compile_expression("self.all(a, self.all(b, a + b >= 0))", {"self": list_of(INT)})
    assert program.evaluate({"self": list(range(300))}) is True
    with pytest.raises(CelError, match="cost limit exceeded"):
        program.evaluate({"self": list(range(2000))})


def test_a_program_names_the_variables_that_it_reads() -> None:
    given_type = rule_type(SCHEMA)
    assert given_type is not None
    variables = {"self": given_type, "oldSelf": given_type}
    assert compile_expression("self.replicas > 1", variables).used == {"self"}
    assert compile_expression("self.replicas > oldSelf.replicas", variables).used == {"self", "oldSelf"}


@given(st.text(alphabet="ab_.-/1", min_size=1))
def test_every_name_that_can_be_escaped_comes_back_as_it_was(name: str) -> None:
    spelled = escaped(name)
    if spelled is not None:
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", spelled)
        assert unescaped(spelled) == name


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1).filter(bool))
def test_division_and_remainder_of_integers_agree_as_in_go(one: int, other: int) -> None:
    program = compile_expression("(self / oldSelf) * oldSelf + self % oldSelf", {"self": INT, "oldSelf": INT})
    if (one, other) != (-(2**63), -1):
        assert program.evaluate({"self": one, "oldSelf": other}) == one
