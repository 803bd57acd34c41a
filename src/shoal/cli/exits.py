"""How the command ends: which exit code each error means, and the one sentence it says on stderr.

Commands raise what they know and catch nothing for the sake of the exit code; everything ends here. Scripts rely on the
codes, people on the sentence; a traceback is for whoever asks with ``--debug`` or ``SHOAL_DEBUG=1``.
"""

from __future__ import annotations

import enum
import os
import sys
import traceback
from collections.abc import Sequence

import typer
import typer.main


class ExitCode(enum.IntEnum):
    """The promise to scripts."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CANCELLED = 3
    REFUSED = 4
    SYSTEM = 5


_CODES = {
    "asyncio.exceptions.CancelledError": ExitCode.CANCELLED,
    "shoal.cluster.apiserver.storage.errors.StorageFailed": ExitCode.SYSTEM,
    "shoal.kube.errors.ApiError": ExitCode.REFUSED,
    "shoal.kube.errors.ConnectionFault": ExitCode.SYSTEM,
}
"""Errors of modules that not every command loads, by name: one that was never loaded raised nothing."""


class CommandError(Exception):
    """A command could not do its work; the message is all that a person needs to know."""

    def __init__(self, message: str, *, code: int = ExitCode.FAILED) -> None:
        self.code = ExitCode(code)
        super().__init__(message)


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Runs a command line to its end; whatever happens becomes an exit code."""
    if "_SHOAL_COMPLETE" in os.environ:
        app(arguments, prog_name="shoal")  # answers the shell's question, and exits
    wants_traceback = os.environ.get("SHOAL_DEBUG", "") not in ("", "0")
    code: int = ExitCode.OK
    _open_missing_streams()
    try:
        command = typer.main.get_command(app)
        with command.make_context("shoal", list(arguments)) as context:
            wants_traceback = wants_traceback or bool(context.params.get("debug"))
            command.invoke(context)
        sys.stdout.flush()
    except BaseException as error:  # every error ends here
        code = _ended(error, wants_traceback=wants_traceback)
    _abandon_output_that_cannot_be_written()
    return code


def cause_of(error: BaseException) -> BaseException:
    """What is behind an error: where a group of tasks failed, the first failure."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def is_for_people(error: BaseException) -> bool:
    """Whether an error's sentence says what is wrong; of others only a traceback does, for they are defects."""
    return isinstance(error, OSError) or _is_ours(error)


def code_of(error: BaseException) -> ExitCode:
    """The exit code that an error means."""
    match error:
        case KeyboardInterrupt() | typer.Abort():
            return ExitCode.CANCELLED
        case CommandError():
            return error.code
        case OSError():
            return ExitCode.SYSTEM
        case typer.TyperException(exit_code=ExitCode.USAGE):
            return ExitCode.USAGE
        case _:
            return next((code for name, code in _CODES.items() if _is_a(error, name)), ExitCode.FAILED)


def sentence_of(error: BaseException) -> str:
    """What to tell a person: one line, whatever the error holds."""
    match error:
        case typer.TyperException():
            said = _usage(error)
        case OSError(strerror=str(what), filename=None):
            said = what
        case OSError(strerror=str(what), filename=where):
            said = f"{what}: {where}"
        case OSError() | CommandError() | SystemExit():
            said = str(error)
        case _ if code_of(error) is ExitCode.CANCELLED:
            said = "cancelled"
        case _ if _is_ours(error):
            said = str(error)
        case _:
            said = f"{type(error).__name__}: {error} (this is a defect of Shoal: --debug shows where)"
    return " ".join(said.split()) or type(error).__name__


def _ended(error: BaseException, *, wants_traceback: bool) -> int:
    error = cause_of(error)
    if isinstance(error, typer.Exit):
        return error.exit_code
    if _reader_went_away(error):
        return ExitCode.OK
    if isinstance(error, SystemExit) and not isinstance(error.code, str):
        return error.code or ExitCode.OK
    try:
        if wants_traceback:
            traceback.print_exception(error)
        sys.stderr.write(f"shoal: {sentence_of(error)}\n")
    except OSError:
        pass  # nobody reads stderr: the exit code must do
    return code_of(error)


def _reader_went_away(error: BaseException) -> bool:
    """Whether the reader of our output closed it, as ``head`` does: it has what it wanted, and nothing failed.

    The connection to an API server never ends in BrokenPipeError: its transport raises ConnectionFault. Rich, which
    prints the help, makes a SystemExit of it.
    """
    cause = error.__context__ if isinstance(error, SystemExit) else error
    return isinstance(cause, BrokenPipeError)


def _open_missing_streams() -> None:
    """Who closed our output (``>&-``) wants none: it goes nowhere, instead of failing each writer in its own way."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)  # stays open until the process ends
            setattr(sys, name, os.fdopen(nowhere, "w", closefd=False))


def _abandon_output_that_cannot_be_written() -> None:
    """Keeps the interpreter from writing again, and complaining, what could not be written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _is_a(error: BaseException, name: str) -> bool:
    return any(f"{ancestor.__module__}.{ancestor.__name__}" == name for ancestor in type(error).__mro__)


def _is_ours(error: BaseException) -> bool:
    """Whether somebody here raised it on purpose: then its message is meant to be read."""
    return type(error).__module__.split(".")[0] == "shoal"


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "shoal"
    said = error.format_message().replace("Value error, ", "").strip().rstrip(".")
    return f"{said} (see {path} --help)"
