"""On which zones a pod is: as it was observed, as its order for the binder says, or as it was predicted.

A pod of which none of this is known counts for no zone: a guess would be wrong for as long as the pod runs.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from shoal.api import kai_names as names
from shoal.api.core import Pod
from shoal.api.scheduling_run_ai import NumaZoneAmount
from shoal.scheduler.resource_lists import amounts_of, written

Zones = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""Billionths of resources, by the names of zones: nodes may report the same zones in another order tomorrow."""


def noted_zones(pod: Pod, ordered: list[NumaZoneAmount], assumed: Zones) -> Zones:
    """The zones of a pod by the best that is known.

    ``ordered``: what its order for the binder says; ``assumed``: what it was given in the last cycle.
    """
    if observed := read_zones(pod.metadata.annotations.get(names.NUMA_OBSERVED, "")):
        return observed
    if ordered:
        return _zones(ordered)
    return assumed or read_zones(pod.metadata.annotations.get(names.NUMA_PREDICTED, ""))


@lru_cache(maxsize=8192)
def read_zones(text: str) -> Zones:
    """What an annotation says; nothing where nobody can understand it. Pods that are alike say the same."""
    if not text:
        return ()
    try:
        return _zones(msgspec.json.decode(text, type=list[NumaZoneAmount]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ()


def written_zones(zones: Zones) -> list[NumaZoneAmount]:
    """The same as orders for the binder have it."""
    return [NumaZoneAmount(zone=name, amount=written(dict(amounts))) for name, amounts in zones]


def zones_text(zones: list[NumaZoneAmount]) -> str:
    """The same as an annotation has it."""
    return msgspec.json.encode(zones).decode()


def _zones(said: list[NumaZoneAmount]) -> Zones:
    return tuple((one.zone, tuple(sorted(amounts_of(one.amount).items()))) for one in said)
