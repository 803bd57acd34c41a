"""How resources, amounts and moments are called when people are told of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from shoal.api.kai_names import MIG_PREFIX
from shoal.api.meta.time import format_time
from shoal.scheduler.explaining.explanation import Figures
from shoal.scheduler.model.amounts import UNLIMITED, Amounts
from shoal.scheduler.model.resources import CPU, GPU, MEMORY, PODS, ResourceNames, Vector

GPU_MEMORY: Final = "GPU memory"
ALIGNED_ROOM: Final = "room in NUMA zones as the node's topology policy wants it"
_NAMES: Final = {CPU: "CPU cores", MEMORY: "memory", GPU: "GPUs", PODS: "room for pods"}
_UNITS: Final = {CPU: 1000.0, MEMORY: 1e9}
_SINGULAR: Final = {"GPUs": "GPU", "CPU cores": "CPU core"}
AMOUNTS: Final = (("CPU cores", 1000.0), ("GB of memory", 1e9), ("GPUs", 1.0))
"""By place in amounts: what people call it, and how much of it is one."""


def resource_words(names: ResourceNames) -> dict[int, str]:
    """What each place of a vector is called."""
    return {place: _NAMES.get(place) or _extended(name) for name, place in names.known().items()}


def in_people_s_units(place: int, amount: float) -> float:
    """An amount of a vector in the unit that people use: cores, GB, devices."""
    return round(amount / _UNITS.get(place, 1.0), 3)


def asked_for(vector: Vector, words: dict[int, str]) -> dict[str, float]:
    """What a vector holds, by words."""
    return {
        words[place]: in_people_s_units(place, float(amount))
        for place, amount in enumerate(vector)
        if amount > 0 and place != PODS
    }


def figures(amounts: Amounts) -> Figures:
    """Amounts of queues, in the units of explanations."""
    cpu, memory, gpu = (None if amount == UNLIMITED else amount for amount in amounts)
    return Figures(
        cpu_cores=None if cpu is None else round(cpu / 1000, 3),
        memory_bytes=memory,
        gpus=None if gpu is None else round(gpu, 3),
    )


def amount_words(place: int, amount: float) -> str:
    """An amount of what queues share, such as ``2 GPUs``."""
    words, unit = AMOUNTS[place]
    return so_many(amount / unit, words)


def so_many(amount: float, words: str) -> str:
    """``1 GPU``, ``2 GPUs``."""
    shown = number(amount)
    return f"{shown} {_SINGULAR.get(words, words) if shown == '1' else words}"


def number(amount: float) -> str:
    """A number without decimals that say nothing; what has no limit in a word."""
    return "unlimited" if amount == UNLIMITED else f"{amount:.3f}".rstrip("0").rstrip(".") or "0"


def listed(amounts: Amounts, among: Amounts | None = None) -> str:
    """Amounts in a row; ``among``: only of what there is some here."""
    shown = amounts if among is None else among
    parts = [amount_words(place, amounts[place]) for place in (2, 0, 1) if shown[place]]
    return ", ".join(parts) or "nothing"


def counted(count: int, word: str) -> str:
    """``1 pod``, ``2 pods``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def moment(seconds: float) -> datetime:
    """A moment that is counted in seconds, to the second."""
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=0)


def moment_words(seconds: float) -> str:
    """The same for people."""
    return format_time(moment(seconds))


def _extended(name: str) -> str:
    return f"MIG profile {name.removeprefix(MIG_PREFIX)}" if name.startswith(MIG_PREFIX) else name
