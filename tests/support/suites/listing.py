"""A pytest plugin that lists the marks of all test files."""

from __future__ import annotations

import pytest

LISTED = "marked:"


def pytest_collection_finish(session: pytest.Session) -> None:
    """One line a mark and file."""
    marked = {(mark.name, item.nodeid.split("::")[0]) for item in session.items for mark in item.iter_markers()}
    print(*(f"{LISTED} {name} {file}" for name, file in sorted(marked)), sep="\n")
