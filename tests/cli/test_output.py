"""YAML, JSON and tables: what is written is what is read back, and nothing is cut off."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shoal.cli.output import Table, to_json, to_table, to_yaml

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))


@given(st.lists(st.dictionaries(TEXT, VALUES, max_size=3), min_size=1, max_size=3))
def test_yaml_reads_back_as_it_was(documents: list[dict[str, Any]]) -> None:
    assert list(yaml.safe_load_all(to_yaml(documents))) == documents


@given(VALUES)
def test_json_reads_back_as_it_was(value: Any) -> None:
    assert json.loads(to_json(value)) == value


@pytest.mark.parametrize("text", ["1e3", "0o17", "0x1f", "1_000", "12", "+1", ".5", "1.2.3", "08", "-1e-3"])
def test_text_that_some_read_as_a_number_is_quoted(text: str) -> None:
    assert to_yaml([{"a": text}]) == f"a: '{text}'\n"


@pytest.mark.parametrize("text", ["yes", "no", "on", "null", "~", "true", "2026-03-01", "", "a: b", "#a", "*a", "- a"])
def test_text_that_means_something_in_yaml_stays_text(text: str) -> None:
    assert yaml.safe_load(to_yaml([{"a": text}])) == {"a": text}
    assert to_yaml([{"a": text}]) == f"a: '{text}'\n"


@pytest.mark.parametrize("text", ["4Gi", "100m", "v1alpha1", "a-b", "kai.scheduler/queue", "^[a-z]+$"])
def test_plain_text_stays_plain(text: str) -> None:
    assert to_yaml([{"a": text}]) == f"a: {text}\n"


def test_yaml_repeats_what_is_shared_and_keeps_the_order() -> None:
    shared = {"b": 1, "a": 2}
    assert to_yaml([{"x": shared, "w": shared}]) == "x:\n  b: 1\n  a: 2\nw:\n  b: 1\n  a: 2\n"


def test_documents_are_set_apart() -> None:
    assert to_yaml([{"a": 1}]) == "a: 1\n"
    assert to_yaml([{"a": 1}, {"b": 2}]) == "---\na: 1\n---\nb: 2\n"


def test_json_is_laid_out_for_people() -> None:
    assert to_json({"name": "größe"}) == '{\n  "name": "größe"\n}\n'


@pytest.mark.parametrize(
    ("table", "text"),
    [
        pytest.param(
            Table(heading=["name", "gpus"], rows=[["team-a", 4], ["b", 16]]),
            "NAME     GPUS\nteam-a   4\nb        16\n",
            id="heading",
        ),
        pytest.param(
            Table(rows=[["version", "1"], ["os", "linux"]]), "version   1\nos        linux\n", id="no heading"
        ),
        pytest.param(Table(heading=["name"], rows=[]), "NAME\n", id="no rows"),
        pytest.param(Table(rows=[]), "", id="nothing"),
        pytest.param(Table(rows=[["队列", "a"], ["q", "b"]]), "队列   a\nq      b\n", id="wide letters"),
        pytest.param(Table(rows=[["x" * 200, "end"]]), "x" * 200 + "   end\n", id="wider than any terminal"),
    ],
)
def test_a_table_lines_up_and_nothing_is_cut(table: Table, text: str) -> None:
    assert to_table(table) == text
