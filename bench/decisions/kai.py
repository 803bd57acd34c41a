"""KAI's own benchmarks of its scheduler, built from its source and run one by one.

The source is a checkout that is given (``--kai-source``, or the variable below), or the module that peers/kai/go.mod
names, where Go can fetch it. Either way it is built with KAI's own go.mod and go.sum.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

MODULE = "github.com/kai-scheduler/KAI-scheduler"
SOURCE = "SHOAL_BENCH_KAI_SOURCE"
"""The variable that names a checkout."""
SIZES = {"Small": (10, 50), "Medium": (50, 200), "Large": (100, 500)}
"""Nodes and jobs of the sizes in the names of its benchmarks."""
_PINNED = Path(__file__).resolve().parent.parent / "peers" / "kai" / "go.mod"
_ACTIONS = "pkg/scheduler/actions"
_PACKAGES = {
    "ReclaimUnschedulableDistributedJob": f"{_ACTIONS}/reclaim",
    "ReclaimLargeJobs": f"{_ACTIONS}/integration_tests/reclaim",
    "ReclaimManySingleGPUJobsFullCycle": f"{_ACTIONS}/integration_tests/reclaim",
}
"""Where a benchmark is, by the beginning of its name; the others are with the actions."""
_LINE = re.compile(r"([\d.]+) ns/op")
_RELEASE = re.compile(r"^## \[?(v[\d.]+)", re.MULTILINE)
_BUILT_WITHIN = 1_800.0


class NotRun(Exception):
    """The peer could not be run."""


@dataclass(frozen=True, slots=True)
class Run:
    """One iteration of a benchmark."""

    milliseconds: float
    cpu: float
    """CPU milliseconds of its process, the start and garbage collection on other cores included."""


@dataclass(frozen=True, slots=True)
class Source:
    """KAI's source."""

    folder: Path

    @property
    def release(self) -> str:
        """The last one that its changelog has."""
        changelog = self.folder / "CHANGELOG.md"
        found = _RELEASE.search(changelog.read_text()) if changelog.exists() else None
        return found[1] if found is not None else "of an unknown release"


def find(given: Path | None) -> Source:
    """The source that is given, or the module of peers/kai; raises NotRun, which says what was missing."""
    named = os.environ.get(SOURCE)
    folder = given or (Path(named) if named else None)
    if folder is None:
        return Source(_fetched())
    folder = folder.expanduser().resolve()
    declared = folder / "go.mod"
    if not declared.exists() or f"module {MODULE}\n" not in declared.read_text():
        raise NotRun(f"{folder} is no checkout of KAI: there is no go.mod of {MODULE}")
    return Source(folder)


def measure(
    source: Source, benchmarks: Sequence[str], *, rounds: int, limit: float, say: Callable[[str], None]
) -> dict[str, list[Run]]:
    """Runs each of these benchmarks; one that takes longer than the limit is left out, and not repeated beyond it."""
    found: dict[str, list[Run]] = {}
    with tempfile.TemporaryDirectory(prefix="shoal-bench-kai-") as built:
        programs: dict[str, Path] = {}
        for name in benchmarks:
            package = next((at for start, at in _PACKAGES.items() if name.startswith(start)), _ACTIONS)
            if package not in programs:
                say(f"KAI {source.release}: building the tests of {package}")
                programs[package] = Path(built) / f"{len(programs)}.test"
                command = ["go", "test", "-c", "-o", str(programs[package]), f"./{package}"]
                _run(command, source.folder, _BUILT_WITHIN)
            say(f"KAI: {name}")
            runs: list[Run] = []
            spent = 0.0
            while len(runs) < rounds and spent + (runs[-1].milliseconds / 1_000 if runs else 0) < limit:
                try:
                    runs.append(_once(programs[package], name, source.folder / package, limit))
                except subprocess.TimeoutExpired:
                    say(f"KAI: {name} took longer than {limit:.0f} s")
                    break
                spent += runs[-1].milliseconds / 1_000
            found[name] = runs
    return found


def _once(program: Path, name: str, folder: Path, limit: float) -> Run:
    command = [str(program), "-test.run=^$", f"-test.bench=^Benchmark{name}$", "-test.benchtime=1x"]
    before = _children_cpu()
    said = _run([*command, f"-test.timeout={limit + 60:.0f}s"], folder, limit + 30)
    line = _LINE.search(said)
    if line is None:
        raise NotRun(f"{name} is not among its benchmarks: another release?")
    return Run(float(line[1]) / 1e6, (_children_cpu() - before) * 1_000)


def _fetched() -> Path:
    """The module that go.mod pins, as Go keeps it; asked for from outside, so that nothing here is written."""
    wanted = re.search(rf"{re.escape(MODULE)} (\S+)", _PINNED.read_text())
    assert wanted is not None
    with tempfile.TemporaryDirectory() as outside:
        try:
            said = _run(["go", "mod", "download", "-json", f"{MODULE}@{wanted[1]}"], Path(outside), _BUILT_WITHIN)
        except NotRun as error:
            raise NotRun(f"{error}; give a checkout by --kai-source") from error
    return Path(json.loads(said)["Dir"])


def _run(command: Sequence[str], folder: Path, within: float) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=within)
    except FileNotFoundError as error:
        raise NotRun(f"{error.filename} is missing") from error
    except subprocess.CalledProcessError as error:
        raise NotRun(_why(error)) from error
    return done.stdout


def _why(error: subprocess.CalledProcessError) -> str:
    """Go's own word, in one line."""
    try:
        said: str = json.loads(error.stdout)["Error"]
    except (ValueError, KeyError, TypeError):
        said = error.stderr or error.stdout
    return next(iter(said.strip().splitlines()), f"{error.cmd[0]} exited with {error.returncode}")


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
