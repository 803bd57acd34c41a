"""What nodes have by the word of other objects: GPUs that are handed out by claims, and room for volumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from shoal.scheduler.devices import gpus_by_node
from shoal.scheduler.watching.needs.stock import Stock
from shoal.scheduler.watching.needs.volumes import ATTACHABLE

_MANY: Final = 1e6
"""Volumes that a node takes which names no limit, where other nodes do."""


@dataclass(frozen=True, slots=True)
class Gear:
    """What a node has besides what it says itself."""

    claimed_gpus: int = 0
    attachable: Mapping[str, float] = field(default_factory=dict)
    """How many volumes of each limited driver may be attached, by the resource's name."""


NO_GEAR: Final = Gear()


def gear_of(stock: Stock) -> tuple[dict[str, Gear], Gear]:
    """The gear of the nodes that have any of their own, and that of all others."""
    limits = {
        name: {
            driver.name: float(driver.allocatable.count)
            for driver in found.spec.drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        for (_, name), found in stock.node_drivers.items()
    }
    limited = sorted({driver for of_node in limits.values() for driver in of_node})
    gpus = gpus_by_node(stock.slices.values())
    unlimited = {f"{ATTACHABLE}{driver}": _MANY for driver in limited}
    made = {
        name: Gear(
            gpus.get(name, 0),
            {f"{ATTACHABLE}{driver}": limits.get(name, {}).get(driver, _MANY) for driver in limited},
        )
        for name in {*limits, *gpus}
    }
    return made, Gear(attachable=unlimited) if unlimited else NO_GEAR
