"""The race as comparisons: ours against the bare client, and against kopf."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.figures.comparison import Budget, Comparison, Sample
from bench.figures.machine import installed
from bench.race.heats import Heat, run_heats
from bench.race.track import open_track

Heats = Mapping[str, Sequence[Heat]]
_NEEDS = {"kopf_operator": ("kopf", "kubernetes"), "kopf_plain": ("kopf", "kubernetes")}
RATE_OF_BARE = Budget(at_least=0.85, shown="≥ 0.85")
RATE_OF_KOPF = Budget(at_least=2, shown="≥ 2")
CPU_OF_KOPF = Budget(at_most=1 / 5, shown="≤ 1/5")
WRITES_OF_KOPF = Budget(at_most=2 / 3, shown="≤ 2/3")


async def race(*, objects: int, rounds: int, say: Callable[[str], None]) -> tuple[Heats, dict[str, str]]:
    """Runs all contestants whose packages are there; gives their heats, and why others were not run."""
    absent = {
        name: f"{', '.join(missing)} not installed"
        for name, packages in _NEEDS.items()
        if (missing := [package for package in packages if installed(package) == "missing"])
    }
    contestants = [name for name in ("bare", "ours", "kopf_operator", "kopf_plain") if name not in absent]
    heats: dict[str, list[Heat]] = {name: [] for name in contestants}
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        data = Path(folder)
        async with open_track(data / "kube") as track:
            async for name, heat in run_heats(track, contestants, objects=objects, rounds=rounds, logs=data):
                heats[name].append(heat)
                say(f"race: {name}: {heat.rate:.0f} objects/s, {heat.cpu_seconds:.2f} s of CPU, {heat.writes} writes")
    return heats, absent


def comparisons(heats: Heats, absent: Mapping[str, str]) -> list[Comparison]:
    """One line for each budget, and what is worth knowing besides."""

    def compare(
        what: str, unit: str, read: Callable[[Heat], float], peer: str, name: str, budget: Budget | None = None
    ) -> Comparison:
        return Comparison(
            what=what,
            unit=unit,
            ours=sample(heats["ours"], read),
            peer_name=name,
            peer=sample(heats[peer], read) if peer in heats else None,
            not_run=absent.get(peer, ""),
            budget=budget,
        )

    kopf, plain = "kopf", "kopf, plain requests"
    return [
        compare("objects a second", "", lambda heat: heat.rate, "bare", "bare client", RATE_OF_BARE),
        compare("objects a second", "", lambda heat: heat.rate, "kopf_operator", kopf, RATE_OF_KOPF),
        compare("CPU time", "s", lambda heat: heat.cpu_seconds, "kopf_operator", kopf, CPU_OF_KOPF),
        compare("API writes", "", lambda heat: heat.writes, "kopf_operator", kopf, WRITES_OF_KOPF),
        compare("objects a second", "", lambda heat: heat.rate, "kopf_plain", plain),
        compare("CPU time", "s", lambda heat: heat.cpu_seconds, "kopf_plain", plain),
        compare("CPU time", "s", lambda heat: heat.cpu_seconds, "bare", "bare client"),
        compare("peak memory", "MB", lambda heat: heat.peak_memory / 1e6, "kopf_operator", kopf),
    ]


def sample(heats: Sequence[Heat], read: Callable[[Heat], float]) -> Sample:
    return Sample.of([read(heat) for heat in heats])


def raw(heats: Heats) -> dict[str, Any]:
    """Everything that was measured."""
    return {name: [asdict(heat) for heat in of_name] for name, of_name in heats.items()}
