"""The recordings: one file a theme, one key a story, so written that an object's change is one of few lines."""

from __future__ import annotations

import difflib
import importlib
import json
from pathlib import Path
from typing import Any

from tests.conformance.recording import formatted
from tests.differential.normal import Telling
from tests.differential.story import Story

_HERE = Path(__file__).parent

THEMES = tuple(sorted(file.stem for file in (_HERE / "stories").glob("*.py")))


def stories_of(theme: str) -> list[Story]:
    """The stories of one file under ``stories``."""
    stories: list[Story] = importlib.import_module(f"tests.differential.stories.{theme}").STORIES
    return stories


def all_stories() -> list[tuple[str, Story]]:
    """Every story with its theme."""
    return [(theme, story) for theme in THEMES for story in stories_of(theme)]


def read(theme: str) -> dict[str, Any]:
    """What the real cluster made of each story."""
    file = _HERE / "recorded" / f"{theme}.json"
    recorded: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return recorded


def write(theme: str, recorded: dict[str, Any]) -> None:
    (_HERE / "recorded" / f"{theme}.json").write_text(formatted(recorded) + "\n")


def difference(expected: Telling, actual: Telling, *, left: str, right: str) -> str:
    """A unified diff of two tellings, "" where they are equal; what comes after the first difference is left out."""
    for snapshot, before in expected.items():
        after = actual.get(snapshot)
        if before != after:
            lines = difflib.unified_diff(
                formatted(before).splitlines(), formatted(after).splitlines(), left, right, n=6, lineterm=""
            )
            return f"snapshot {snapshot}\n" + "\n".join(lines)
    return "" if expected.keys() == actual.keys() else f"{len(actual)} snapshots were taken: record anew"
