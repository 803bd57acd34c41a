"""The runs as comparisons: pods of ``shoal up`` beside what the same machine does without it."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bench.figures.comparison import Budget, Comparison, Sample
from bench.pods import following
from bench.pods.bare import Bare
from bench.pods.commanding import Commands, commands
from bench.pods.outside import Pods
from bench.pods.resting import PROBED_EVERY, Rest, at_rest
from bench.pods.spread import Spread
from bench.pods.stages import Stage, stages
from bench.pods.starting import Singly, Together, all_at_once, one_by_one
from bench.pods.talking import CLIENTS, TalkPlan, logs, prepare, services
from bench.serving.contestants import rest
from bench.starting.clusters import SHOAL, Cluster, shoal_up
from tests.support.programs.ordinary_user import USER, as_ordinary_user

PARTS = ("start", "burst", "rest", "exec", "service", "rules", "logs")
BARE, DIRECT, FILE = "unshare", "directly", "to a file"
STARTS = Budget(at_most=150, shown="≤ 150 ms")
EXECUTED = Budget(at_most=50, shown="≤ 50 ms")
NO_SLOWER = Budget(at_least=1, shown="≥ 1")
SMALL = Budget(at_most=5, shown="≤ 5 MB")
IDLE = Budget(at_most=1, shown="≤ 1 %")
FOLLOWED = Budget(at_most=1000, shown="≤ 1 s")
THROUGH = Budget(at_least=1 / 3, shown="≥ 1/3")
LOGGED = Budget(at_least=1 / 10, shown="≥ 1/10")
Say = Callable[[str], None]
Rates = dict[str, dict[str, list[float]]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured, and as whom."""

    parts: frozenset[str] = frozenset(PARTS)
    starts: int = 100
    bursts: tuple[int, ...] = (100, 250)
    """The last one is what the node takes at most."""
    resting: int = 100
    rest_seconds: float = 20.0
    talk: TalkPlan = TalkPlan()
    as_user: bool = False
    has_stages: bool = False


@dataclass(kw_only=True)
class Runs:
    """What was measured."""

    singly: Singly | None = None
    bursts: list[Together] = field(default_factory=list)
    rest: Rest | None = None
    commands: Commands | None = None
    service: Rates = field(default_factory=dict)
    rules: Rates = field(default_factory=dict)
    logs: Rates = field(default_factory=dict)
    stages: list[Stage] = field(default_factory=list)
    not_run: str = ""
    """Why the bare programs were not."""


def measure(plan: Plan, say: Say) -> Runs:
    """All parts: what pods cost at rest on a cluster that has just started, and the others on the next one."""
    runs = Runs()
    user = USER if plan.as_user and os.getuid() == 0 else None
    bare = Bare(user)
    runs.not_run = bare.not_run
    with tempfile.TemporaryDirectory(prefix="shoal-bench-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        if user is not None:
            os.chown(place, user, user)
        marks = place / "stages"
        with _shoal(place / "first", user):
            pass  # its bytecode is written, its files are in the page cache: as on the second start of all
        if "rest" in plan.parts:
            with _shoal(place / "rest", user) as cluster:
                asyncio.run(_rest(runs, cluster, plan, say))
        if "rules" in plan.parts:
            runs.rules = following.measure(as_user=user is not None)
            say(f"{following.SERVICES} services: done")
        if plan.parts - {"rest", "rules"}:
            with _shoal(place / "work", user, marks if plan.has_stages else None) as cluster:
                rest(cluster.processes.values())
                asyncio.run(_work(runs, cluster, None if runs.not_run else bare, plan, say))
            if plan.has_stages and runs.singly is not None:
                runs.stages = stages(marks, runs.singly.bound_at, runs.singly.running_at)
    return runs


@contextmanager
def _shoal(data_dir: Path, user: int | None, marks: Path | None = None) -> Iterator[Cluster]:
    """``shoal up`` as it stands, or with a clock at each step."""
    command = [SHOAL] if marks is None else [sys.executable, "-m", "bench.pods.staged"]
    environment = {} if marks is None else {"SHOAL_BENCH_STAGES": str(marks)}
    line = command if user is None else as_ordinary_user(*command)
    with shoal_up(line, data_dir, environment=environment) as cluster:
        yield cluster


async def _rest(runs: Runs, cluster: Cluster, plan: Plan, say: Say) -> None:
    async with Pods(cluster.kubeconfig) as pods:
        await prepare(pods)
        runs.rest = await at_rest(cluster, pods, plan.resting, plan.rest_seconds)
        say(f"{plan.resting} pods at rest: {_memory_of_pod(runs.rest):.2f} MB each, {runs.rest.busy:.1%} of a core")


async def _work(runs: Runs, cluster: Cluster, bare: Bare | None, plan: Plan, say: Say) -> None:
    async with Pods(cluster.kubeconfig) as pods:
        await prepare(pods)
        if "start" in plan.parts:
            runs.singly = await one_by_one(pods, bare, plan.starts)
            took = Spread.of(runs.singly.running)
            say(f"{plan.starts} pods, one by one: run {took.p50 * 1000:.0f} ms after they are bound (median)")
        for count in plan.bursts if "burst" in plan.parts else ():
            await asyncio.to_thread(rest, cluster.processes.values())
            runs.bursts.append(await all_at_once(cluster, pods, bare, count))
            say(f"{count} pods at once: all run after {runs.bursts[-1].running:.1f} s")
        if "exec" in plan.parts:
            runs.commands = await commands(pods, bare, plan.starts)
            say(f"{plan.starts} commands: {Spread.of(runs.commands.exec).p50 * 1000:.0f} ms each (median)")
        if "service" in plan.parts:
            runs.service = await services(pods, plan.talk)
            say("services: done")
        if "logs" in plan.parts:
            runs.logs = await logs(pods, plan.talk)
            say("logs: done")


def comparisons(runs: Runs) -> dict[str, list[Comparison]]:
    """One line for each budget, and what is worth knowing besides."""
    sections: dict[str, list[Comparison]] = {}
    if runs.singly is not None:
        sections |= _singly(runs.singly, runs.not_run)
    for burst in runs.bursts:
        sections |= _together(burst, runs.singly, runs.not_run)
    if runs.rest is not None:
        sections |= _resting(runs.rest)
    if runs.commands is not None:
        sections |= _commands(runs.commands, runs.not_run)
    if runs.service:
        sections |= _services(runs.service)
    if runs.rules:
        sections |= _rules(runs.rules)
    if runs.logs:
        sections |= _logs(runs.logs)
    return sections


def _singly(found: Singly, not_run: str) -> dict[str, list[Comparison]]:
    return {
        f"{len(found.running)} pods, one after the other": [
            *_spread(found.running, "bound → Running", STARTS),
            _beside_bare("bound → Running, p50", found.running, found.bare, not_run),
            *_spread(found.ready, "bound → Ready"),
            *_spread(found.created_to_running, "asked → Running"),
            *_spread(found.gone, "deleted → gone"),
        ]
    }


def _commands(found: Commands, not_run: str) -> dict[str, list[Comparison]]:
    return {
        f"{len(found.exec)} commands in a pod, one after the other": [
            *_spread(found.exec, "exec → exit code", EXECUTED),
            _beside_bare("exec, p50", found.exec, found.bare, not_run),
            *_spread(found.probed, "Running → Ready, probed"),
        ]
    }


def _spread(seconds: list[float], what: str, budget: Budget | None = None) -> list[Comparison]:
    took = Spread.of(seconds)
    return [
        Comparison(what=f"{what}, p50", unit="ms", ours=_milliseconds(took.p50), budget=budget),
        Comparison(what=f"{what}, p99", unit="ms", ours=_milliseconds(took.p99), budget=budget),
        Comparison(what="… longest", unit="ms", ours=_milliseconds(took.longest)),
    ]


def _beside_bare(what: str, seconds: list[float], bare: list[float], not_run: str) -> Comparison:
    return Comparison(
        what=what,
        unit="ms",
        ours=_milliseconds(Spread.of(seconds).p50),
        peer_name=BARE,
        peer=_milliseconds(Spread.of(bare).p50) if bare else None,
        not_run=not_run,
    )


def _together(found: Together, singly: Singly | None, not_run: str) -> dict[str, list[Comparison]]:
    rate, each = found.pods / found.running, Spread.of(found.each)
    lines = [Comparison(what="all run after", unit="s", ours=Sample.of([found.running]))]
    if singly is not None:
        lines.append(
            Comparison(
                what="pods a second",
                unit="/s",
                ours=Sample.of([rate]),
                peer_name="one by one",
                peer=Sample.of([1 / Spread.of(singly.created_to_running).p50]),
                budget=NO_SLOWER,
            )
        )
    lines += [
        Comparison(
            what="pods a second",
            unit="/s",
            ours=Sample.of([rate]),
            peer_name=BARE,
            peer=Sample.of([found.pods / found.bare]) if found.bare is not None else None,
            not_run=not_run,
        ),
        Comparison(what="bound → Running, p50", unit="ms", ours=_milliseconds(each.p50)),
        Comparison(what="… p99", unit="ms", ours=_milliseconds(each.p99)),
        Comparison(what="all gone after", unit="s", ours=Sample.of([found.gone])),
        Comparison(what="pods gone a second", unit="/s", ours=Sample.of([found.pods / found.gone])),
    ]
    return {f"{found.pods} pods at once": lines}


def _resting(found: Rest) -> dict[str, list[Comparison]]:
    def line(what: str, unit: str, value: float, budget: Budget | None = None) -> Comparison:
        return Comparison(what=what, unit=unit, ours=Sample.of([value]), budget=budget)

    before, after = found.without, found.with_pods
    return {
        f"{found.pods} pods at rest": [
            line("memory without pods", "MB", before.shoal / 1e6),
            line("memory for a pod", "MB", _memory_of_pod(found), SMALL),
            line("… its init", "MB", after.inits / found.pods / 1e6),
            line("… the kernel's", "MB", (after.kernel - before.kernel) / found.pods / 1e6),
            line("CPU without pods", "%", found.busy_without * 100),
            line("CPU with them", "%", found.busy * 100, IDLE),
            line(f"… probed every {PROBED_EVERY} s", "%", found.busy_probed * 100),
        ]
    }


def _services(found: Rates) -> dict[str, list[Comparison]]:
    def line(what: str, unit: str, read: str, budget: Budget | None = None) -> Comparison:
        ours, peer = Sample.of(found["service"][read]), Sample.of(found["direct"][read])
        return Comparison(what=what, unit=unit, ours=ours, peer_name=DIRECT, peer=peer, budget=budget)

    return {
        f"From pod to pod through a Service ({CLIENTS} clients at once)": [
            line("requests a second", "/s", "requests", THROUGH),
            line("… new connections", "/s", "connections"),
            line("one client waits", "ms", "latency"),
            line("MB a second", "", "megabytes", THROUGH),
            Comparison(
                what="names a second",
                unit="/s",
                ours=Sample.of(found["names"]["rate"]),
                peer_name="a bare datagram",
                peer=Sample.of(found["datagrams"]["rate"]),
            ),
        ]
    }


def _rules(found: Rates) -> dict[str, list[Comparison]]:
    ours, by_process = found.get("kernel"), found["process"]

    def line(what: str, read: str) -> Comparison:
        return Comparison(
            what=what,
            unit="ms",
            ours=_all_milliseconds((ours or by_process)[read]),
            peer_name="by a process" if ours is not None else "",
            peer=_all_milliseconds(by_process[read]) if ours is not None else None,
        )

    absolute = Comparison(
        what="all are led after", unit="ms", ours=_all_milliseconds((ours or by_process)["all"]), budget=FOLLOWED
    )
    return {
        f"{following.SERVICES} Services with {following.ENDPOINTS} endpoints each": [
            absolute,
            line("all are led after", "all"),
            line("one that changes after", "one"),
        ]
    }


def _logs(found: Rates) -> dict[str, list[Comparison]]:
    def line(what: str, pieces: str, budget: Budget | None = None) -> Comparison:
        ours, peer = Sample.of(found[pieces]["log"]), Sample.of(found[pieces]["file"])
        return Comparison(what=what, unit="", ours=ours, peer_name=FILE, peer=peer, budget=budget)

    return {
        "What a container can write to its log": [
            line("MB/s in blocks", "blocks", LOGGED),
            line("MB/s line by line", "lines"),
        ]
    }


def facts(runs: Runs) -> list[str]:
    """Where time and memory went, a line each."""
    said = []
    for burst in runs.bursts:
        each = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in burst.cpu.items())
        said.append(f"{burst.pods} pods at once, CPU until all ran: {each}")
    if runs.rest is not None:
        for when, account in (("without pods", runs.rest.without), ("with pods", runs.rest.with_pods)):
            each = ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in account.parts.items())
            said.append(f"memory {when}: {each}, inits {account.inits / 1e6:.0f} MB")
    for stage in runs.stages:
        said.append(f"{stage.name}: from {stage.began * 1000:.1f} to {stage.ended * 1000:.1f} ms after the bind")
    return said


def raw(runs: Runs) -> dict[str, Any]:
    """Everything that was measured."""
    found: dict[str, Any] = msgspec.to_builtins(asdict(runs))
    return found


def _memory_of_pod(found: Rest) -> float:
    return (found.with_pods.shoal - found.without.shoal) / found.pods / 1e6


def _all_milliseconds(seconds: list[float]) -> Sample:
    return Sample.of([one * 1000 for one in seconds])


def _milliseconds(seconds: float) -> Sample:
    return Sample.of([seconds * 1000])
