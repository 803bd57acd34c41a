"""What was measured, as comparisons with budgets: each route beside a thread that sleeps and one that reckons."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.figures.comparison import Budget, Comparison, Sample
from bench.views.asking import ASKS, Ask, Client, Report, Server, server

SHORT = Budget(at_most=50, shown="≤ 50 ms")
WHOLE = Budget(at_most=250, shown="≤ 250 ms")
PUBLISHING = Budget(at_most=1, shown="≤ 1 ms")
REFRESHED = Budget(at_least=0.9, shown="≥ 0.9")
MODES = ("calm", "busy")
_TITLES = {"calm": "no cycle runs", "busy": "beside a busy thread"}
_REFRESH = 5.0
"""Seconds after which the fork's console asks again."""
_CONSOLE = ("summary", "queues", "nodes gzip", "jobs gzip")

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured."""

    nodes: int = 4_000
    share: float = 1.0
    """Of the requests of each kind."""
    refreshing: float = 30.0
    """Seconds for which the busy thread is watched alone, and as many beside a console, in turns."""


@dataclass
class Found:
    """Seconds of each request, by mode and kind."""

    pods: int
    first: dict[str, float] = field(default_factory=dict)
    took: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, dict[int, int]] = field(default_factory=dict)
    alone: list[float] = field(default_factory=list)
    """What the busy thread reckons in a second when nobody asks, in each turn."""
    refreshed: list[float] = field(default_factory=list)
    """… and beside a console that refreshes."""
    publishing: float = 0.0
    memory: dict[str, int] = field(default_factory=dict)


def measure(plan: Plan, say: Say) -> Found:
    """Everything, on one server."""
    say(f"making {plan.nodes:,} nodes")
    with server(plan.nodes) as served:
        found = Found(served.pods)
        found.memory["nobody has asked"] = served.report().memory
        for ask in ASKS:
            if not ask.is_known:
                found.first[ask.what] = Client(served.port).ask(ask)[0]
        for mode in MODES:
            served.order(mode)
            for ask in ASKS:
                say(f"{_TITLES[mode]}: {ask.what}")
                found.took.setdefault(mode, {})[ask.what] = _asked(served, ask, plan, found)
        found.memory["all was asked for"] = served.report().memory
        say("the busy thread by itself, and beside a console")
        for _ in range(max(1, int(plan.refreshing / _REFRESH))):
            found.alone.append(_reckoned(served, console=False))
            found.refreshed.append(_reckoned(served, console=True))
        found.publishing = served.report().publishing
    return found


def _asked(served: Server, ask: Ask, plan: Plan, found: Found) -> list[float]:
    """Requests with a little time between them, so that they meet views of all ages."""
    client = Client(served.port)
    took = []
    for _ in range(max(5, int(ask.requests * plan.share))):
        seconds, status, size = client.ask(ask)
        if not ask.is_known or status == 304:  # somebody who has to hear what changed asks for the whole
            took.append(seconds)
        found.sizes[ask.what] = max(size, found.sizes.get(ask.what, 0))
        counts = found.statuses.setdefault(ask.what, {})
        counts[status] = counts.get(status, 0) + 1
        time.sleep(0.017)
    return took


def _reckoned(served: Server, *, console: bool) -> float:
    """What the busy thread does in a second, over the time between two refreshes of a console."""
    before: Report = served.report()
    if console:
        for ask in ASKS:
            if ask.what in _CONSOLE:
                Client(served.port).ask(ask)
    time.sleep(max(0.0, _REFRESH - (time.perf_counter() - before.at)))
    after = served.report()
    return (after.reckoned - before.reckoned) / (after.at - before.at)


def comparisons(found: Found, plan: Plan) -> dict[str, list[Comparison]]:
    """One line for each budget, and the rest."""
    sections: dict[str, list[Comparison]] = {}
    for mode, by_what in found.took.items():
        lines = []
        for ask in ASKS:
            took = by_what[ask.what]
            budget = WHOLE if ask.path == "jobs" and not ask.is_known else SHORT
            lines.append(Comparison(what=f"{ask.what}, p50", unit="ms", ours=Sample.of([_percentile(took, 50)])))
            lines.append(
                Comparison(what=f"{ask.what}, p99", unit="ms", ours=Sample.of([_percentile(took, 99)]), budget=budget)
            )
        sections[f"{plan.nodes:,} nodes, {found.pods:,} pods: {_TITLES[mode]}"] = lines
    sections["The first answers after the start"] = [
        Comparison(what=what, unit="ms", ours=Sample.of([seconds * 1_000])) for what, seconds in found.first.items()
    ]
    sections["What it costs the cycle"] = [
        Comparison(
            what="to publish, longest", unit="ms", ours=Sample.of([found.publishing * 1_000]), budget=PUBLISHING
        ),
        Comparison(
            what="work beside a console",
            unit="/s",
            ours=Sample.of(found.refreshed),
            peer_name="alone",
            peer=Sample.of(found.alone),
            budget=REFRESHED,
        ),
    ]
    return sections


def notes(found: Found) -> list[str]:
    """Sizes, memory, and how many of those who asked again were told that they have it."""
    sizes = ", ".join(f"{what} {size / 1e6:.2f} MB" for what, size in found.sizes.items())
    again = ", ".join(f"{what}: {counts}" for what, counts in found.statuses.items() if len(counts) > 1)
    memory = ", ".join(f"{when} {size / 1e6:,.0f} MB" for when, size in found.memory.items())
    return [f"answers: {sizes}", f"statuses: {again}", f"memory of the process, the view in it: {memory}"]


def raw(found: Found) -> dict[str, Any]:
    """Everything that was measured."""
    return {
        "pods": found.pods,
        "first": found.first,
        "took": found.took,
        "sizes": found.sizes,
        "statuses": found.statuses,
        "alone": found.alone,
        "refreshed": found.refreshed,
        "publishing": found.publishing,
        "memory": found.memory,
    }


def _percentile(took: list[float], percent: int) -> float:
    """Milliseconds."""
    ordered = sorted(took)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] * 1_000
