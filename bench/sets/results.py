"""The lives of sets as comparisons: on the embedded server, on a real kube-apiserver, and as others have published."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.figures.comparison import Budget, Comparison, Sample
from bench.sets.life import PODS, Life, Phase, Say, live
from bench.starting.clusters import SHOAL, shoal_up
from shoal.cluster.kubernetes import MissingBinaries, find_binaries

EMBEDDED, KAI, KUBE = "embedded", "kai", "kube"
PARTS = (EMBEDDED, KAI, KUBE)
ON_KUBE, PUBLISHED = "on kube-apiserver", "Grove, published"
CREATED = Budget(at_most=5, shown="≤ 5 s")
READY = Budget(at_most=10, shown="≤ 10 s")
PUBLISHED_REPLICAS = 500
PUBLISHED_CREATED, PUBLISHED_READY = 22.2, 49.7
"""Medians of Grove's own test of that size, at a client's limit of 100 requests a second."""
NODES = 100
_SERVERS = ("api", "kube-apiserver", "etcd")

Runs = Mapping[str, list[Life]]
"""What was measured in each round, by the part."""
Read = Callable[[Life], float]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured."""

    replicas: int = PUBLISHED_REPLICAS
    rounds: int = 3
    parts: frozenset[str] = frozenset(PARTS)
    profiles: Path | None = None


def measure(plan: Plan, say: Say) -> tuple[Runs, str]:
    """Each part in turn, in each round; gives what was found, and why the real server was not run."""
    parts = [part for part in PARTS if part in plan.parts]
    not_run = "" if KUBE in parts else "not asked for"
    if KUBE in parts:
        try:
            find_binaries()
        except MissingBinaries as error:
            parts.remove(KUBE)
            not_run = str(error).splitlines()[0]
    runs: dict[str, list[Life]] = {part: [] for part in parts}
    with tempfile.TemporaryDirectory(prefix="shoal-bench-", ignore_cleanup_errors=True) as folder:
        for number in range(plan.rounds):
            for part in parts:
                say(f"{part}: {plan.replicas:,} replicas, {plan.replicas * PODS:,} pods")
                runs[part].append(_live(part, plan, Path(folder) / f"{number}-{part}", say))
    return runs, not_run


def _live(part: str, plan: Plan, data_dir: Path, say: Say) -> Life:
    command, environment = [SHOAL], {}
    if plan.profiles is not None:
        command = [sys.executable, "-m", "bench.starting.profiled"]
        environment = {"SHOAL_BENCH_PROFILES": str(plan.profiles.absolute() / data_dir.name)}
    options = [f"--sim={NODES}x8:H100", "--no-local-node"]
    if part == KUBE:
        options.append("--engine=kube")
    scheduler = "kai-scheduler" if part == KAI else "default-scheduler"
    with shoal_up(command, data_dir, *options, environment=environment) as cluster:
        return live(cluster, data_dir, plan.replicas, scheduler, say, whole=part != KAI)


def comparisons(runs: Runs, not_run: str) -> dict[str, list[Comparison]]:
    """One line for each budget, and what is worth knowing besides."""
    sections: dict[str, list[Comparison]] = {}
    if EMBEDDED in runs:
        sections |= _whole_life(runs, not_run)
    elif KUBE in runs:
        sections |= _alone(runs[KUBE], "on kube-apiserver")
    if KAI in runs:
        sections |= _with_kai(runs)
    return sections


def _whole_life(runs: Runs, not_run: str) -> dict[str, list[Comparison]]:
    ours, theirs = runs[EMBEDDED], runs.get(KUBE)
    replicas = ours[0].replicas

    def line(what: str, unit: str, read: Read) -> Comparison:
        return Comparison(
            what=what,
            unit=unit,
            ours=_sample(ours, read),
            peer_name=ON_KUBE,
            peer=None if theirs is None else _sample(theirs, read),
            not_run=not_run,
        )

    def judged(what: str, read: Read, budget: Budget, published: float) -> list[Comparison]:
        own = Comparison(what=what, unit="s", ours=_sample(ours, read), budget=budget)
        beside = Comparison(
            what="… the same",
            unit="s",
            ours=_sample(ours, read),
            peer_name=PUBLISHED,
            peer=Sample.of([published] * len(ours)),
            not_run="not run here",
        )
        return [own, *([beside] if replicas == PUBLISHED_REPLICAS else []), line("… the same", "s", read)]

    pods = replicas * PODS
    return {
        f"Made: {replicas:,} replicas, {pods:,} pods": [
            *judged("all created after", lambda life: life.made.created, CREATED, PUBLISHED_CREATED),
            *judged("all ready after", lambda life: life.made.ready, READY, PUBLISHED_READY),
            line("the set says so", "s", lambda life: life.made.told),
            line("memory", "MB", lambda life: sum(life.memory.values()) / 1e6),
        ],
        "What a pod costs until all is at rest": [
            line("requests of ours", "", lambda life: sum(life.made.sent.values()) / pods),
            line("CPU, servers", "ms", lambda life: _cpu(life.made, servers=True)),
            line("CPU, their clients", "ms", lambda life: _cpu(life.made, servers=False)),
        ],
        f"Twice as large: {pods:,} pods more": [
            line("all created after", "s", lambda life: _phase(life.grown).created),
            line("all ready after", "s", lambda life: _phase(life.grown).ready),
            line("requests of a pod", "", lambda life: sum(_phase(life.grown).sent.values()) / pods),
        ],
        f"Half as large, and deleted: {pods:,} pods less each time": [
            line("pods gone after", "s", lambda life: _phase(life.shrunk).pods_gone),
            line("requests of a pod", "", lambda life: sum(_phase(life.shrunk).sent.values()) / pods),
            line("deleted: pods gone", "s", lambda life: _phase(life.deleted).pods_gone),
            line("… nothing left", "s", lambda life: _phase(life.deleted).gone),
            line("requests of a pod", "", lambda life: sum(_phase(life.deleted).sent.values()) / pods),
        ],
    }


def _with_kai(runs: Runs) -> dict[str, list[Comparison]]:
    def line(what: str, unit: str, read: Read) -> Comparison:
        beside = runs.get(EMBEDDED)
        return Comparison(
            what=what,
            unit=unit,
            ours=_sample(runs[KAI], read),
            peer_name="default-scheduler",
            peer=None if beside is None else _sample(beside, read),
            not_run="" if beside is not None else "not asked for",
        )

    return {
        "Made for kai-scheduler": [
            line("all created after", "s", lambda life: life.made.created),
            line("all ready after", "s", lambda life: life.made.ready),
            line("requests of a pod", "", lambda life: sum(life.made.sent.values()) / life.made.pods),
        ]
    }


def _alone(lives: list[Life], where: str) -> dict[str, list[Comparison]]:
    def line(what: str, read: Read) -> Comparison:
        return Comparison(what=what, unit="s", ours=_sample(lives, read))

    return {
        f"{lives[0].replicas:,} replicas {where}": [
            line("all created after", lambda life: life.made.created),
            line("all ready after", lambda life: life.made.ready),
            line("twice as large", lambda life: _phase(life.grown).ready),
            line("half as large", lambda life: _phase(life.shrunk).pods_gone),
            line("deleted", lambda life: _phase(life.deleted).gone),
        ]
    }


def processes(runs: Runs) -> list[str]:
    """CPU seconds and memory of each process, and what was asked most of the server, in the last round."""
    said = []
    for part, lives in runs.items():
        made, memory = lives[-1].made, lives[-1].memory
        for what, seconds in (("until all were ready", made.cpu), ("until at rest", made.cpu_at_rest)):
            each = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items() if value >= 0.05)
            said.append(f"{part}, CPU {what}: {each}")
        said.append(f"{part}, memory: " + ", ".join(f"{name} {value / 1e6:.0f} MB" for name, value in memory.items()))
        most = list(made.served.items())[:20]
        said.append(f"{part}, requests: " + ", ".join(f"{what} {count:,}" for what, count in most))
    return said


def raw(runs: Runs) -> dict[str, Any]:
    """Everything that was measured."""
    return {part: [asdict(life) for life in lives] for part, lives in runs.items()}


def _sample(lives: list[Life], read: Read) -> Sample:
    return Sample.of([read(life) for life in lives])


def _phase(phase: Phase | None) -> Phase:
    assert phase is not None
    return phase


def _cpu(phase: Phase, *, servers: bool) -> float:
    """Milliseconds of a pod."""
    return sum(value for name, value in phase.cpu_at_rest.items() if (name in _SERVERS) == servers) / phase.pods * 1000
