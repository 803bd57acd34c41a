"""How the command ends, seen from outside: exit codes, one sentence on stderr, and nothing more unless asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.command import SHOAL, environment, run_to_end, shoal

PROGRAM = """
import sys, signal, asyncio, typer
from shoal.cli.app import app
from shoal.cli.exits import CommandError, run

@app.command()
def attempt() -> None:
    {body}

sys.exit(run(app, sys.argv[1:]))
"""
KUBE = "from shoal.kube import errors; raise "
MISSING = "this is a defect of Shoal: --debug shows where"


def a_command_that(body: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM.format(body=body)]


@pytest.mark.parametrize(
    ("body", "code", "sentence"),
    [
        pytest.param("pass", 0, "", id="does its work"),
        pytest.param("raise CommandError('the queue is full')", 1, "the queue is full", id="fails"),
        pytest.param("raise ValueError('odd')", 1, f"ValueError: odd ({MISSING})", id="has a defect"),
        pytest.param("raise ValueError", 1, f"ValueError: ({MISSING})", id="has a defect without words"),
        pytest.param("sys.exit('no such job')", 1, "no such job", id="exits with words"),
        pytest.param("raise typer.BadParameter('x')", 2, "Invalid value: x (see shoal attempt --help)", id="usage"),
        pytest.param("raise KeyboardInterrupt", 3, "cancelled", id="is interrupted"),
        pytest.param("raise typer.Abort", 3, "cancelled", id="is answered no"),
        pytest.param("raise asyncio.CancelledError", 3, "cancelled", id="is cancelled"),
        pytest.param(
            KUBE + 'errors.error_from_response(403, b\'{"message":"not yours","reason":"Forbidden"}\')',
            4,
            "not yours (403 Forbidden, )",
            id="is forbidden",
        ),
        pytest.param(KUBE + "errors.ConnectionFault('no route')", 5, "no route", id="finds no server"),
        pytest.param("open('/nowhere/a')", 5, "No such file or directory: /nowhere/a", id="finds no file"),
        pytest.param("raise OSError('odd')", 5, "odd", id="meets an error of the system without a number"),
        pytest.param("raise CommandError('two\\n  lines')", 1, "two lines", id="fails in two lines"),
        pytest.param(
            "raise ExceptionGroup('tasks', [ExceptionGroup('inner', [CommandError('first'), ValueError('second')])])",
            1,
            "first",
            id="fails in a group of tasks",
        ),
        pytest.param("raise typer.Exit(4)", 4, "", id="chooses its code"),
        pytest.param("sys.exit(5)", 5, "", id="exits by itself"),
        pytest.param("sys.exit()", 0, "", id="exits early"),
    ],
)
def test_each_end_has_its_code_and_its_sentence(body: str, code: int, sentence: str) -> None:
    done = run_to_end([*a_command_that(body), "attempt"])
    assert done.stderr == (f"shoal: {sentence}\n" if sentence else "")
    assert (done.returncode, done.stdout) == (code, "")


def test_interrupting_a_running_command_cancels_it() -> None:
    # Short sleeps, not signal.pause(): a signal that arrives just before that is never noticed.
    waits = "import time; print('waiting', flush=True); [time.sleep(0.05) for _ in iter(int, 1)]"
    command = [*a_command_that(waits), "attempt"]
    with subprocess.Popen(
        command,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background of a shell hands the signal on as ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    ) as running:
        assert running.stdout
        assert running.stdout.readline() == "waiting\n"
        running.send_signal(signal.SIGINT)
        _, stderr = running.communicate(timeout=30)
    assert (running.returncode, stderr) == (3, "shoal: cancelled\n")


@pytest.mark.parametrize(
    ("options", "env", "traced"),
    [
        pytest.param([], {}, False, id="by default"),
        pytest.param(["--debug"], {}, True, id="--debug"),
        pytest.param([], {"SHOAL_DEBUG": "1"}, True, id="SHOAL_DEBUG=1"),
        pytest.param([], {"SHOAL_DEBUG": "0"}, False, id="SHOAL_DEBUG=0"),
        pytest.param([], {"SHOAL_DEBUG": ""}, False, id="SHOAL_DEBUG empty"),
    ],
)
def test_a_traceback_is_shown_to_those_who_ask(options: list[str], env: dict[str, str], traced: bool) -> None:
    done = run_to_end([*a_command_that("raise CommandError('why')"), *options, "attempt"], env=environment(**env))
    assert ("Traceback" in done.stderr) is traced
    assert done.stderr.endswith("shoal: why\n")
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["crd"], "No such command 'crd'. Did you mean 'crds'? (see shoal --help)", id="command"),
        pytest.param(["--colour"], "No such option: --colour (see shoal --help)", id="option"),
        pytest.param(["crds", "--colour"], "No such option: --colour (see shoal crds --help)", id="option of crds"),
        pytest.param(
            ["crds", "extra"], "Got unexpected extra argument(s) (extra) (see shoal crds --help)", id="argument"
        ),
        pytest.param(["crds", "-o"], "Option '-o' requires an argument (see shoal --help)", id="no value"),
    ],
)
def test_wrong_usage_is_told_in_one_line(arguments: list[str], said: str) -> None:
    done = shoal(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"shoal: {said}\n")


PRINTING = pytest.mark.parametrize(
    "arguments",
    [pytest.param(line.split(), id=line) for line in ("crds", "crds -o json", "version", "--help", "--version")],
)


@PRINTING
def test_a_reader_that_went_away_is_no_error(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        done = subprocess.run(
            [*SHOAL, *arguments], env=environment(), stdout=closed, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")


@PRINTING
def test_a_full_disk_is_an_error_of_the_system(arguments: list[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*SHOAL, *arguments], env=environment(), stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (5, b"shoal: No space left on device\n")


@PRINTING
def test_closed_output_is_no_error(arguments: list[str]) -> None:
    done = run_to_end(["/bin/sh", "-c", '"$@" >&-', "sh", *SHOAL, *arguments])
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_that_nobody_reads_keeps_its_code() -> None:
    done = run_to_end(["/bin/sh", "-c", '"$@" 2>&-', "sh", *SHOAL, "crds", "--group", "x"])
    assert done.returncode == 2
