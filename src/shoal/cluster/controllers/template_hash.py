"""The short hash that names a version of a template, in the letters that Kubernetes uses for it.

It is taken over the JSON of the value with its keys in order, so that it is the same in any process, at any time.
"""

from __future__ import annotations

import functools
import struct
from typing import Any

import msgspec

_OFFSET_BASIS = 0x811C9DC5
_PRIME = 0x01000193
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and nothing that looks like one: no words come about."""


def template_hash(value: Any, collision_count: int | None) -> str:
    """The hash of a value of plain JSON; another ``collision_count`` gives another one for the same value."""
    content = msgspec.json.encode(value, order="deterministic")
    if collision_count is not None:
        content += struct.pack("<II", collision_count, 0)
    return safe_letters(str(_fnv32a(content)))


def safe_letters(text: str) -> str:
    """A text with each character replaced by one of a few harmless letters and digits."""
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in text.encode())


@functools.lru_cache(maxsize=512)
def _fnv32a(content: bytes) -> int:
    """FNV-1a of 32 bits; remembered, since a template is hashed at each reconcile and seldom changes."""
    result = _OFFSET_BASIS
    for byte in content:
        result = ((result ^ byte) * _PRIME) & 0xFFFFFFFF
    return result
