"""Paths into objects, and the cells of tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.cluster.apiserver.custom import columns_of
from shoal.cluster.apiserver.custom.columns import human_span
from shoal.cluster.apiserver.custom.json_path import InvalidPath, compile_path

OBJECT: dict[str, Any] = {
    "metadata": {"labels": {"app.kubernetes.io/name": "x", "plain": "y"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"items": [{"n": 1, "name": "a"}, {"n": 2, "name": "b"}], "replicas": 3, "flag": True, "ratio": 1.5},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
}
PATHS: list[tuple[str, list[Any]]] = [
    (".spec.replicas", [3]),
    (".spec.nope.deeper", []),
    ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
    (".status.conditions[?(@.type=='Other')].status", ["False"]),
    (".status.conditions[?(@.type!='Ready')].type", ["Other"]),
    (".spec.items[?(@.n>1)].name", ["b"]),
    (".spec.items[*].name", ["a", "b"]),
    (".spec.items[0].name", ["a"]),
    (".spec.items[-1].name", ["b"]),
    (".spec.items[0:1].name", ["a"]),
    (".spec.items[5].name", []),
    (".metadata.labels.app\\.kubernetes\\.io/name", ["x"]),
    (".metadata.labels['app.kubernetes.io/name']", ["x"]),
    (".metadata.labels['plain','nope']", ["y"]),
    ("..name", ["a", "b"]),
    (".metadata.labels.*", ["x", "y"]),
    (".", [OBJECT]),
]


@pytest.mark.parametrize(("path", "expected"), PATHS)
def test_a_path_leads_to_its_values(path: str, expected: list[Any]) -> None:
    assert compile_path(path)(OBJECT) == expected


@pytest.mark.parametrize("path", [".a[", ".a[x]", "a b", ".a[?(@.b==c)]"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidPath):
        compile_path(path)


CELLS: list[tuple[str, str, Any]] = [
    ("integer", ".spec.replicas", 3),
    ("integer", ".spec.ratio", 1),
    ("number", ".spec.ratio", 1.5),
    ("boolean", ".spec.flag", True),
    ("boolean", ".spec.replicas", None),
    ("string", ".spec.replicas", "3"),
    ("string", ".spec.flag", "true"),
    ("string", ".spec.items[0]", '{"n":1,"name":"a"}'),
    ("string", ".spec.items[*].name", "a"),
    ("string", ".nope", None),
    ("date", ".metadata.creationTimestamp", "5m"),
    ("date", ".spec.items[0].name", "<invalid>"),
]


@pytest.mark.parametrize(("kind", "path", "expected"), CELLS)
def test_a_cell_shows_what_the_real_table_shows(kind: str, path: str, expected: Any) -> None:
    [column] = columns_of({"additionalPrinterColumns": [{"name": "X", "type": kind, "jsonPath": path}]})
    assert column.cell(OBJECT, datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=5)) == expected


def test_a_definition_without_columns_shows_the_age() -> None:
    [column] = columns_of({})
    assert (column.name, column.type, column.priority) == ("Age", "date", 0)


def test_a_column_says_where_it_comes_from_unless_it_says_more() -> None:
    stated = [
        {"name": "A", "type": "string", "jsonPath": ".a"},
        {"name": "B", "type": "string", "jsonPath": ".b", "description": "d", "priority": 1},
    ]
    first, second = columns_of({"additionalPrinterColumns": stated})
    assert first.description == "Custom resource definition column (in JSONPath format): .a"
    assert (second.description, second.priority) == ("d", 1)


SPANS = {-5: "<invalid>", 0: "0s", 119: "119s", 120: "2m", 150: "2m30s", 599: "9m59s", 600: "10m", 10799: "179m"}
SPANS |= {10800: "3h", 12000: "3h20m", 28800: "8h", 172799: "47h", 172800: "2d", 180000: "2d2h", 691200: "8d"}
SPANS |= {63072000: "2y", 64000000: "2y10d", 300000000: "9y"}


@pytest.mark.parametrize(("seconds", "expected"), SPANS.items())
def test_an_age_is_told_in_at_most_two_units(seconds: int, expected: str) -> None:
    assert human_span(seconds) == expected
