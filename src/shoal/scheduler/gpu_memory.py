"""How much memory the GPUs of a node have, as the node's label says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from shoal.api import kai_names as names

_BYTES_FROM: Final = 2**20
"""Numbers from here on are bytes: no device has a tebibyte."""
_STEP: Final = 100


def gpu_memory_of(labels: Mapping[str, str]) -> int | None:
    """MiB of each GPU of a node, in whole hundreds; None where its labels do not say."""
    text = labels.get(names.NODE_GPU_MEMORY, "")
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    number = int(text)
    mebibytes = number // 2**20 if number >= _BYTES_FROM else number
    return mebibytes // _STEP * _STEP or None
