"""Ports of the host: two pods on one node cannot have the same, unless each is bound to an address of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np

from shoal.scheduler.model.resources import Mask

HostPort = tuple[str, int, str]
"""(protocol, port, address) of the host."""

_EVERY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 (what pods write, nothing is bound here)


class PortIndex:
    """Who has which port of which node."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._rows: dict[tuple[str, int], dict[str, Counter[int]]] = {}
        """By protocol and port, then by address: how many pods of each row have it."""

    def add(self, ports: Iterable[HostPort], row: int, by: int = 1) -> None:
        """Counts the ports of a pod on a node, or no longer (-1)."""
        for port in ports:
            protocol, number, address = _plain(port)
            rows = self._rows.setdefault((protocol, number), {}).setdefault(address, Counter())
            rows[row] += by
            if not rows[row]:
                del rows[row]

    def taken(self, ports: Iterable[HostPort]) -> Mask:
        """[nodes] where one of these ports is taken."""
        mask = np.zeros(self._size, dtype=np.bool_)
        for port in ports:
            protocol, number, address = _plain(port)
            for other, rows in self._rows.get((protocol, number), {}).items():
                if rows and (address == other or _EVERY_ADDRESS in (address, other)):
                    mask[list(rows)] = True
        return mask


def _plain(port: HostPort) -> HostPort:
    protocol, number, address = port
    return protocol or "TCP", number, address or _EVERY_ADDRESS
