"""Runs a suite of tests: ``python -m tests.support.suites SUITE [pytest's arguments]``.

Each suite gives pytest the files that can hold its tests, and no others, since reading all of them takes long. With
SHOAL_SKIP_PASSED=1 those are left out whose inputs are what they were when they passed on this machine, and a line says
so. Arguments of pytest's run a suite whole and leave no record.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.suites.inputs import PLUGINS, Tree, changed
from tests.support.suites.passes import Passes
from tests.support.suites.recording import Recorder

ROOT = Path(__file__).parents[3]
COMMAND = "src/shoal/__main__.py"
CORES = os.cpu_count() or 1


@dataclass(frozen=True)
class Suite:
    """Tests that run together."""

    marks: str
    """Which tests, in pytest's words."""
    can_hold: Callable[[Tree, str], bool]
    """Whether a file may have such tests."""
    more_workers: int | None = 1
    """So many more processes than cores, since tests wait for programs part of the time; None for one alone."""


def _any(_tree: Tree, _file: str) -> bool:
    return True


def _has_marks(*marks: str) -> Callable[[Tree, str], bool]:
    """Files that mention one of these marks, themselves or in a module of tests that they use."""

    def has(tree: Tree, file: str) -> bool:
        beside = [
            one for one in tree.closure(file) if one.startswith("tests/") and not one.startswith("tests/support/")
        ]
        return any(tree.facts(one).marks & set(marks) for one in (file, *beside))

    return has


def _needs_kube(tree: Tree, file: str) -> bool:
    return f"{PLUGINS}/real.py" in tree.closure(file) or _has_marks("kube", "slow")(tree, file)


SUITES = {
    "test": Suite("not slow and not kube and not training", _any),
    "kube": Suite("(kube or slow) and not alone and not training", _needs_kube, more_workers=2),
    "alone": Suite("alone", _has_marks("alone"), more_workers=None),
    "training": Suite("training", _has_marks("training")),
}


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Runs the suite that the first argument names, and gives pytest's exit code."""
    if not arguments or arguments[0] not in SUITES:
        raise SystemExit(f"usage: python -m tests.support.suites {{{','.join(SUITES)}}} [pytest's arguments]")
    os.chdir(root)
    return _run(arguments[0], arguments[1:], root)


def _run(name: str, arguments: Sequence[str], root: Path) -> int:
    suite, passes = SUITES[name], Passes(name)
    options = ["-m", suite.marks]
    if suite.more_workers is not None:
        options += ["--numprocesses", str(CORES + suite.more_workers), "--dist", "loadfile"]
    if arguments:
        return pytest.main([*options, *arguments])
    tree = Tree(root)
    files = [file for file in tree.test_files() if suite.can_hold(tree, file)]
    due = changed(tree, files, passes.read()) if os.environ.get("SHOAL_SKIP_PASSED") == "1" else files
    if len(due) < len(files):
        print(_skipped(name, set(files) - set(due), len(files)), flush=True)
    if not due:
        return 0
    due.sort(key=lambda file: COMMAND not in tree.closure(file))  # those take longest: none may be left for the end
    recorder = Recorder(passes, {file: tree.digest(file) for file in due})
    tree.remember()
    return pytest.main([*options, *due], plugins=[recorder])


def _skipped(name: str, files: set[str], of: int) -> str:
    places = Counter("/".join(file.split("/")[:2]) for file in files)
    listed = ", ".join(f"{place} ({count})" for place, count in sorted(places.items()))
    return f"{name}: {len(files)} of {of} test files skipped, unchanged since they passed on this machine: {listed}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
