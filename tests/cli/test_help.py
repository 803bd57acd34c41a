"""What a person sees first: the help, the version, and how fast they come."""

from __future__ import annotations

import re
import stat
import sys
from pathlib import Path

import pytest
import yaml
from rich.cells import cell_len

from shoal import __version__
from shoal.cli import app, crds, up, version
from tests.support.programs.command import SHOAL, environment, run_to_end, shoal

COMMANDS = {command.callback.__name__: command for command in app.app.registered_commands if command.callback}
GROUPS = {group.name: group for group in app.app.registered_groups if group.name}


@pytest.mark.parametrize(
    "arguments", [pytest.param([], id="shoal"), *(pytest.param([name], id=name) for name in (*COMMANDS, *GROUPS))]
)
def test_help_fits_80_columns_and_shows_examples(arguments: list[str]) -> None:
    asked = shoal(*arguments, "--help")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert max(cell_len(line) for line in asked.stdout.splitlines()) <= 80
    assert "Examples" in asked.stdout
    assert not re.search(r"--[a-z-]+…", asked.stdout), "the name of an option is cut off"
    assert shoal(*arguments, "-h").stdout == asked.stdout


def test_help_lists_every_command_in_its_panel() -> None:
    printed = shoal("--help").stdout
    panels = {one.rich_help_panel for one in COMMANDS.values()} | {one.rich_help_panel for one in GROUPS.values()}
    for panel in panels:
        assert f"─ {panel} ─" in printed
    listed = re.findall(r"^│ ([a-z]+) ", printed, re.MULTILINE)
    assert sorted(listed) == sorted([*COMMANDS, *GROUPS])


def test_shoal_alone_shows_its_help() -> None:
    alone = shoal()
    assert (alone.returncode, alone.stderr) == (0, "")
    assert alone.stdout.strip() == shoal("--help").stdout.strip()


EXAMPLES = {*app.EXAMPLES, *crds.EXAMPLES, *version.EXAMPLES} - {*up.EXAMPLES}
"""Those that end by themselves; test_up.py runs the others."""


@pytest.mark.parametrize("example", [pytest.param(line, id=line) for line in sorted(EXAMPLES)])
def test_an_example_works_as_it_is_written(example: str, tmp_path: Path) -> None:
    received = tmp_path / "received.yaml"
    programs = {
        "shoal": f'#!/bin/sh\nexec "{sys.executable}" -m shoal "$@"\n',
        "kubectl": f'#!/bin/sh\ncat > "{received}"\n',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(stat.S_IRWXU)
    env = environment()
    env["PATH"] = f"{tmp_path}:{env['PATH']}"
    done = run_to_end(["/bin/sh", "-c", f"set -e; {example}"], env=env)
    assert (done.returncode, done.stderr) == (0, "")
    if "kubectl" in example:
        assert all(yaml.load_all(received.read_text(), Loader=yaml.CSafeLoader))
    else:
        assert done.stdout.strip()


def test_the_version_is_one_line() -> None:
    asked = shoal("--version")
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, f"shoal {__version__}\n", "")


def test_the_installed_command_is_the_same() -> None:
    installed = Path(sys.executable).with_name("shoal")
    if not installed.exists():
        pytest.skip(f"shoal is not installed beside {sys.executable}: run make setup")
    assert run_to_end([str(installed), "--version"]).stdout == shoal("--version").stdout


@pytest.mark.parametrize("argument", [pytest.param("--version", id="version"), pytest.param("--help", id="help")])
def test_starting_loads_nothing_that_only_commands_need(argument: str) -> None:
    python, *module = SHOAL
    loaded = run_to_end([python, "-X", "importtime", *module, argument]).stderr
    names = {line.rsplit("|", 1)[1].strip() for line in loaded.splitlines() if line.startswith("import time:")}
    assert "shoal.cli.app" in names
    slow = {"aiohttp", "asyncio", "cryptography", "msgspec", "numpy", "pydantic", "yaml", "shoal.api", "shoal.kube"}
    assert names & slow == set()


def test_the_shell_is_offered_the_commands() -> None:
    env = environment(_SHOAL_COMPLETE="complete_bash", COMP_WORDS="shoal c", COMP_CWORD="1")
    assert shoal(env=env).stdout.split() == ["crds"]
