"""A queue's quota and use in the units of metrics: devices, cores, bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from shoal.api import kai_names as names
from shoal.api.scheduling_run_ai import QueueResource, QueueSpec
from shoal.scheduler.gpu_requests import mig_slices
from shoal.scheduler.resource_lists import ONE

_CORES: Final = 1 / 1000
_BYTES: Final = 10**6


class Figures(NamedTuple):
    """An amount of each resource that queues share."""

    gpus: float = 0.0
    cpu_cores: float = 0.0
    memory_bytes: float = 0.0


def quota_of(spec: QueueSpec) -> Figures:
    """What a queue is guaranteed; infinite where it is unlimited."""
    resources = spec.resources
    if resources is None:
        return Figures()
    return Figures(_quota(resources.gpu, 1), _quota(resources.cpu, _CORES), _quota(resources.memory, _BYTES))


def held(amounts: Mapping[str, int]) -> Figures:
    """What amounts come to."""
    return Figures(_gpus(amounts), amounts.get("cpu", 0) / ONE, amounts.get("memory", 0) / ONE)


def _quota(resource: QueueResource, unit: float) -> float:
    quota = resource.quota or 0.0
    return math.inf if quota < 0 else quota * unit


def _gpus(amounts: Mapping[str, int]) -> float:
    """Devices, whole and in parts, slices of MIG instances, and devices that are claimed by class."""
    nano = 0
    for name, amount in amounts.items():
        if name in names.GPUS or ("/" not in name and "gpu" in name.lower()):
            nano += amount
        elif name.startswith(names.MIG_PREFIX):
            nano += amount * mig_slices(name.removeprefix(names.MIG_PREFIX))
    return nano / ONE
