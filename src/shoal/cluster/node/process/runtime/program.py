"""The last steps of a process before it is the program that was asked for."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import termios
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from shoal.cluster.node.process.runtime.forks import close_others
from shoal.cluster.node.process.runtime.privileges import (
    bound_capabilities,
    forbid_new_privileges,
    keep_capabilities,
    set_limits,
    take_ids,
)
from shoal.cluster.node.process.runtime.protocol import Ids
from shoal.cluster.node.process.runtime.seccomp import refuse_calls
from shoal.cluster.node.process.runtime.syscalls import PR_SET_DUMPABLE, end_with_parent, prctl

START_ERROR = "StartError"
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SENTENCES = {
    errno.ENOENT: "no such file or directory",
    errno.EACCES: "permission denied",
    errno.EISDIR: "is a directory",
    errno.ENOTDIR: "not a directory",
    errno.ENOEXEC: "exec format error",
}


class CannotStart(Exception):
    """The program cannot be started; the message is for people."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What a process becomes."""

    argv: list[str]
    env: list[str]
    directory: str
    ids: Ids
    takes_ids: bool
    """False where there is but one id to have."""
    capabilities: list[str] | None
    """None where there are no rights to let go of."""
    may_gain_privileges: bool
    has_filter: bool = False
    """Whether system calls are refused that programs do not need; for those with rights to let go of."""
    ends_with_parent: bool = False
    other_directory: str = ""
    """Where the program is if ``directory`` is missing."""


def become(program: Program, *, stdio: Sequence[int], has_terminal: bool, kept: Iterable[int] = ()) -> None:
    """Executes the program; it comes back only by ``CannotStart``.

    ``kept`` are descriptors that are closed by the execution itself.
    """
    os.setsid()
    for descriptor in stdio:
        give(descriptor, program.ids)
    _take_stdio(stdio)
    if has_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    close_others(kept)
    os.umask(0o022)
    set_limits()
    is_there = _entered(program)
    try:
        if program.capabilities is not None:
            bound_capabilities(program.capabilities)
            if program.has_filter:
                refuse_calls(program.capabilities)
        if program.takes_ids:
            take_ids(program.ids)
            prctl(PR_SET_DUMPABLE, 0)  # whatever fs.suid_dumpable says: until it is the program
        if program.capabilities is not None:
            keep_capabilities(program.capabilities)
    except OSError as error:
        raise CannotStart(f"cannot run as user {program.ids.user}: {said(error)}") from error
    if not is_there:
        _enter(program.directory)
    if not program.may_gain_privileges:
        forbid_new_privileges()
    if program.ends_with_parent:
        end_with_parent()
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        # Some are ignored by this language, some by whoever started us: nohup, or a shell that does not wait.
        signal.signal(number, signal.SIG_DFL)
    _execute(program)


def said(error: OSError) -> str:
    """What went wrong, as container runtimes say it."""
    return _SENTENCES.get(error.errno or 0) or str(error.strerror or error).lower()


def give(descriptor: int, ids: Ids) -> None:
    """Makes a pipe or a terminal its user's, who can then open it again by name, as /dev/stdout does."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or os.isatty(descriptor):
        try:
            os.fchown(descriptor, ids.user, -1)
        except OSError:
            return  # there is but one user, who has it already


def candidates(name: str, env: Iterable[str]) -> Iterator[str]:
    """The paths at which a program is looked for."""
    if "/" in name:
        yield name
        return
    path = next((entry[5:] for entry in env if entry.startswith("PATH=")), USUAL_PATH)
    for folder in path.split(":"):
        yield f"{folder or '.'}/{name}"


def _take_stdio(stdio: Sequence[int]) -> None:
    # Above the first three, so that none is overwritten before it is used.
    lifted = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3) for descriptor in stdio]
    for number, descriptor in enumerate(lifted):
        os.dup2(descriptor, number)


def _entered(program: Program) -> bool:
    """Whether the directory could be entered; it may be one that only its user can."""
    try:
        _enter(program.directory)
    except CannotStart:
        if not program.other_directory:
            return False
        _enter(program.other_directory)
    return True


def _enter(directory: str) -> None:
    try:
        os.chdir(directory)
        Path.cwd()  # fails where a path led out of the root
    except OSError as error:
        raise CannotStart(f'chdir to cwd ("{directory}") failed: {said(error)}') from error


def _execute(program: Program) -> None:
    if not program.argv:
        raise CannotStart("no command specified")
    path = _found(program.argv[0], program.env)
    try:
        os.execve(path, program.argv, dict(entry.partition("=")[::2] for entry in program.env))  # noqa: S606
    except OSError as error:
        raise CannotStart(f'exec: "{path}": {said(error)}') from error
    except ValueError as error:
        raise CannotStart(f'exec: "{path}": {error}') from error


def _found(name: str, env: Iterable[str]) -> str:
    for path in candidates(name, env) if name else ():
        try:
            mode = Path(path).stat().st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, "is a directory")
            if not mode & 0o111:
                raise PermissionError(errno.EACCES, "permission denied")
        except OSError as error:
            if "/" in name:
                raise CannotStart(f'exec: "{name}": {said(error)}') from error
        else:
            return path
    raise CannotStart(f'exec: "{name}": executable file not found in $PATH')
