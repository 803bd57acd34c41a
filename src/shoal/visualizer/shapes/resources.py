"""Amounts of resources as numbers: whole ones, as the first programs that read them expect, and GPUs exactly beside.

Both generations of these clients read ``gpu`` as a 64-bit integer, so it is rounded and never a fraction; ``gpus`` says
what it really is.
"""

from __future__ import annotations

import math

import msgspec

from shoal.api.visualizer import UNLIMITED, Amounts, Bound, Bounds, Weights

_NAMES = {"milli_cpu": "milliCPU", "scalar_resources": "scalarResources"}


class ResourceStats(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename=_NAMES):
    """So much of each resource: milli-cores, bytes, devices."""

    milli_cpu: int
    memory: int
    gpu: int
    gpus: float
    scalar_resources: dict[str, int] = {}
    """Extended resources; left out where there are none."""


class BoundedStats(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename=_NAMES):
    """A bound of each resource; what is unlimited is 0 here and named in ``unlimited``."""

    milli_cpu: int
    memory: int
    gpu: int
    gpus: float
    unlimited: list[str]


class WeightStats(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename=_NAMES):
    """A weight for each resource."""

    milli_cpu: float
    memory: float
    gpu: float


def resource_stats(amounts: Amounts) -> ResourceStats:
    """An amount as it is shown."""
    return ResourceStats(
        milli_cpu=whole(amounts.milli_cpu),
        memory=whole(amounts.memory),
        gpu=whole(amounts.gpus),
        gpus=exact(amounts.gpus),
        scalar_resources=_extended(amounts) if amounts.extended else {},
    )


def bounded_stats(bounds: Bounds) -> BoundedStats:
    """A bound as it is shown."""
    unlimited = []
    if bounds.milli_cpu is UNLIMITED:
        unlimited.append("milliCPU")
    if bounds.memory is UNLIMITED:
        unlimited.append("memory")
    if bounds.gpus is UNLIMITED:
        unlimited.append("gpu")
    return BoundedStats(
        milli_cpu=whole(_finite(bounds.milli_cpu)),
        memory=whole(_finite(bounds.memory)),
        gpu=whole(_finite(bounds.gpus)),
        gpus=exact(_finite(bounds.gpus)),
        unlimited=unlimited,
    )


def weight_stats(weights: Weights) -> WeightStats:
    """A weight as it is shown."""
    return WeightStats(milli_cpu=float(weights.milli_cpu), memory=float(weights.memory), gpu=float(weights.gpus))


def missing(wanted: Amounts, *, and_no_more_than: Amounts, had: Amounts) -> Amounts:
    """What somebody who wants so much, and is entitled to so much, has not."""
    return Amounts(
        milli_cpu=max(0.0, min(wanted.milli_cpu, and_no_more_than.milli_cpu) - had.milli_cpu),
        memory=max(0.0, min(wanted.memory, and_no_more_than.memory) - had.memory),
        gpus=max(0.0, min(wanted.gpus, and_no_more_than.gpus) - had.gpus),
    )


def beyond(bounds: Bounds, *, had: Amounts) -> Amounts:
    """What somebody has beyond a bound."""
    return Amounts(
        milli_cpu=_beyond(bounds.milli_cpu, had.milli_cpu),
        memory=_beyond(bounds.memory, had.memory),
        gpus=_beyond(bounds.gpus, had.gpus),
    )


def whole(amount: float) -> int:
    """The nearest whole number; a half is rounded away from zero. What is no amount at all is none."""
    try:
        return int(amount + 0.5) if amount >= 0 else -int(0.5 - amount)
    except (OverflowError, ValueError):  # infinite, or not a number
        return 0


def exact(amount: float) -> float:
    """The amount without the noise of many additions: two that mean the same are written the same."""
    return round(float(amount), 4) + 0.0 if math.isfinite(amount) else 0.0  # adding 0.0 makes 0.0 of -0.0


def _extended(amounts: Amounts) -> dict[str, int]:
    return {name: whole(amount) for name, amount in sorted(amounts.extended.items())}


def _beyond(bound: Bound, had: float) -> float:
    return 0.0 if bound is UNLIMITED else max(0.0, had - bound)


def _finite(bound: Bound) -> float:
    """What is unlimited counts as 0, as in the first version of this API; so does what is negative."""
    return 0.0 if bound is UNLIMITED else max(0.0, bound)
