"""What a real API server printed, replayed: every kind in every state, and bookmarks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest

from shoal.cluster.apiserver.kinds.tables import builtin_kinds
from shoal.cluster.apiserver.tables import cells, columns, conditions
from tests.cluster.apiserver.tables.real_server import facts
from tests.cluster.apiserver.tables.record import RECORDED

KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds(rules={})}
LINES: list[dict[str, Any]] = [msgspec.json.decode(line) for line in RECORDED.read_bytes().splitlines()]
HEADERS = [line for line in LINES if "columns" in line]
ROWS = [line for line in LINES if "cells" in line]


@pytest.mark.parametrize("line", HEADERS, ids=lambda line: f"{line['apiVersion']}-{line['kind']}")
def test_columns_are_those_of_kubernetes(line: dict[str, Any]) -> None:
    assert facts(columns(KINDS[line["apiVersion"], line["kind"]])) == line["columns"]


@pytest.mark.parametrize(
    "line", ROWS, ids=lambda line: f"{line['apiVersion']}-{line['kind']}-{line['object']['metadata'].get('name', '')}"
)
def test_a_row_is_as_kubernetes_printed_it(line: dict[str, Any]) -> None:
    kind = KINDS[line["apiVersion"], line["kind"]]
    assert cells(kind, line["object"], datetime.fromisoformat(line["at"])) == line["cells"]
    assert conditions(kind, line["object"]) == line.get("conditions", [])
