"""What the runtime tells people: a JSON object on each line of its standard error."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import Any

import msgspec


def note(event: str, **fields: Any) -> None:
    """Notes an event with what belongs to it."""
    line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": event, **fields}
    with suppress(OSError):
        os.write(sys.stderr.fileno(), msgspec.json.encode(line) + b"\n")
