"""What was decided and how long it took, as comparisons with budgets, with KAI and with what KAI has published."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.decisions import kai, standing, workloads
from bench.decisions.cycles import Took, measure
from bench.decisions.published import CYCLE, RECLAIM, Published
from bench.decisions.workloads import Workload
from bench.figures.comparison import Budget, Comparison, Sample

Say = Callable[[str], None]
PARTS = ("small", "reclaim", "vain", "large", "idle")
_KAI = "KAI, go test"
_TITLES = {
    "small": "KAI's own sizes: nodes / jobs of one GPU",
    "reclaim": "Another queue has all nodes, GPU by GPU: a gang takes half of them, or single jobs take all",
    "vain": "A gang of ten nodes that no eviction helps",
    "large": "Large: nodes / jobs or pods / waiting",
    "idle": "A whole cycle, from what changed to what is published",
}
_IN_SECONDS = 10.0
"""From so many seconds on a line is told in seconds."""
_OURS_WITHIN = 60.0
"""Seconds after which a workload is not measured once more."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One workload, what it may take, and what stands beside it."""

    name: str
    workload: Workload | None = None
    """None for those of a cluster that stands."""
    at_most: float | None = None
    """Milliseconds."""
    benchmark: str = ""
    """KAI's own of the same shape."""
    published: Published | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured."""

    parts: frozenset[str] = frozenset(PARTS)
    rounds: int = 3
    quick: bool = False
    nodes: int = 4_000
    """Of the cluster that stands."""
    with_kai: bool = True
    kai_source: Path | None = None
    kai_limit: float = 600.0
    """Seconds that one of its benchmarks may take."""


@dataclass
class Found:
    """By workload, what each round took; by benchmark, what KAI took."""

    took: dict[str, list[Took]] = field(default_factory=dict)
    kai: dict[str, list[kai.Run]] = field(default_factory=dict)
    kai_release: str = ""
    left_out: str = ""
    """Why KAI itself was not run."""


def lines_of(part: str, plan: Plan) -> list[Line]:
    """What belongs to a part; quick: the same, as small as it gets."""
    if part == "small":
        sizes = list(kai.SIZES.items())[: 1 if plan.quick else None]
        return [
            *(_line(workloads.waiting(*of), f"AllocateAction_{size}Cluster") for size, of in sizes),
            *(_line(workloads.mixed(*of), f"FullSchedulingCycle_{size}Cluster") for size, of in sizes),
            *(_line(workloads.settled(*of), f"ReclaimAction_{size}Cluster") for size, of in sizes if size != "Large"),
        ]
    nodes = (10,) if plan.quick else (10, 50, 100, 200, 500, 1_000)
    if part == "reclaim":
        return [
            *(_line(workloads.large_reclaim(count), f"ReclaimLargeJobs_{count}Node") for count in nodes),
            *(_line(workloads.many_reclaims(count), _many(count)) for count in nodes if count < 500),
        ]
    if part == "vain":
        return [
            _line(workloads.vain_reclaim(count), f"ReclaimUnschedulableDistributedJob_{count}Node") for count in nodes
        ]
    if part == "large":
        return _large(quick=plan.quick)
    return [
        Line(name=standing.idle(plan.nodes), at_most=50),
        Line(name=standing.IN_VAIN),
        Line(name=standing.PLACED, published=CYCLE),
    ]


def _large(*, quick: bool) -> list[Line]:
    nodes = 50 if quick else 500
    return [
        _line(workloads.waiting(nodes, 8 * nodes, queues=10), at_most=1_000),
        _line(workloads.gangs(20 * nodes), at_most=10_000),
        _line(workloads.many_reclaims(nodes), _many(nodes), at_most=10_000, published=RECLAIM),
        _line(workloads.half_reclaim(nodes), at_most=10_000),
    ]


def _many(nodes: int) -> str:
    return f"ReclaimManySingleGPUJobsFullCycle_{nodes}Node"


def _line(
    workload: Workload, benchmark: str = "", *, at_most: float | None = None, published: Published | None = None
) -> Line:
    return Line(name=workload.name, workload=workload, benchmark=benchmark, at_most=at_most, published=published)


def run(plan: Plan, say: Say) -> Found:
    """Measures all parts of a plan, and KAI where it is there."""
    found = Found()
    parts = [part for part in PARTS if part in plan.parts]
    for part in parts:
        for line in lines_of(part, plan):
            if line.workload is not None:
                say(line.name)
                found.took[line.name] = measure(line.workload, plan.rounds, _OURS_WITHIN)
        if part == "idle":
            found.took |= standing.measure(plan.nodes, plan.rounds, say)
    benchmarks = [line.benchmark for part in parts for line in lines_of(part, plan) if line.benchmark]
    if not plan.with_kai:
        found.left_out = "not asked for"
    elif benchmarks:
        _run_kai(plan, benchmarks, found, say)
    return found


def _run_kai(plan: Plan, benchmarks: list[str], found: Found, say: Say) -> None:
    try:
        source = kai.find(plan.kai_source)
        found.kai_release = source.release
        found.kai = kai.measure(source, benchmarks, rounds=plan.rounds, limit=plan.kai_limit, say=say)
    except kai.NotRun as error:
        found.left_out = str(error)
        say(f"KAI itself is left out: {error}")


def comparisons(found: Found, plan: Plan) -> dict[str, list[Comparison]]:
    """One table for each part."""
    return {
        _TITLES[part]: [
            one for line in lines_of(part, plan) for one in _compared(line, found, is_judged=not plan.quick)
        ]
        for part in PARTS
        if part in plan.parts
    }


def _compared(line: Line, found: Found, *, is_judged: bool) -> Iterator[Comparison]:
    took, runs = found.took[line.name], found.kai.get(line.benchmark, [])
    published = line.published if is_judged else None
    longest = max([*(one.deciding for one in took), *(one.milliseconds / 1_000 for one in runs)])
    is_long = published is not None or longest >= _IN_SECONDS or (line.at_most or 0) >= 1_000
    unit, by = ("s", 1.0) if is_long else ("ms", 1_000.0)
    ours = Sample.of([one.deciding * by for one in took])

    def beside(name: str, seconds: float | None, not_run: str = "") -> Comparison:
        peer = None if seconds is None else Sample.of([seconds * by] * len(took))
        what = "… the same" if is_told else line.name
        return Comparison(what=what, unit=unit, ours=ours, peer_name=name, peer=peer, not_run=not_run)

    is_told = line.at_most is not None or not line.benchmark
    if is_told:
        budget = None
        if line.at_most is not None and is_judged:
            budget = Budget(at_most=line.at_most / 1_000 * by, shown=f"≤ {line.at_most / 1_000 * by:,.0f} {unit}")
        yield Comparison(what=line.name, unit=unit, ours=ours, budget=budget)
    if line.benchmark and runs:
        yield beside(_KAI, statistics.median(one.milliseconds for one in runs) / 1_000)
    elif line.benchmark:
        yield beside(_KAI, None, "left out" if found.left_out else "took too long")
    if published is not None:
        yield beside(published.shown, published.figure / 1_000, "not run here")


def notes(found: Found, plan: Plan) -> list[str]:
    """What is not in the tables: CPU time, putting the model back, simulations, and where others' figures are from."""
    back = max((one.putting_back for took in found.took.values() for one in took), default=0.0)
    cpu = ", ".join(f"{name} {_least(took):,.0f}" for name, took in found.took.items())
    effort = ", ".join(f"{name} {took[0].simulations:,}" for name, took in found.took.items() if took[0].simulations)
    lines = [
        f"CPU of ours, the least of the rounds, in ms: {cpu}",
        f"simulations: {effort or 'none'}",
        f"putting the model back: {back * 1_000:,.0f} ms at most, not in the figures",
    ]
    if found.kai:
        theirs = ", ".join(f"{name} {min(one.cpu for one in runs):,.0f}" for name, runs in found.kai.items() if runs)
        lines.append(f"CPU of KAI {found.kai_release}, its process's start included, in ms: {theirs}")
        lines.append("KAI's benchmarks make a session anew each time, from mocks: that is in its figures")
    if found.left_out:
        lines.append(f"KAI itself was left out: {found.left_out}")
    published = [line.published for part in PARTS if part in plan.parts for line in lines_of(part, plan)]
    return [*lines, *(f"KAI, published: {one.where}" for one in published if one is not None)]


def _least(took: list[Took]) -> float:
    return min(one.cpu for one in took) * 1_000


def raw(found: Found) -> Mapping[str, Any]:
    """Everything that was measured, in seconds; KAI's in milliseconds."""
    return {
        "ours": {name: [asdict(one) for one in took] for name, took in found.took.items()},
        "KAI": {name: [asdict(one) for one in runs] for name, runs in found.kai.items()},
        "KAI's release": found.kai_release,
        "KAI left out": found.left_out,
    }
