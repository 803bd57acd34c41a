"""docs/security.md promises nothing that no test holds."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


def functions_of(file: Path) -> set[str]:
    """The test functions of a file."""
    if not file.is_file():
        return set()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, functions)}


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_every_test_that_the_page_names_exists(file: str, name: str) -> None:
    assert name in functions_of(ROOT / file)


def test_the_page_names_functions_of_this_form_alone() -> None:
    assert len(NAMED) > 30
    assert PAGE.count("`tests/") == len(re.findall(r"`tests/[\w/]+\.py::\w+`", PAGE))


def test_every_section_of_promises_names_a_test() -> None:
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    bare = [each.splitlines()[0] for each in sections if "`tests/" not in each]
    assert bare == ["Root or an ordinary user", "What is not promised"]
