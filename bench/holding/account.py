"""What a process has used: the holders report with it about themselves."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What it took to read some pods, and what it takes to hold them."""

    pods: int
    seconds: float
    cpu_seconds: float
    memory: int
    """Bytes that the process grew by and did not give back."""


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """What it took to follow some changes."""

    changes: int
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Moment:
    """Where the process stands."""

    clock: float
    cpu: float

    @classmethod
    def now(cls) -> Moment:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return cls(time.perf_counter(), usage.ru_utime + usage.ru_stime)


def resident() -> int:
    """Bytes in memory, once all that is garbage has been given back to the system."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def tell(result: Held | Followed) -> None:
    """Reports to the one who started this process."""
    sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    sys.stdout.flush()
