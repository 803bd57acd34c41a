"""Custom resource definitions as servers answer them."""

from __future__ import annotations

import msgspec
import pytest

from shoal.api.apiextensions import Definition


@pytest.mark.parametrize(
    ("conditions", "is_established"),
    [
        pytest.param(b"null", False, id="taken in a moment ago"),
        pytest.param(b'[{"type": "NamesAccepted", "status": "True"}]', False, id="named"),
        pytest.param(b'[{"type": "Established", "status": "False"}]', False, id="not yet"),
        pytest.param(b'[{"type": "Established", "status": "True"}]', True, id="served"),
    ],
)
def test_a_definition_is_established_once_the_server_says_so(conditions: bytes, is_established: bool) -> None:
    answer = b'{"metadata": {"name": "books.example.com"}, "status": {"conditions": ' + conditions + b"}}"

    assert msgspec.json.decode(answer, type=Definition).is_established is is_established
