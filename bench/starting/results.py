"""The runs as comparisons: ``shoal up`` against the real cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.figures.comparison import Budget, Comparison, Sample
from bench.serving.contestants import rest
from bench.starting.clusters import Start, embedded, real, real_parts
from bench.starting.filling import CONNECTIONS, Answers, Fill, Say, Size, Wave, fill
from shoal.cluster.kubernetes import MissingBinaries

OURS, PEER = "ours", "Kubernetes + kwok"
API_READY = Budget(at_most=1, shown="≤ 1 s")
ALL_READY = Budget(at_most=3, shown="≤ 3 s")
AT_REST = Budget(at_most=300, shown="≤ 300 MB")
AS_FAST = Budget(at_least=1, shown="≥ 1")
BESIDE = Budget(at_most=50, shown="≤ 50 ms")
SERVERS = ("api", "kube-apiserver", "etcd")
"""The processes that serve the API, on both sides; the others are its clients."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured."""

    starts: int = 5
    ours: Size = Size(nodes=10_000, pods=100_000)
    peer: Size = Size(nodes=10_000, pods=100_000)
    restart: Size = Size(nodes=1_000, pods=10_000)
    bare: bool = False
    parts: frozenset[str] = frozenset({"start", "restart", "fill"})
    profiles: Path | None = None


@dataclass
class Runs:
    """What was measured of one cluster."""

    api_ready: list[float] = field(default_factory=list)
    all_ready: list[float] = field(default_factory=list)
    memory: list[dict[str, int]] = field(default_factory=list)
    """With no workload."""
    again: tuple[float, float] | None = None
    """A second start, on data: until the API was ready, and all of it."""
    again_pods: int = 0
    fill: Fill | None = None


def measure(plan: Plan, say: Say) -> tuple[dict[str, Runs], str]:
    """Each cluster in turn; gives what was found, and why the real one was not run."""
    starts: dict[str, Start] = {OURS: embedded(plan.profiles)}
    not_run = ""
    if plan.peer.pods == 0:
        not_run = "not asked for"
    else:
        try:
            starts[PEER] = real(real_parts())
        except MissingBinaries as error:
            not_run = str(error).splitlines()[0]
    runs = {name: Runs() for name in starts}
    with tempfile.TemporaryDirectory(prefix="shoal-bench-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        if "start" in plan.parts:
            with embedded()(place / "first", nodes=0):
                pass  # its bytecode is written, its files are in the page cache: as on the second start of all
            for number in range(plan.starts):
                for name, start in starts.items():
                    _start(runs[name], start, place / f"{number}-{name[0]}")
                    say(f"{name}: API ready after {runs[name].api_ready[-1]:.2f} s, all {runs[name].all_ready[-1]:.2f}")
        for name, start in starts.items():
            if "restart" in plan.parts:
                _start_again(runs[name], start, place / f"again-{name[0]}", plan.restart, lambda text: None)
                say(f"{name}: second start on {plan.restart}: {runs[name].again}")
            if "fill" in plan.parts:
                size = plan.ours if name == OURS else plan.peer
                say(f"{name}: {size}")
                with start(place / f"fill-{name[0]}", nodes=size.nodes) as cluster:
                    runs[name].fill = fill(cluster, size, say, bare=plan.bare)
    return runs, not_run


def _start(runs: Runs, start: Start, data_dir: Path) -> None:
    with start(data_dir, nodes=0) as cluster:
        runs.api_ready.append(cluster.api_ready)
        runs.all_ready.append(cluster.all_ready)
        rest(cluster.processes.values())
        runs.memory.append(cluster.memory())


def _start_again(runs: Runs, start: Start, data_dir: Path, size: Size, say: Say) -> None:
    with start(data_dir, nodes=size.nodes) as cluster:
        fill(cluster, size, say, empties=False)
    with start(data_dir, nodes=size.nodes) as cluster:
        runs.again = cluster.api_ready, cluster.all_ready
    runs.again_pods = size.pods


def comparisons(runs: Mapping[str, Runs], not_run: str) -> dict[str, list[Comparison]]:
    """One line for each budget, and what is worth knowing besides."""
    ours, theirs = runs[OURS], runs.get(PEER)

    def lines(
        what: str,
        unit: str,
        read: Callable[[Runs], Sequence[float]],
        budget: Budget | None = None,
        *,
        is_ratio: bool = True,
    ) -> list[Comparison]:
        """A line against the peer and, where the budget is one of our own figure, a line for that before it."""
        own = Sample.of(read(ours))
        alone = [] if is_ratio or budget is None else [Comparison(what=what, unit=unit, ours=own, budget=budget)]
        peer = Sample.of(read(theirs)) if theirs is not None else None
        compared = Comparison(
            what="… the same" if alone else what,
            unit=unit,
            ours=own,
            peer_name=PEER,
            peer=peer,
            not_run=not_run,
            budget=budget if is_ratio else None,
        )
        return [*alone, compared]

    sections: dict[str, list[Comparison]] = {}
    if ours.api_ready:
        sections["A cold start, and the memory that it takes with no workload"] = [
            *lines("API ready after", "s", lambda run: run.api_ready, API_READY, is_ratio=False),
            *lines("all ready after", "s", lambda run: run.all_ready, ALL_READY, is_ratio=False),
            *lines("memory", "MB", lambda run: [_megabytes(one) for one in run.memory], AT_REST, is_ratio=False),
        ]
    if ours.again is not None:
        sections[f"A second start, on {ours.again_pods:,} pods"] = [
            *lines("API ready after", "s", lambda run: [_again(run)[0]]),
            *lines("all ready after", "s", lambda run: [_again(run)[1]]),
        ]
    if ours.fill is not None:
        sections |= _filled(runs, lines)
    return sections


def _filled(runs: Mapping[str, Runs], lines: Callable[..., list[Comparison]]) -> dict[str, list[Comparison]]:
    mine = _fill(runs[OURS])
    sizes = str(mine.size)
    if PEER in runs and _fill(runs[PEER]).size != mine.size:
        sizes = f"ours {mine.size}; the peer {_fill(runs[PEER]).size}"

    def wave(read: Callable[[Fill], Wave | None], title: str) -> dict[str, list[Comparison]]:
        def of(figure: Callable[[Wave], float]) -> Callable[[Runs], list[float]]:
            def found(run: Runs) -> list[float]:
                chosen = read(_fill(run))
                assert chosen is not None
                return [figure(chosen)]

            return found

        def latency(what: str, pick: Callable[[Wave], Answers]) -> list[Comparison]:
            return [
                *lines(f"{what}, p99", "ms", of(lambda one: pick(one).p99 * 1000), BESIDE, is_ratio=False),
                *lines("… p50", "ms", of(lambda one: pick(one).p50 * 1000)),
                *lines("… longest", "ms", of(lambda one: pick(one).longest * 1000)),
            ]

        return {
            f"{title}: pods a second": [
                *lines("created", "/s", of(lambda one: one.pods / one.created)),
                *lines("bound", "/s", of(lambda one: one.pods / one.bound)),
                *lines("running", "/s", of(lambda one: one.pods / one.running), AS_FAST),
            ],
            f"{title}: what another client waits meanwhile": [
                *latency("GET", lambda one: one.get),
                *latency("create", lambda one: one.create),
            ],
            f"{title}: CPU time of a pod until it runs": [
                *lines("API", "ms", of(lambda one: _cpu(one.cpu, True) / one.pods * 1000)),
                *lines("its clients", "ms", of(lambda one: _cpu(one.cpu, False) / one.pods * 1000)),
            ],
        }

    sections = {
        f"Filling ({sizes})": [
            *lines("nodes ready after", "s", lambda run: [_fill(run).nodes_seconds]),
            *lines("pods deleted", "/s", lambda run: [_fill(run).size.pods / _fill(run).deleted_seconds]),
            *lines("events written", "", lambda run: [_fill(run).events]),
            *lines("memory with nodes", "MB", lambda run: [_megabytes(_fill(run).memory_of_nodes)]),
            *lines("… and pods", "MB", lambda run: [_megabytes(_fill(run).memory)]),
        ]
    }
    sections |= wave(lambda filled: filled.owned, "Deployments")
    if mine.bare is not None:
        sections |= wave(lambda filled: filled.bare, f"Bare pods over {CONNECTIONS} connections")
    return sections


def processes(runs: Mapping[str, Runs]) -> list[str]:
    """CPU seconds and memory of each process, a line for each cluster."""
    said = []
    for name, run in runs.items():
        if run.fill is None or run.fill.owned is None:
            continue
        for what, seconds in (("until all ran", run.fill.owned.cpu), ("until all were gone", run.fill.deleted_cpu)):
            each = ", ".join(f"{process} {value:.1f} s" for process, value in seconds.items())
            said.append(f"{name}, CPU {what}: {each}")
        each = ", ".join(f"{process} {value / 1e6:.0f} MB" for process, value in run.fill.memory.items())
        said.append(f"{name}, memory with all pods: {each}")
    return said


def raw(runs: Mapping[str, Runs]) -> dict[str, Any]:
    """Everything that was measured."""
    return {name: asdict(run) for name, run in runs.items()}


def _fill(run: Runs) -> Fill:
    assert run.fill is not None
    return run.fill


def _again(run: Runs) -> tuple[float, float]:
    assert run.again is not None
    return run.again


def _megabytes(memory: Mapping[str, int]) -> float:
    return sum(memory.values()) / 1e6


def _cpu(seconds: Mapping[str, float], of_servers: bool) -> float:
    return sum(value for name, value in seconds.items() if (name in SERVERS) == of_servers)
