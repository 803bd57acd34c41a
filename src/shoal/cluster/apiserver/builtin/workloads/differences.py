"""How a message shows what was changed that may not be."""

from __future__ import annotations

import difflib
from typing import Any

import msgspec


def difference(old: Any, new: Any) -> str:
    """What differs between two values, line by line, as the end of a message."""
    lines = difflib.unified_diff(_lines(old), _lines(new), n=3)
    return "".join(list(lines)[2:])


def _lines(value: Any) -> list[str]:
    text = msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=1).decode()
    return [f"{line}\n" for line in text.split("\n")]
