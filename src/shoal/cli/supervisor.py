"""Keeps Shoal's processes running until someone asks for the end.

Signals are turned into an exception in the main thread, so that a start is given up as promptly as a running cluster
is stopped. The server is started first; while it gets ready the supervisor loads what the others need, and then forks
them. A process that dies is started again, the later the more often it dies.
"""

from __future__ import annotations

import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from shoal.cli.children import ChildProcess, Main, end_all, signals_held
from shoal.cli.data_dir import DataDir, PartState
from shoal.cli.exits import CommandError
from shoal.kube.backoff import Backoff

_READY_WITHIN = 90.0
_DELAYS = Backoff(initial=0.5, cap=30.0)
_STABLE_AFTER = 60.0
_WRITE_AGAIN = 1.0
_STOP_CLIENTS = 4.0
_STOP_SERVER = 4.5
"""Together less than the ten seconds that a stop may take."""


class StopRequested(BaseException):
    """Someone asked for the end; not an error, and not to be caught by those who catch errors."""


@dataclass
class Stop:
    """Whether someone asked for the end."""

    is_asked: bool = False

    def check(self) -> None:
        """Raises where someone did, and the exception was lost: Python drops those that meet a callback of its own."""
        if self.is_asked:
            raise StopRequested


@contextmanager
def stopping_on_signals() -> Iterator[Stop]:
    """Ends the block quietly at the first SIGINT or SIGTERM, even where these were inherited as ignored or blocked.

    Later ones are ignored, since stopping is bounded in time. SIGHUP counts too, unless ``nohup`` said otherwise.
    """
    stop = Stop()

    def ask(_number: int, _frame: FrameType | None) -> None:
        if not stop.is_asked:
            stop.is_asked = True
            raise StopRequested

    signals = {signal.SIGINT, signal.SIGTERM}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.add(signal.SIGHUP)
    for number in signals:
        signal.signal(number, ask)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    with suppress(StopRequested):
        yield stop


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process of Shoal: what it is called, and what it runs."""

    name: str
    main: Main


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is started, in which order."""

    server: Process
    """What the others are clients of."""
    clients: Callable[[], Sequence[Process]]
    """Gives the others, and loads what they need: called while the server gets ready."""
    once_serving: Callable[[], None] = lambda: None
    """What is to be done once the server is ready, before the others are started."""


def supervise(plan: Plan, place: DataDir, *, stop: Stop, announce: Callable[[], None]) -> None:
    """Starts everything, announces that it is ready, and keeps it running; returns only by an exception.

    Whoever calls holds the data dir.
    """
    with _Watch(place, stop) as watch:
        watch.launch(plan.server)
        clients = plan.clients()
        watch.until_ready()
        plan.once_serving()
        for client in clients:
            watch.launch(client)
        watch.until_ready()
        announce()
        watch.forever()


@dataclass
class _Watched:
    """What the supervisor remembers of a process."""

    process: Process
    child: ChildProcess
    launched: float
    is_ready: bool = False
    failure: CommandError | None = None
    tail: str = ""
    parts: list[PartState] = field(default_factory=list)
    restarts: int = 0
    failures: int = 0
    start_again: float | None = None

    @property
    def state(self) -> str:
        if self.start_again is not None:
            return "restarting"
        return "running" if self.is_ready else "starting"


class _Watch:
    """The processes that run, and what they tell."""

    def __init__(self, place: DataDir, stop: Stop) -> None:
        self._place = place
        self._stop = stop
        self._is_written = True
        self._watched: list[_Watched] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> _Watch:
        return self

    def __exit__(self, *_: object) -> None:
        for group, grace in ((self._watched[1:], _STOP_CLIENTS), (self._watched[:1], _STOP_SERVER)):
            end_all([one.child for one in group if one.start_again is None], grace=grace)
        self._selector.close()

    def launch(self, process: Process) -> None:
        """Starts a process, and does not wait for it."""
        with signals_held():
            self._watched.append(_Watched(process, self._forked(process), time.monotonic()))
        self._write()

    def until_ready(self) -> None:
        """Waits until all that were started are ready, and says so of each; raises where one cannot be."""
        deadline = time.monotonic() + _READY_WITHIN
        while waiting := [one for one in self._watched if not one.is_ready]:
            self._look(timeout=max(0.0, deadline - time.monotonic()))
            for one in waiting:
                if one.is_ready:
                    seconds = time.monotonic() - one.launched
                    _say(f"  {one.process.name:<12} ready after {seconds:.1f} s")
                elif not one.child.is_running:
                    raise _start_failed(one, one.child.ending())
                elif time.monotonic() > deadline:
                    raise _start_failed(one, f"was not ready within {_READY_WITHIN:.0f} s")

    def forever(self) -> None:
        """Starts again what ends."""
        while True:
            due = [one.start_again for one in self._watched if one.start_again is not None]
            if not self._is_written:
                due.append(time.monotonic() + _WRITE_AGAIN)
            self._look(timeout=max(0.0, min(due) - time.monotonic()) if due else None)
            for one in self._watched:
                if one.start_again is None:
                    if not one.child.is_running:
                        self._note_end(one)
                elif time.monotonic() >= one.start_again:
                    self._start_again(one)

    def _forked(self, process: Process) -> ChildProcess:
        child = ChildProcess(process.name, process.main, log=self._place.log.with_name(f"{process.name}.log"))
        self._selector.register(child.reports, selectors.EVENT_READ, child)
        return child

    def _look(self, *, timeout: float | None) -> None:
        """Waits until a process tells something or ends, and takes it down."""
        self._stop.check()
        by_child = {id(one.child): one for one in self._watched}
        is_new = not self._is_written
        for key, _ in self._selector.select(timeout):
            one = by_child[id(key.data)]
            is_new |= self._listen(one)
            if one.child.has_hung_up:
                _await_end(one.child)
        if is_new:
            self._write()

    def _listen(self, one: _Watched) -> bool:
        """Takes down what a process tells; says whether there was anything."""
        messages = one.child.told()
        for message in messages:
            _take_down(one, message)
        if one.child.has_hung_up:
            self._selector.unregister(one.child.reports)
        return bool(messages)

    def _note_end(self, one: _Watched) -> None:
        if not one.child.has_hung_up:  # it was seen to have ended before its pipe was
            self._listen(one)
        self._let_go(one.child)
        now = time.monotonic()
        one.failures = 1 if now - one.launched > _STABLE_AFTER else one.failures + 1
        delay = _DELAYS.delay(one.failures)
        one.start_again = now + delay
        one.is_ready, one.parts = False, []
        why = f"{one.child.ending()}{f' ({one.failure})' if one.failure else ''}"
        _say(f"shoal: {one.process.name} {why}: it is started again in {delay:.1f} s")
        self._write()

    def _let_go(self, child: ChildProcess) -> None:
        if not child.has_hung_up:  # what it started itself holds the pipe still
            self._selector.unregister(child.reports)
        child.close()

    def _start_again(self, one: _Watched) -> None:
        with signals_held():
            one.child = self._forked(one.process)
            one.start_again = None
        one.launched = time.monotonic()
        one.failure = None
        one.restarts += 1
        self._write()

    def _write(self) -> None:
        parts = [
            PartState(name=one.process.name, state=one.state, pid=one.child.pid, restarts=one.restarts)
            for one in self._watched
        ]
        try:
            self._place.write_parts([*parts, *(part for one in self._watched for part in one.parts)])
            self._is_written = True
        except OSError:  # the disk is full: what runs goes on, and it is written once there is room
            self._is_written = False


def _take_down(one: _Watched, message: dict[str, Any]) -> None:
    if message.get("ready"):
        one.is_ready = True
    if "failed" in message:
        one.failure, one.tail = CommandError(message["failed"], code=message["code"]), message["tail"]
    if "parts" in message:
        one.parts = [PartState(**part) for part in message["parts"]]


def _start_failed(one: _Watched, what: str) -> CommandError:
    if one.failure:
        if one.tail:
            _say(one.tail)
        return one.failure
    _say(one.child.log_tail() or "(nothing)")
    return CommandError(f"{one.process.name} {what}: the end of its log {one.child.log} is above")


def _say(line: str) -> None:
    """Tells a person something; where nobody can read it that is no reason to end."""
    with suppress(OSError):
        sys.stderr.write(f"{line}\n")


def _await_end(child: ChildProcess) -> None:
    """A child that closed its pipe ends in this moment; one that lives on without it is of no use."""
    deadline = time.monotonic() + 1.0
    while child.is_running:
        if time.monotonic() > deadline:
            child.kill()
        time.sleep(0.005)
