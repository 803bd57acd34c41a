"""Pods a second and from there to bound, as comparisons; beside them what KAI has published."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.binding.stage import GPUS, stage
from bench.binding.waves import GANGS, MEMBERS, PLAIN, SINGLE, Wave, wave
from bench.decisions.published import FILL
from bench.figures.comparison import Budget, Comparison, Sample

Say = Callable[[str], None]
PARTS = (SINGLE, PLAIN, GANGS)
Rounds = Mapping[str, list[Wave]]
"""The waves of each round, by the part."""
_TEN_TIMES = Budget(at_least=10, shown="≥ 10")
_SERVERS = ("api",)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured; the sizes of KAI's own scale test."""

    parts: frozenset[str] = frozenset(PARTS)
    nodes: int = 500
    singles: int = 100
    rounds: int = 3
    quick: bool = False
    profiles: Path | None = None

    @property
    def pods(self) -> int:
        """As many as fill the cluster."""
        return self.nodes * GPUS


def run(plan: Plan, say: Say) -> Rounds:
    """All waves in each round, each on a cluster of its own."""
    found: dict[str, list[Wave]] = {part: [] for part in PARTS if part in plan.parts}
    with tempfile.TemporaryDirectory(prefix="shoal-bench-", ignore_cleanup_errors=True) as folder:
        for number in range(plan.rounds):
            for part, came in found.items():
                say(f"end to end, round {number + 1} of {plan.rounds}: {plan.nodes:,} nodes")
                with stage(Path(folder) / f"{number}-{part}", nodes=plan.nodes, profiles=plan.profiles) as cluster:
                    pods = plan.singles if part == SINGLE else plan.pods
                    came.append(wave(cluster, part, pods=pods, say=say))
    return found


def comparisons(rounds: Rounds, plan: Plan) -> dict[str, list[Comparison]]:
    """One table for those that come at once, and one for those that come alone."""
    at_once: list[Comparison] = []
    for part, shown in ((PLAIN, "plain pods"), (GANGS, f"gangs of {MEMBERS}")):
        of = rounds.get(part)
        if of is None:
            continue
        rate = Sample.of([one.rate for one in of])
        at_once += [
            Comparison(
                what=f"{shown}: pods/s",
                unit="",
                ours=rate,
                peer_name=FILL.shown,
                peer=Sample.of([FILL.figure] * len(of)),
                budget=None if plan.quick else _TEN_TIMES,
            ),
            *(_latency(of, "… ", share) for share in (0.5, 0.99)),
            *(_cpu(of, is_server=is_server) for is_server in (True, False)),
        ]
    sections = {f"{plan.pods:,} pods at once on {plan.nodes:,} nodes, until the last is bound": at_once}
    if SINGLE in rounds:
        alone = [_latency(rounds[SINGLE], "", share) for share in (0.5, 0.99)]
        sections[f"{plan.singles:,} pods, each when the one before is bound"] = alone
    return {title: lines for title, lines in sections.items() if lines}


def _latency(of: list[Wave], prefix: str, share: float) -> Comparison:
    ours = Sample.of([one.percentile(share) * 1_000 for one in of])
    return Comparison(what=f"{prefix}to bound, p{share * 100:.0f}", unit="ms", ours=ours)


def _cpu(of: list[Wave], *, is_server: bool) -> Comparison:
    each = [
        sum(used for name, used in one.cpu.items() if (name in _SERVERS) == is_server) / one.pods * 1_000 for one in of
    ]
    return Comparison(what="… CPU, API server" if is_server else "… CPU, all others", unit="ms", ours=Sample.of(each))


def notes(rounds: Rounds) -> list[str]:
    """What each process took in the last round, and where the published figure is from."""
    lines = []
    for part, of in rounds.items():
        cpu = ", ".join(f"{name} {used:.1f} s" for name, used in of[-1].cpu.items() if used >= 0.05)
        memory = ", ".join(f"{name} {held / 1e6:.0f} MB" for name, held in of[-1].memory.items())
        asked = ", ".join(f"{what} {count / of[-1].pods:.2f}" for what, count in list(of[-1].served.items())[:15])
        lines += [f"{part}, CPU: {cpu}", f"{part}, memory: {memory}", f"{part}, requests for each pod: {asked}"]
    return [*lines, f"{FILL.shown}: {FILL.where}"]


def raw(rounds: Rounds) -> Mapping[str, Any]:
    """Everything that was measured, in seconds."""
    return {part: [asdict(one) for one in of] for part, of in rounds.items()}
