"""Runs the holders, each in a process of its own, and compares what they took."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bench.figures.comparison import Budget, Comparison, Sample
from bench.figures.machine import installed
from bench.holding.account import Followed, Held
from bench.holding.pods import pod_json

ROOT = Path(__file__).resolve().parents[2]
R = TypeVar("R", Held, Followed)


@dataclass(frozen=True)
class Sizes:
    """How much is read and followed; peers that are slow follow less, and are compared by their rate."""

    pods: int = 10_000
    many_pods: int = 100_000
    changes: int = 200_000
    lightkube_changes: int = 20_000
    official_changes: int = 3_000


QUICK = Sizes(pods=2_000, many_pods=10_000, changes=20_000, lightkube_changes=4_000, official_changes=500)


@dataclass
class Holdings:
    """What the holders told, by name."""

    held: dict[str, list[Held]] = field(default_factory=dict)
    followed: dict[str, list[Followed]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)


def measure(sizes: Sizes, *, rounds: int, say: Callable[[str], None]) -> Holdings:
    """Every holder once in each round."""
    found = Holdings()
    holders = {
        "trimmed": ["bench.holding.ours", "hold", "trimmed"],
        "whole": ["bench.holding.ours", "hold", "whole"],
        "lightkube": ["bench.holding.lightkube_pods", "hold"],
        "lightkube without gc": ["bench.holding.lightkube_pods", "--no-gc", "hold"],
        "official": ["bench.holding.official_pods", "hold"],
    }
    followers = {
        "trimmed": (["bench.holding.ours", "follow", "trimmed"], sizes.changes),
        "lightkube": (["bench.holding.lightkube_pods", "follow"], sizes.lightkube_changes),
        "official": (["bench.holding.official_pods", "follow"], sizes.official_changes),
    }
    for name, package in _NEEDS.items():
        if installed(package) == "missing":
            found.absent[name] = f"{package} not installed"
    with _server() as address:
        for _ in range(rounds):
            for name, module in holders.items():
                if name not in found.absent:
                    held = _run(module, f"{address}/{sizes.pods}/0", sizes.pods, Held)
                    found.held.setdefault(name, []).append(held)
                    say(f"pods: {name}: {held.cpu_seconds:.2f} s of CPU, {held.memory / 1e6:.0f} MB")
            many = _run(holders["trimmed"], f"{address}/{sizes.many_pods}/0", sizes.many_pods, Held)
            found.held.setdefault("many", []).append(many)
            say(f"pods: {sizes.many_pods} trimmed: {many.cpu_seconds:.2f} s of CPU, {many.memory / 1e6:.0f} MB")
            for name, (module, changes) in followers.items():
                if name not in found.absent:
                    followed = _run(module, f"{address}/2000/{changes}", changes, Followed)
                    found.followed.setdefault(name, []).append(followed)
                    say(f"changes: {name}: {followed.changes / followed.seconds:.0f} a second")
    return found


def comparisons(found: Holdings, sizes: Sizes) -> list[Comparison]:
    """One line for each figure and peer."""

    def holding(
        what: str, unit: str, read: Callable[[Held], float], ours: str, peer: str, budget: Budget | None = None
    ) -> Comparison:
        return Comparison(
            what=what,
            unit=unit,
            ours=Sample.of([read(held) for held in found.held[ours]]),
            peer_name=_NAMES[peer],
            peer=Sample.of([read(held) for held in found.held[peer]]) if peer in found.held else None,
            not_run=found.absent.get(peer, ""),
            budget=budget,
        )

    def following(peer: str, budget: Budget) -> Comparison:
        def rates(of_name: Sequence[Followed]) -> Sample:
            return Sample.of([followed.changes / followed.seconds for followed in of_name])

        return Comparison(
            what="trimmed: changes/s",
            unit="",
            ours=rates(found.followed["trimmed"]),
            peer_name=_NAMES[peer] + (" informer" if peer == "official" else " watch"),
            peer=rates(found.followed[peer]) if peer in found.followed else None,
            not_run=found.absent.get(peer, ""),
            budget=budget,
        )

    def cpu(held: Held) -> float:
        return held.cpu_seconds

    def megabytes(held: Held) -> float:
        return held.memory / 1e6

    limit = 1000 * sizes.many_pods / 100_000
    many = Comparison(
        what=f"{sizes.many_pods:,}: memory held",
        unit="MB",
        ours=Sample.of([megabytes(held) for held in found.held["many"]]),
        budget=Budget(at_most=limit, shown=f"≤ {limit:,.0f} MB"),
    )
    return [
        holding("trimmed: CPU to read", "s", cpu, "trimmed", "official", _at_most(20)),
        holding("trimmed: memory held", "MB", megabytes, "trimmed", "official", _at_most(10)),
        holding("trimmed: CPU to read", "s", cpu, "trimmed", "lightkube", _at_most(4)),
        holding("trimmed: CPU to read", "s", cpu, "trimmed", "lightkube without gc"),
        holding("trimmed: memory held", "MB", megabytes, "trimmed", "lightkube", _at_most(4)),
        holding("whole: CPU to read", "s", cpu, "whole", "official", _at_most(10)),
        holding("whole: memory held", "MB", megabytes, "whole", "official", _at_most(2)),
        holding("whole: CPU to read", "s", cpu, "whole", "lightkube"),
        holding("whole: memory held", "MB", megabytes, "whole", "lightkube"),
        many,
        following("lightkube", Budget(at_least=1.5, shown="≥ 1.5")),
        following("official", Budget(at_least=10, shown="≥ 10")),
    ]


_NEEDS = {"lightkube": "lightkube", "lightkube without gc": "lightkube", "official": "kubernetes"}
_NAMES: Mapping[str, str] = {
    "official": "official",
    "lightkube": "lightkube",
    "lightkube without gc": "lightkube, gc off",
}


def _at_most(part: int) -> Budget:
    return Budget(at_most=1 / part, shown=f"≤ 1/{part}")


def raw(found: Holdings) -> dict[str, Any]:
    """Everything that was measured."""
    plain: dict[str, Any] = msgspec.to_builtins({"held": found.held, "followed": found.followed})
    return plain


def pod_size() -> int:
    """Bytes of JSON that a pod takes on the wire."""
    return len(pod_json(0, 1))


@contextmanager
def _server() -> Iterator[str]:
    command = [sys.executable, "-m", "bench.holding.server"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


def _run(module: Sequence[str], server: str, count: int, kind: type[R]) -> R:
    command = [sys.executable, "-m", *module, server, str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{' '.join(module)} failed:\n{done.stderr.decode()[-2000:]}")
    return msgspec.json.decode(done.stdout, type=kind)
