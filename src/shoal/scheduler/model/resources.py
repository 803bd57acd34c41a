"""Resources by their place in a vector: four that every node has, then extended ones in the order they were seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

CPU: Final = 0
"""In thousandths of a core."""
MEMORY: Final = 1
"""In bytes."""
GPU: Final = 2
"""Whole devices. A device that is shared is taken from these, and its parts are counted elsewhere."""
PODS: Final = 3

Vector = NDArray[np.float64]
"""[resources]"""
Matrix = NDArray[np.float64]
"""[nodes, resources]"""
Mask = NDArray[np.bool_]
"""[nodes]"""

_FIXED: Final = ("cpu", "memory", "gpu", "pods")


class ResourceNames:
    """Which resource is where. Names are only ever added, so that a place stays what it was."""

    def __init__(self, extended: Iterable[str] = ()) -> None:
        self._places = {name: place for place, name in enumerate(_FIXED)}
        for name in extended:
            self.place(name)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterable[str]:
        return iter(self._places)

    def place(self, name: str) -> int:
        """Where a resource is; one that was never seen gets a place."""
        return self._places.setdefault(name, len(self._places))

    def known(self) -> Mapping[str, int]:
        """All places."""
        return self._places

    def vector(self, amounts: Mapping[str, float]) -> Vector:
        """These amounts in their places. ``cpu`` is in thousandths, ``gpu`` in devices."""
        places = {self.place(name): amount for name, amount in amounts.items()}
        made = np.zeros(len(self._places))
        for place, amount in places.items():
            made[place] = amount
        made.flags.writeable = False
        return made


def widened(vector: Vector, width: int) -> Vector:
    """The same amounts where more resources are known by now."""
    if len(vector) == width:
        return vector
    made = np.zeros(width)
    made[: len(vector)] = vector
    made.flags.writeable = False
    return made
