"""``shoal`` with a clock at each step of a pod's start: only for looking where time goes.

The steps lie in the file that ``SHOAL_BENCH_STAGES`` names, a line of JSON each, with the seconds at which it began and
ended, by the same clock as the bench's own.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from shoal.cli import main
from shoal.cluster.node.process.client import Runtime
from shoal.cluster.node.process.contents import Contents
from shoal.cluster.node.process.pods.keeper import PodKeeper
from shoal.cluster.node.process.pods.worker import PodWorker


def _clocked(file: int) -> None:
    """Puts a clock around the steps; each is told apart by the uid of its pod."""

    def note(step: str, pod: str, began: float) -> None:
        line = {"step": step, "pod": pod, "began": began, "ended": time.perf_counter()}
        os.write(file, json.dumps(line).encode() + b"\n")

    def around(owner: type, method: str, step: str, pod_of: Callable[..., str]) -> None:
        act: Callable[..., Awaitable[Any]] = getattr(owner, method)

        @wraps(act)
        async def clocked(*given: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return await act(*given, **named)
            finally:
                note(step, pod_of(*given), began)

        setattr(owner, method, clocked)

    take_in = PodKeeper._take_in

    def taken_in(self: PodKeeper, pod: Any, sandbox: Any) -> None:
        began = time.perf_counter()
        take_in(self, pod, sandbox)
        note("seen", pod.metadata.uid, began)

    PodKeeper._take_in = taken_in  # type: ignore[method-assign]
    around(Runtime, "open", "sandbox", lambda _, spec: str(spec.uid))
    around(Contents, "prepare", "volumes", lambda _, pod: str(pod.metadata.uid))
    around(Contents, "container", "contents", lambda _, pod, container: str(pod.metadata.uid))
    around(Runtime, "start", "start", lambda _, spec: str(spec.sandbox))
    around(PodWorker, "_write", "status", lambda self, _: str(self.pod.metadata.uid))


if __name__ == "__main__":
    _clocked(os.open(os.environ["SHOAL_BENCH_STAGES"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644))
    sys.exit(main())
