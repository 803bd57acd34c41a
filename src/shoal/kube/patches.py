"""The smallest change that leads from one JSON value to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge_patch_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7396) that turns ``before`` into ``after``; empty where they are equal.

    A list is replaced whole, and null means absence: an ``after`` must hold no nulls.
    """
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        known = before.get(key)
        if isinstance(value, Mapping) and isinstance(known, Mapping):
            if inner := merge_patch_between(known, value):
                patch[key] = inner
        elif key not in before or known != value:
            patch[key] = value
    return patch
