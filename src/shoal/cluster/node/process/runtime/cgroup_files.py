"""The files of control groups: how they are read, written, locked and removed."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import time
from collections.abc import Container, Iterable
from contextlib import suppress
from pathlib import Path

PATIENCE = (0.001, 0.002, 0.005, 0.01, 0.02)
"""Waits for a group to become empty: its last process was killed, but takes a moment to go."""


def members(folder: Path) -> list[int]:
    """The processes in a group that we can see; those of a foreign PID namespace are 0 in the file."""
    return [int(word) for word in text(folder / "cgroup.procs").split() if word != "0"]


def text(file: Path) -> str:
    """What a file holds; nothing where it cannot be read."""
    try:
        return file.read_text()
    except OSError:
        return ""


def words(file: Path) -> set[str]:
    """The words in a file."""
    return set(text(file).split())


def number(file: Path) -> int | None:
    """The number in a file, where there is one."""
    found = text(file).strip()
    return int(found) if found.isdigit() else None


def table(file: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    pairs = (line.split() for line in text(file).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def write(file: Path, value: str, *, allowed: Container[int | None] = ()) -> None:
    """Writes at once, as the kernel wants it, to a file that exists; errors that are allowed are no errors."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in allowed:
            raise OSError(error.errno, f"{error.strerror} (writing {value} to {file})") from None


def hold(folder: Path) -> int:
    """Makes a group, and gives a descriptor that holds it until the last process that has it ends.

    Who finds the group before it is held takes it for abandoned, and removes it: then it is made again. Raises OSError
    where it cannot be made, and where another holds it.
    """
    for wait in (*PATIENCE * 10, None):
        folder.mkdir(exist_ok=True)
        if (descriptor := _locked(folder)) is not None:
            return descriptor
        if wait is not None:
            time.sleep(wait)
    raise BlockingIOError(errno.EWOULDBLOCK, f"another process holds the control group {folder}")


def _locked(folder: Path) -> int | None:
    """A descriptor that holds a group; None where it cannot be had."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), folder.stat()):
            return descriptor
    except OSError:
        pass  # another has it, or has removed it
    os.close(descriptor)
    return None


def kill(folder: Path) -> None:
    """Ends every process in a group."""
    try:
        write(folder / "cgroup.kill", "1")
    except OSError:
        # Before Linux 5.14, and in v1. What is forked meanwhile is found in the next round.
        for _ in range(10):
            found = members(folder)
            for pid in found:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not found:
                return
            time.sleep(PATIENCE[0])


def is_removed(folder: Path, *, patience: Iterable[float] = ()) -> bool:
    """Removes a group, and tells whether it is gone."""
    for wait in (*patience, None):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            if wait is not None:
                time.sleep(wait)
        else:
            return True
    return False


def remove_abandoned(folder: Path) -> None:
    """Ends what is left in a group with its children and removes it, if nobody holds it."""
    descriptor = _locked(folder)
    if descriptor is None:
        return
    try:
        groups = [child for child in folder.iterdir() if child.is_dir()]
        for group in groups:
            kill(group)
        for group in [*groups, folder]:
            is_removed(group, patience=PATIENCE)
    finally:
        os.close(descriptor)
