"""The bound: a program in namespaces of its own, with nothing around it, started by ``unshare``.

It has no root, no address, no volumes and no log of its own, and nobody is told of it.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from typing import Any

_COMMAND = ("--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--ipc", "--uts", "true")


class Bare:
    """Starts such programs, as the user with this number."""

    def __init__(self, user: int | None) -> None:
        self._program = shutil.which("unshare")
        self._as_user: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}

    @property
    def not_run(self) -> str:
        """Why it cannot be measured."""
        if self._program is None:
            return "no unshare here"
        return "" if self._started().wait() == 0 else "unshare is refused"

    def one(self) -> float:
        """Seconds from the start of one until it has ended, which it does at once."""
        began = time.perf_counter()
        self._started().wait()
        return time.perf_counter() - began

    def many(self, count: int) -> float:
        """The same of so many at once."""
        began = time.perf_counter()
        for process in [self._started() for _ in range(count)]:
            process.wait()
        return time.perf_counter() - began

    def _started(self) -> subprocess.Popen[bytes]:
        assert self._program is not None
        return subprocess.Popen([self._program, *_COMMAND], stderr=subprocess.DEVNULL, cwd="/", **self._as_user)
