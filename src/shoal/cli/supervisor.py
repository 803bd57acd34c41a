"""Keeps a cluster's processes running until someone asks for the end.

Signals are turned into an exception in the main thread, so that a start is given up as promptly as a running cluster
is stopped. A part that dies is started again, the later the more often it dies.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from shoal.cli.data_dir import DataDir, PartState
from shoal.cluster.kubernetes import Part, RealKubernetes
from shoal.kube.backoff import Backoff

_LOOK_EVERY = 0.2
_DELAYS = Backoff(initial=0.5, cap=30.0)
_STABLE_AFTER = 60.0


class StopRequested(BaseException):
    """Someone asked for the end; not an error, and not to be caught by those who catch errors."""


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Ends the block quietly at the first SIGINT or SIGTERM, even where these were inherited as ignored or blocked.

    Later ones are ignored, since stopping is bounded in time. SIGHUP counts too, unless ``nohup`` said otherwise.
    """
    asked = False

    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if not asked:
            asked = True
            raise StopRequested

    signals = {signal.SIGINT, signal.SIGTERM}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.add(signal.SIGHUP)
    for number in signals:
        signal.signal(number, ask)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    with suppress(StopRequested):
        yield


def supervise(cluster: RealKubernetes, data_dir: DataDir, *, announce: Callable[[], None]) -> None:
    """Starts the cluster, announces that it is ready, and keeps it running; returns only by an exception."""
    with data_dir.held(os.getpid()):
        try:
            cluster.start()
            watched = [_Watched(part) for part in cluster.processes()]
            _write(watched, cluster, data_dir)
            data_dir.write_endpoints({"api": cluster.server})
            announce()
            while True:
                if _restart_ended(watched, cluster, now=time.monotonic()):
                    _write(watched, cluster, data_dir)
                time.sleep(_LOOK_EVERY)
        finally:
            cluster.stop()


@dataclass
class _Watched:
    """What the supervisor remembers of a part."""

    part: Part
    restarts: int = 0
    failures: int = 0
    started: float = 0.0
    start_again: float | None = None


def _restart_ended(watched: list[_Watched], cluster: RealKubernetes, *, now: float) -> bool:
    """Starts again what has ended, each part after its own delay; whether anything is new."""
    ended = set(cluster.ended())
    is_new = False
    for one in watched:
        if one.part not in ended:
            continue
        if one.start_again is None:
            one.failures = 1 if now - one.started > _STABLE_AFTER else one.failures + 1
            delay = _DELAYS.delay(one.failures)
            one.start_again = now + delay
            ending = cluster.processes()[one.part].ending()
            sys.stderr.write(f"shoal: {one.part} {ending}: it is started again in {delay:.1f} s\n")
            is_new = True
        if now >= one.start_again:
            cluster.launch_again(one.part)
            one.restarts += 1
            one.started, one.start_again = now, None
            is_new = True
    return is_new


def _write(watched: list[_Watched], cluster: RealKubernetes, data_dir: DataDir) -> None:
    processes = cluster.processes()
    data_dir.write_parts(
        [
            PartState(
                name=one.part.value,
                state="running" if one.start_again is None else "restarting",
                pid=processes[one.part].pid,
                restarts=one.restarts,
            )
            for one in watched
        ]
    )
