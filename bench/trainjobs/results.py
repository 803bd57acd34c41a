"""Courses of TrainJobs as comparisons: embedded, on a real kube-apiserver, and by upstream on the same."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.figures.comparison import Budget, Comparison, Sample
from bench.starting.clusters import SHOAL, Cluster, shoal_up
from bench.trainjobs import upstream
from bench.trainjobs.course import NODES_OF_JOB, Course, Say, is_write, run
from bench.trainjobs.operators import Upstream, ours
from shoal.cluster.kubernetes import MissingBinaries, find_binaries

EMBEDDED, KUBE, UPSTREAM, SHIPPED = "embedded", "kube", "upstream", "shipped"
PARTS = (EMBEDDED, KUBE, UPSTREAM, SHIPPED)
PEERS = (UPSTREAM, SHIPPED)
SHOWN = {KUBE: "on kube-apiserver", UPSTREAM: "upstream", SHIPPED: "upstream, as shipped"}
NODES = 100
_ROOT = Path(__file__).resolve().parent.parent.parent
_LIMITS = {UPSTREAM: upstream.LIFTED, SHIPPED: upstream.SHIPPED}
_SERVERS = ("api", "kube-apiserver", "etcd")
_NO_SLOWER = Budget(at_most=1, shown="≤ 1")
_FEW = Budget(at_most=8, shown="≤ 8")
"""One for each of four objects, and two for the status of TrainJob and JobSet: that it runs, and how it ended."""

Runs = Mapping[str, list[Course]]
"""What was measured in each round, by the part."""
Read = Callable[[Course], float]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured."""

    train_jobs: int = 1_000
    rounds: int = 3
    parts: frozenset[str] = frozenset(PARTS)
    quick: bool = False
    profiles: Path | None = None


def measure(plan: Plan, say: Say) -> tuple[Runs, dict[str, str]]:
    """Each part in turn, in each round; gives what was found, and why each of the others was not run."""
    not_run = {part: "not asked for" for part in PARTS if part not in plan.parts}
    programs = _programs(plan, not_run, say)
    runs: dict[str, list[Course]] = {part: [] for part in PARTS if part not in not_run}
    with tempfile.TemporaryDirectory(prefix="shoal-bench-", ignore_cleanup_errors=True) as folder:
        for number in range(plan.rounds):
            for part, courses in runs.items():
                pods = plan.train_jobs * NODES_OF_JOB
                say(f"{part}, round {number + 1} of {plan.rounds}: {plan.train_jobs:,} TrainJobs, {pods:,} pods")
                courses.append(_course(part, plan, Path(folder) / f"{number}-{part}", programs, say))
    return runs, not_run


def _programs(plan: Plan, not_run: dict[str, str], say: Say) -> Path | None:
    """Where upstream's programs are; notes why a part cannot be run."""
    if plan.parts != {EMBEDDED}:
        try:
            find_binaries()
        except MissingBinaries as error:
            not_run |= dict.fromkeys((KUBE, *PEERS), str(error).splitlines()[0])
    if any(part not in not_run for part in PEERS):
        try:
            return upstream.binaries(say)
        except upstream.NotBuilt as error:
            not_run |= dict.fromkeys(PEERS, str(error))
    return None


def _course(part: str, plan: Plan, data_dir: Path, programs: Path | None, say: Say) -> Course:
    command, environment = [SHOAL], dict[str, str]()
    if plan.profiles is not None:
        command = [sys.executable, "-m", "bench.starting.profiled"]
        environment = {"SHOAL_BENCH_PROFILES": str(plan.profiles.absolute() / data_dir.name), "PYTHONPATH": str(_ROOT)}
    options = [f"--sim={NODES}x8:H100", "--no-local-node"]
    if part != EMBEDDED:
        # Everything but training: who looks after that is beside it.
        options += ["--engine=kube", "--only=controllers,scheduler,nodes"]
    with shoal_up(command, data_dir, *options, environment=environment) as cluster:
        folder = data_dir.with_suffix(".operators")
        folder.mkdir()
        with _operators(part, cluster, folder, programs, command, environment) as processes:
            whole = replace(cluster, processes={**cluster.processes, **processes})
            return run(whole, processes, plan.train_jobs, say)


def _operators(
    part: str,
    cluster: Cluster,
    folder: Path,
    programs: Path | None,
    command: Sequence[str],
    environment: Mapping[str, str],
) -> AbstractContextManager[Mapping[str, int]]:
    """Who looks after TrainJobs, and does nothing else; nobody where everything is one."""
    if part == EMBEDDED:
        return nullcontext({})
    if part == KUBE:
        return ours(command, cluster.kubeconfig, folder, environment=environment)
    assert programs is not None
    return Upstream(binaries=programs, limits=_LIMITS[part]).running(cluster.kubeconfig, folder)


def comparisons(runs: Runs, not_run: Mapping[str, str], plan: Plan) -> dict[str, list[Comparison]]:
    """Ours beside upstream on the same server, and embedded beside that."""
    sections: dict[str, list[Comparison]] = {}
    title = f"{plan.train_jobs:,} TrainJobs of {NODES_OF_JOB} nodes"
    if KUBE in runs:
        sections[f"{title}, on kube-apiserver"] = [
            *_beside(runs, not_run, plan, "all pods created", "s", lambda one: one.created, budget=_NO_SLOWER),
            *_beside(runs, not_run, plan, "all Complete", "s", lambda one: one.complete, budget=_NO_SLOWER),
            *_beside(runs, not_run, plan, "all accepted", "s", lambda one: one.posted),
        ]
        sections["What a TrainJob costs there"] = [
            _writes(runs[KUBE], plan),
            *_beside(runs, not_run, plan, "… the same", "", lambda one: one.writes),
            *_beside(runs, not_run, plan, "… and reads", "", lambda one: one.writes + one.reads),
            *_beside(runs, not_run, plan, "CPU, its controllers", "ms", lambda one: _cpu(one, one.operators)),
            *_beside(runs, not_run, plan, "CPU, servers", "ms", lambda one: _cpu(one, _SERVERS)),
            *_beside(runs, not_run, plan, "memory, controllers", "MB", lambda one: _memory(one, one.operators)),
        ]
    if EMBEDDED in runs:
        sections[f"{title}, embedded"] = [
            _embedded(runs, not_run, "all pods created", "s", lambda one: one.created),
            _embedded(runs, not_run, "all Complete", "s", lambda one: one.complete),
            _embedded(runs, not_run, "all accepted", "s", lambda one: one.posted),
            _writes(runs[EMBEDDED], plan),
            _embedded(runs, not_run, "… the same", "", lambda one: one.writes),
            _embedded(runs, not_run, "… and reads", "", lambda one: one.writes + one.reads),
            _embedded(runs, not_run, "CPU of a TrainJob", "ms", lambda one: _cpu(one, one.cpu_at_rest)),
            _embedded(runs, not_run, "memory", "MB", lambda one: _memory(one, one.memory)),
        ]
    return sections


def _embedded(runs: Runs, not_run: Mapping[str, str], what: str, unit: str, read: Read) -> Comparison:
    return _line(runs, not_run, KUBE, what, unit, read, of=EMBEDDED)


def _writes(courses: list[Course], plan: Plan) -> Comparison:
    """How often is written for a TrainJob, whoever else does it how often."""
    return Comparison(
        what="writes of a TrainJob",
        unit="",
        ours=_sample(courses, lambda one: one.writes),
        budget=None if plan.quick else _FEW,
    )


def _beside(
    runs: Runs, not_run: Mapping[str, str], plan: Plan, what: str, unit: str, read: Read, budget: Budget | None = None
) -> list[Comparison]:
    """Ours on kube-apiserver beside upstream without its limits, by which we are judged, and as it is shipped."""
    judged = None if plan.quick else budget
    lines = [_line(runs, not_run, UPSTREAM, what, unit, read, budget=judged)]
    return [*lines, _line(runs, not_run, SHIPPED, "… the same", unit, read)] if SHIPPED in runs else lines


def _line(
    runs: Runs,
    not_run: Mapping[str, str],
    peer: str,
    what: str,
    unit: str,
    read: Read,
    *,
    of: str = KUBE,
    budget: Budget | None = None,
) -> Comparison:
    theirs = runs.get(peer)
    return Comparison(
        what=what,
        unit=unit,
        ours=_sample(runs[of], read),
        peer_name=SHOWN[peer],
        peer=None if theirs is None else _sample(theirs, read),
        not_run=not_run.get(peer, ""),
        budget=budget,
    )


def notes(runs: Runs) -> list[str]:
    """When what was done, CPU seconds and memory of each process, and the requests of a TrainJob, in the last round."""
    said = []
    for part, courses in runs.items():
        last = courses[-1]
        moments = f"accepted {last.posted:.1f} s, created {last.created:.1f} s, Complete {last.complete:.1f} s"
        said.append(f"{part}, {last.train_jobs:,} TrainJobs: {moments}")
        each = ", ".join(f"{name} {value:.1f} s" for name, value in last.cpu.items() if value >= 0.05)
        said.append(f"{part}, CPU until all were Complete: {each}")
        held = ", ".join(f"{name} {value / 1e6:.0f} MB" for name, value in last.memory.items())
        said.append(f"{part}, memory: {held}")
        for shown, writes in (("writes", True), ("reads", False)):
            asked = [
                f"{what} {count / last.train_jobs:.2f}"
                for what, count in last.served.items()
                if is_write(what) == writes and count * 50 >= last.train_jobs
            ]
            said.append(f"{part}, {shown} of everyone for each TrainJob: {', '.join(asked)}")
    return said


def raw(runs: Runs) -> dict[str, Any]:
    """Everything that was measured."""
    return {part: [asdict(course) for course in courses] for part, courses in runs.items()}


def _sample(courses: list[Course], read: Read) -> Sample:
    return Sample.of([read(course) for course in courses])


def _cpu(course: Course, names: Iterable[str]) -> float:
    """Milliseconds of a TrainJob, until all is at rest."""
    return sum(course.cpu_at_rest.get(name, 0.0) for name in names) / course.train_jobs * 1_000


def _memory(course: Course, names: Iterable[str]) -> float:
    return sum(course.memory[name] for name in names) / 1e6
