"""The turns as comparisons: the embedded server against the real pair."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures.comparison import Budget, Comparison, Sample
from bench.serving.contestants import embedded, real
from bench.serving.turns import Sizes, Start, Turn, take_turn
from shoal.cluster.kubernetes import MissingBinaries, find_binaries

OURS, PEER = "ours", "kube-apiserver"
BUDGETS = {
    "get": Budget(at_least=2, shown="≥ 2"),
    "patch": Budget(at_least=2, shown="≥ 2"),
    "create small": Budget(at_least=1.5, shown="≥ 1.5"),
    "create pod": Budget(at_least=1, shown="≥ 1"),
}
SHOWN = {
    "get": "GET 0.5 KB",
    "patch": "patch 0.5 KB",
    "create small": "create 0.5 KB",
    "create pod": "create 10 KB pod",
    "patch pod": "patch 10 KB pod",
}
READY = Budget(at_most=1, shown="≤ 1 s")
READ_BESIDE = Budget(at_most=50, shown="≤ 50 ms")
Turns = Mapping[str, Sequence[Turn]]


def measure(sizes: Sizes, *, rounds: int, say: Callable[[str], None]) -> tuple[Turns, str]:
    """Round after round, each server once in each; gives their turns, and why the real one was not run."""
    server_core, client_core = _cores()
    starts: dict[str, Start] = {OURS: embedded}
    not_run = ""
    try:
        find_binaries()
        starts[PEER] = real
    except MissingBinaries as error:
        not_run = str(error).splitlines()[0]
    turns: dict[str, list[Turn]] = {name: [] for name in starts}
    before = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        with embedded(Path(folder) / "first", core=server_core):
            pass  # its bytecode is written, its files are in the page cache: as on the second start of an installation
        if client_core is not None:
            os.sched_setaffinity(0, {client_core})
        try:
            for number in range(rounds):
                for name, start in starts.items():
                    place = Path(folder) / f"{name}-{number}"
                    turn = take_turn(start, place, sizes, core=server_core, fills=number == rounds - 1)
                    turns[name].append(turn)
                    rates = ", ".join(f"{what} {work.rate:.0f}/s" for what, work in turn.work.items())
                    say(f"{name}: ready after {turn.ready_after:.2f} s; {rates}")
        finally:
            os.sched_setaffinity(0, before)
    return turns, not_run


def comparisons(turns: Turns, not_run: str) -> dict[str, list[Comparison]]:
    """One line for each budget, and what is worth knowing besides."""
    ours, theirs = turns[OURS], turns.get(PEER)

    def compare(
        what: str,
        unit: str,
        read: Callable[[Turn], float],
        budget: Budget | None = None,
        *,
        only: slice = slice(None),
        is_ratio: bool = True,
    ) -> Comparison:
        """``is_ratio`` where the budget is one of the ratio and not of our own figure."""
        peer = Sample.of([read(turn) for turn in theirs[only]]) if theirs is not None and is_ratio else None
        return Comparison(
            what=what,
            unit=unit,
            ours=Sample.of([read(turn) for turn in ours[only]]),
            peer_name=PEER if is_ratio else "",
            peer=peer,
            not_run=not_run if is_ratio else "",
            budget=budget,
        )

    def work(name: str, read: Callable[[Any], float]) -> Callable[[Turn], float]:
        return lambda turn: read(turn.work[name])

    last = slice(-1, None)
    rates = [
        compare(shown, "/s", work(name, lambda done: done.rate), BUDGETS.get(name)) for name, shown in SHOWN.items()
    ]
    cpu = [
        compare(f"… {shown}", "ms", work(name, lambda done: done.server_cpu * 1000)) for name, shown in SHOWN.items()
    ]
    latency = [compare(f"… {shown}", "ms", work(name, lambda done: done.p99 * 1000)) for name, shown in SHOWN.items()]
    full = ours[-1].listed
    others = [
        compare("ready after", "s", lambda turn: turn.ready_after, READY, is_ratio=False),
        compare("ready after", "s", lambda turn: turn.ready_after),
        compare("memory at rest", "MB", lambda turn: turn.memory_at_rest / 1e6),
        compare(f"… {full:,} pods", "MB", lambda turn: turn.memory_full / 1e6, only=last),
        compare("GET in a burst, p99", "ms", lambda turn: turn.read_beside_creates * 1000, READ_BESIDE, is_ratio=False),
        compare("… the same", "ms", lambda turn: turn.read_beside_creates * 1000),
        compare(f"list {full:,} pods", "s", lambda turn: turn.list_seconds, only=last),
        compare("… size", "MB", lambda turn: turn.list_bytes / 1e6, only=last),
        compare("watch: events told", "/s", lambda turn: turn.watch_rate),
        compare("… last of 50 hears", "ms", lambda turn: turn.last_watcher * 1000),
        compare("… p99", "ms", lambda turn: turn.last_watcher_p99 * 1000),
    ]
    busy = [
        line
        for name, shown in SHOWN.items()
        for line in (
            compare(shown, "", work(name, lambda done: done.rate * done.server_cpu)),
            compare("… client", "", work(name, lambda done: done.client_share)),
        )
    ]
    return {
        "Requests a second, 32 connections": rates,
        "The server's CPU time for one request": cpu,
        "Latency, 99th percentile": latency,
        "Other figures": others,
        "How busy the server's core was (near 1, or something else was the limit), and the client's": busy,
    }


def raw(turns: Turns) -> dict[str, Any]:
    """Everything that was measured."""
    return {name: [turn.raw() for turn in of_name] for name, of_name in turns.items()}


def _cores() -> tuple[int | None, int | None]:
    """One core for the server and another for the client; none where there is only one."""
    cores = sorted(os.sched_getaffinity(0))
    return (cores[0], cores[1]) if len(cores) > 1 else (None, None)
