"""An expression ends where Kubernetes' cost limit would end it, before the work is done."""

from __future__ import annotations

import time
from typing import Any

import pytest

from shoal.cluster.apiserver.cel import CelError, compile_expression
from shoal.cluster.apiserver.cel.types import INT, STRING, list_of

TEXT = "a" * 10_000
NUMBERS = list(range(5_000))


def value_of(expression: str) -> Any:
    program = compile_expression(expression, {"text": STRING, "numbers": list_of(INT)})
    return program.evaluate({"text": TEXT, "numbers": NUMBERS})


@pytest.mark.parametrize(
    "expression",
    [
        "'%.999999999f'.format([1.0])",
        "'%.999999999e'.format([1.0])",
        "'%." + "9" * 5000 + "f'.format([1.0])",
        "text" + ".replace('a', 'aaaaaaaaaaaaaaaaaaaa')" * 7,
        "text.replace('', text)",
        "numbers.map(x, text).join(text)",
        "numbers.all(x, text.replace('a', 'bb') != '')",
        "numbers.all(x, text.split('').size() > 0)",
        "numbers.all(x, (text + text).size() > 0)",
        "numbers.all(x, text.upperAscii() != '')",
        "numbers.all(x, text + 'b' != text)",
        "numbers.all(x, !text.matches('^(a+)+[b-d]$'))",
        "numbers.all(x, numbers.all(y, numbers.all(z, x + y + z >= 0)))",
        "sets.contains(numbers, numbers)",
        "sets.equivalent(numbers, numbers)",
        "sets.intersects(numbers, numbers.map(x, -x - 1))",
        "lists.range(2000000).size() > 0",
        "(text + 'c').find('(a+)+b|c$')",
        "(text + 'c').findAll('(a+)+b|c$')",
    ],
    ids=lambda expression: expression[:40],
)
def test_an_expression_that_costs_too_much_is_cancelled(expression: str) -> None:
    began = time.process_time()
    with pytest.raises(CelError, match="operation cancelled: actual cost limit exceeded"):
        value_of(expression)
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'%.3f %.1100e'.format([1.0, 1.0]).size()", 1113),
        ("text.replace('a', 'bb').size()", 20_000),
        ("text.split('').size()", 10_000),
        ("numbers.map(x, 'abcdefghij').join(',').size()", 54_999),
        ("numbers.all(x, x in [1, 2, 3] || x >= 0)", True),
        (
            "[dyn(1), dyn(1.0), dyn(2), dyn(true), dyn(true), dyn('a'), dyn([1]), dyn([1])].distinct().size()",
            5,
        ),
        ("numbers.distinct().size()", 5_000),
        ("'abc-123'.find('[0-9]+')", "123"),
        ("'a1b22'.findAll('[0-9]+')", ["1", "22"]),
        ("sets.contains(numbers, [1, 2, 3])", True),
    ],
)
def test_an_expression_of_ordinary_cost_is_evaluated(expression: str, value: object) -> None:
    assert value_of(expression) == value
