"""Child processes that never outlive us, each with its own log.

Linux sends a child a signal of its choice when its parent dies, but "parent" means the *thread* that started it, and
running Python between fork and exec is unsafe where there are threads. So all children are started by one thread that
lives as long as they may, and each begins as a few lines of Python that ask for the signal and then become the
program. Where the system has no such signal, children end with ``stop`` alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LARGEST_OLD_LOG = 16 * 1024 * 1024

# The parent may have died before the request for the signal: then its number is no longer our parent's.
_TIE_TO_PARENT = """
import ctypes, os, sys
parent, *command = sys.argv[1:]
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(parent):
    sys.exit("the parent is gone")
os.execv(command[0], command)
"""


class Child:
    """A running program; ended by its process id, never by name."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path, *, log_start: int) -> None:
        self.name = name
        self.log = log
        self._process = process
        self._log_start = log_start

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the program has not ended."""
        return self._process.poll() is None

    def ending(self) -> str:
        """How the program ended, in words."""
        status = self._process.poll()
        if status is None:
            return "is running"
        return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"exited with status {status}"

    def log_tail(self, lines: int = 20) -> str:
        """The last lines that this run of the program has written."""
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._log_start, size - 64 * 1024))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])

    def terminate(self) -> None:
        """Asks the program to end; one that was paused is woken to hear it."""
        self._process.send_signal(signal.SIGTERM)
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Ends the program at once and waits until it is gone."""
        self._process.kill()
        self._process.wait()

    def has_ended_by(self, deadline: float) -> bool:
        """Waits until ``deadline`` (of the monotonic clock); whether the program has ended."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def pause(self) -> None:
        """Stops the program where it is: connections stay open, and nothing is answered."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a paused program go on."""
        self._process.send_signal(signal.SIGCONT)


class Spawner:
    """Starts children that end when this process ends, however it ends, and whichever thread asked for them."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")
        self._children: list[Child] = []

    def spawn(
        self, name: str, command: Sequence[str], *, folder: Path, log: Path, environment: Mapping[str, str]
    ) -> Child:
        """Starts a program in ``folder``, in a session of its own so that a terminal's Ctrl-C passes it by."""
        if log.exists() and log.stat().st_size > LARGEST_OLD_LOG:
            log.unlink()
        with log.open("ab") as output:
            log_start = output.tell()

            def start() -> Child:
                process = subprocess.Popen(  # noqa: S603 - the caller's own program
                    [sys.executable, "-I", "-S", "-c", _TIE_TO_PARENT, str(os.getpid()), *command],
                    cwd=folder,
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                # Noted here and not by the caller, whom a signal may interrupt while it waits for the result.
                child = Child(name, process, log, log_start=log_start)
                self._children = [*(other for other in self._children if other.is_running), child]
                return child

            return self._thread.submit(start).result()

    def close(self) -> None:
        """Ends the starting thread and every child that is left."""
        self._thread.shutdown()
        for child in self._children:
            child.kill()
        self._children.clear()


def end_all(children: Sequence[Child], *, grace: float) -> None:
    """Asks all to end, waits ``grace`` seconds for them together, and kills those that are left."""
    deadline = time.monotonic() + grace
    if grace > 0:
        for child in children:
            child.terminate()
    for child in children:
        if not child.has_ended_by(deadline):
            child.kill()
