"""What is wrong with a label selector is told in Kubernetes' words."""

from __future__ import annotations

import pytest

from shoal.cluster.apiserver.verbs.selector_problems import selector_problem

_NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
PROBLEMS = {
    "a=b=c": "found '=', expected: ',' or 'end of string'",
    "=x": "found '=', expected: !, identifier, or 'end of string'",
    "a=x,": "found '', expected: identifier after ','",
    "!": "unable to parse requirement: found '', expected: identifier",
    "a=(": "unable to parse requirement: found '(', expected: identifier",
    "a b": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    "a in b": "unable to parse requirement: found 'b' expected: '('",
    "a in (": "unable to parse requirement: found '', expected: ',', ')' or identifier",
    "a in (b c)": "unable to parse requirement: found 'c', expected: ',' or ')'",
    "a in (b,=)": "unable to parse requirement: found '=', expected: ',', or identifier",
    "a>x": "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be "
    "an integer",
    "-bad": f'unable to parse requirement: <nil>: Invalid value: "-bad": {_NAME}',
}


@pytest.mark.parametrize(("text", "problem"), PROBLEMS.items(), ids=PROBLEMS)
def test_the_first_problem_is_told_as_kubernetes_does(text: str, problem: str) -> None:
    assert selector_problem(text) == problem


@pytest.mark.parametrize(
    "text", ["", "a", "!a", "a=b,c!=d", "a in (b,c),d notin (,e)", "a in (b,)", "a in ()", "a>1", "a=,b"]
)
def test_what_is_right_has_no_problem(text: str) -> None:
    assert selector_problem(text) == ""
