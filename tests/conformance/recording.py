"""The recordings: one file a theme, one key a story, so written that one answer's change is a change of few lines."""

from __future__ import annotations

import difflib
import importlib
import json
from pathlib import Path
from typing import Any

from tests.conformance.story import Story

_HERE = Path(__file__).parent
_WIDTH = 120

THEMES = tuple(sorted(file.stem for file in (_HERE / "stories").glob("*.py")))


def stories_of(theme: str) -> list[Story]:
    """The stories of one file under ``stories``."""
    stories: list[Story] = importlib.import_module(f"tests.conformance.stories.{theme}").STORIES
    return stories


def all_stories() -> list[tuple[str, Story]]:
    """Every story with its theme."""
    return [(theme, story) for theme in THEMES for story in stories_of(theme)]


def read(theme: str) -> dict[str, Any]:
    """What the real server answered, by story."""
    file = _HERE / "recorded" / f"{theme}.json"
    recorded: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return recorded


def write(theme: str, recorded: dict[str, Any]) -> None:
    (_HERE / "recorded" / f"{theme}.json").write_text(formatted(recorded) + "\n")


def formatted(value: Any, indent: int = 0, before: int = 0) -> str:
    """JSON with sorted keys in which whatever fits on a line is on one."""
    flat = json.dumps(_ordered(value), ensure_ascii=False)
    if not isinstance(value, dict | list) or indent + before + len(flat) <= _WIDTH:
        return flat
    pad = " " * (indent + 1)
    if isinstance(value, list):
        inner = [pad + formatted(item, indent + 1) for item in value]
        return "[\n" + ",\n".join(inner) + "\n" + " " * indent + "]"
    inner = []
    for key in sorted(value, key=_place):
        name = json.dumps(key, ensure_ascii=False) + ": "
        inner.append(pad + name + formatted(value[key], indent + 1, len(name)))
    return "{\n" + ",\n".join(inner) + "\n" + " " * indent + "}"


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value, key=_place)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def _place(key: str) -> tuple[bool, str]:
    """Keys go by the alphabet, but for the request, which says what the rest is about."""
    return key != "request", key


def difference(expected: Any, actual: Any, *, left: str, right: str) -> str:
    """A unified diff of two lists of answers, "" where they are equal; each hunk says which request it belongs to."""
    if expected == actual:
        return ""
    parts = []
    for number, (before, after) in enumerate(zip(expected, actual, strict=False), start=1):
        if before != after:
            lines = difflib.unified_diff(
                formatted(before).splitlines(), formatted(after).splitlines(), left, right, n=4, lineterm=""
            )
            parts.append(f"{number}. {before['request']}\n" + "\n".join(lines))
    if len(expected) != len(actual):
        parts.append(f"{len(expected)} answers are recorded, {len(actual)} were given: record anew")
    return "\n\n".join(parts)
