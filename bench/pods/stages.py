"""Where the time of a pod's start goes: the steps of the node's agent, between what a client outside sees."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path

import msgspec

STEPS = {
    "seen": "the agent sees it",
    "sandbox": "sandbox (runtime)",
    "volumes": "volumes, /etc",
    "contents": "what it finds",
    "start": "start (runtime)",
    "status": "status written",
}
"""In the order in which they begin; the sandbox and the volumes are made at the same time."""


class Step(msgspec.Struct):
    """One step of one pod."""

    step: str
    pod: str
    began: float
    ended: float


class Stage(msgspec.Struct, frozen=True):
    """Medians over all pods, in seconds: from when a pod was seen to be bound until the step began and ended."""

    name: str
    began: float
    ended: float


def stages(file: Path, bound_at: Mapping[str, float], running_at: Mapping[str, float]) -> list[Stage]:
    """The first of each step of each pod, and at last when it was seen to run."""
    first: dict[tuple[str, str], Step] = {}
    for line in file.read_bytes().splitlines():
        step = msgspec.json.decode(line, type=Step)
        first.setdefault((step.pod, step.step), step)
    found = []
    for key, name in STEPS.items():
        pairs = [(first[pod, key], bound) for pod, bound in bound_at.items() if (pod, key) in first]
        if pairs:
            began = statistics.median(one.began - bound for one, bound in pairs)
            ended = statistics.median(one.ended - bound for one, bound in pairs)
            found.append(Stage(name, began, ended))
    seen = statistics.median(running_at[pod] - bound for pod, bound in bound_at.items())
    return [*found, Stage("seen to run", seen, seen)]
