"""Processes forked from this one, which has loaded what they need, so that they share that memory.

Each is a session of its own (a terminal's Ctrl-C passes it by), writes to a log of its own, ends when we end, however
we end, and tells us by a pipe how it is: one JSON object on each line. Forking is safe only while this process has a
single thread, so this process has no other and no event loop.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from shoal.cli.exits import ExitCode, cause_of, code_of, is_for_people, sentence_of

_LARGEST_OLD_LOG = 16 * 1024 * 1024
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class Reporter:
    """A child's end of the pipe."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        """For a child that becomes another program, which then tells by itself how it is."""
        self._has_failed = False

    def ready(self) -> None:
        """Says that the process does its work."""
        self._tell({"ready": True})

    def failed(self, sentence: str, *, code: int = ExitCode.FAILED, log_tail: str = "") -> None:
        """Says why the process cannot do its work, before it ends; what was said first is what counts."""
        if not self._has_failed:
            self._has_failed = True
            self._tell({"failed": sentence, "code": code, "tail": log_tail})

    def parts(self, parts: Sequence[Mapping[str, Any]]) -> None:
        """Says how the programs are that this process keeps running."""
        self._tell({"parts": list(parts)})

    def _tell(self, message: Mapping[str, Any]) -> None:
        with suppress(BrokenPipeError):
            os.write(self.descriptor, json.dumps(message).encode() + b"\n")


Main = Callable[[Reporter], None]


@contextmanager
def signals_held() -> Iterator[None]:
    """Keeps signals waiting in a block: a stop between a fork and the note of it would leave an orphan."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class ChildProcess:
    """A running child; ended by its process id, never by name."""

    def __init__(self, name: str, main: Main, *, log: Path) -> None:
        """Forks; the child runs ``main`` and ends, and never returns here."""
        self.name = name
        self.log = log
        self.status: int | None = None
        self.has_hung_up = False
        """Whether the child's end of the pipe is closed: it has ended, or does in this moment."""
        self._unread = b""
        reading, writing = os.pipe()
        with signals_held():
            parent = os.getpid()
            self.pid = os.fork()
            if self.pid == 0:
                os.close(reading)
                _live(parent, log, main, Reporter(writing))
            os.close(writing)
            os.set_blocking(reading, False)
            self.reports = reading
            """Readable when the child has told something, or has ended."""

    def told(self) -> list[dict[str, Any]]:
        """What the child has told since the last look."""
        with suppress(BlockingIOError):
            while piece := os.read(self.reports, 65536):
                self._unread += piece
            self.has_hung_up = True
        *lines, self._unread = self._unread.split(b"\n")
        return [json.loads(line) for line in lines]

    @property
    def is_running(self) -> bool:
        """Whether the child has not ended."""
        if self.status is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is None

    def ending(self) -> str:
        """How the child ended, in words."""
        if self.status is None:
            return "is running"
        return f"was ended by {signal.Signals(-self.status).name}" if self.status < 0 else f"exited ({self.status})"

    def log_tail(self, lines: int = 20) -> str:
        """The last lines of the child's log."""
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 64 * 1024))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])

    def terminate(self) -> None:
        """Asks the child to end; one that was paused is woken to hear it."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Ends the child at once."""
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """Lets go of a child that has ended."""
        os.close(self.reports)

    def _signal(self, number: signal.Signals) -> None:
        # Its number is its own until it has been waited for.
        if self.is_running:
            os.kill(self.pid, number)


def end_all(children: Sequence[ChildProcess], *, grace: float) -> None:
    """Asks all to end, waits ``grace`` seconds for them together, and kills those that are left."""
    for child in children:
        child.terminate()
    deadline = time.monotonic() + grace
    while any(child.is_running for child in children):
        if time.monotonic() > deadline:
            for child in children:
                child.kill()
        time.sleep(0.01)
    for child in children:
        child.close()


def _live(parent: int, log: Path, main: Main, reporter: Reporter) -> None:
    """The whole life of a child."""
    status = 1
    try:
        _settle(parent, log)
        main(reporter)
        status = 0
    except BaseException as error:  # a child's end is told by its status and its log
        cause = cause_of(error)
        if is_for_people(cause):
            reporter.failed(sentence_of(cause), code=code_of(cause))
        with suppress(OSError):
            traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _settle(parent: int, log: Path) -> None:
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit("the parent is gone")  # it ended before we asked for the signal
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    if log.exists() and log.stat().st_size > _LARGEST_OLD_LOG:
        log.unlink()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(output)
    os.close(nothing)
