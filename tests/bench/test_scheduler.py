"""bench/scheduler.py: what it measures is what it says, at sizes that take seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.decisions import kai, workloads
from bench.decisions.cycles import DecidedOtherwise, Took, measure
from bench.decisions.results import Found, Plan, comparisons, lines_of, notes
from bench.figures.comparison import Comparison

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = (
    workloads.waiting(2, 10),
    workloads.waiting(1, 10),
    workloads.settled(2, 8),
    workloads.mixed(4, 8),
    workloads.large_reclaim(4),
    workloads.vain_reclaim(10),
    workloads.many_reclaims(2),
    workloads.half_reclaim(2),
    workloads.gangs(4),
)


def run(*arguments: str) -> dict[str, Any]:
    """Runs the bench as somebody would, and gives its raw figures."""
    line = [sys.executable, "bench/scheduler.py", "--quick", "-o", "json", *arguments]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("workload", SMALL, ids=lambda workload: workload.name)
def test_every_workload_decides_what_it_is_for_in_every_round(workload: workloads.Workload) -> None:
    took = measure(workload, rounds=2, limit=60)
    assert len(took) == 2
    assert all(one.deciding > 0 for one in took)


def test_a_cycle_that_decides_something_else_is_not_measured() -> None:
    workload = replace(workloads.waiting(2, 10), binds=11)
    with pytest.raises(DecidedOtherwise, match="allocate 2/10"):
        measure(workload, rounds=1, limit=60)


def test_no_further_round_begins_once_the_limit_has_passed() -> None:
    assert len(measure(workloads.waiting(2, 10), rounds=5, limit=0)) == 1


def test_the_decisions_of_all_parts_are_measured() -> None:
    parts = ("small", "reclaim", "vain", "large", "idle")
    found = run(*(f"--only={part}" for part in parts))["decisions"]
    plan = Plan(quick=True, nodes=200)
    assert set(found["ours"]) == {line.name for part in parts for line in lines_of(part, plan)}
    assert all(one["deciding"] > 0 for took in found["ours"].values() for one in took)
    assert found["KAI left out"] == "not asked for"


@pytest.mark.slow
def test_pods_are_bound_end_to_end() -> None:
    found = run("--only=single", "--only=plain", "--only=gangs", "--nodes=2")["end to end"]
    for part, pods in (("single", 10), ("plain", 16), ("gangs", 16)):
        (wave,) = found[part]
        assert wave["pods"] == len(wave["latencies"]) == pods
        assert wave["bound"] > 0
        assert wave["served"]["CREATE pods/binding"] == pods


def test_kai_is_left_out_with_a_line_that_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(kai.SOURCE, raising=False)
    with pytest.raises(kai.NotRun, match="is no checkout of KAI"):
        kai.find(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(kai.NotRun, match="go is missing; give a checkout by --kai-source"):
        kai.find(None)


def test_a_checkout_of_kai_is_known_by_its_module_and_its_changelog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "go.mod").write_text(f"module {kai.MODULE}\n\ngo 1.26\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [v0.17.0] - 2026-08-03\n\n## [v0.16.0]\n")
    assert kai.find(tmp_path).release == "v0.17.0"
    monkeypatch.setenv(kai.SOURCE, str(tmp_path))
    assert kai.find(None).folder == tmp_path.resolve()


def test_the_module_of_the_peer_is_pinned() -> None:
    assert f"require {kai.MODULE} v0.17.0\n" in (ROOT / "bench/peers/kai/go.mod").read_text()


def test_what_kai_took_and_what_it_has_published_stand_beside_ours() -> None:
    plan = Plan(parts=frozenset({"large"}))
    lines = lines_of("large", plan)
    reclaim = next(line for line in lines if line.published)
    found = Found(
        took={line.name: [Took(2.0, 0.0, 0, 1.0), Took(4.0, 0.0, 0, 1.0)] for line in lines},
        kai={reclaim.benchmark: [kai.Run(30_000, 40_000)]},
        kai_release="v0.17.0",
    )
    ours, beside, published = _of(reclaim.name, comparisons(found, plan))
    assert (ours.verdict, ours.unit, ours.ours.median) == ("ok", "s", 3.0)
    assert beside.ratio is not None
    assert beside.ratio.median == pytest.approx(0.1)
    assert published.verdict == "not run"
    assert any("pull/1809" in line for line in notes(found, plan))


def _of(name: str, sections: dict[str, list[Comparison]]) -> list[Comparison]:
    """The lines of one workload: its own, and those that go on about it."""
    (lines,) = sections.values()
    start = next(place for place, line in enumerate(lines) if line.what == name)
    return lines[start : start + 3]
