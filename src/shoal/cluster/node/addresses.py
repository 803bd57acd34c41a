"""IP addresses for nodes and pods: each one's own, the same after a restart, and given to others late."""

from __future__ import annotations

import ipaddress


class NoAddress(Exception):
    """All addresses of a network are in use."""


class Addresses:
    """The addresses of one network. What is in use is told from the objects that show it, so nothing is stored."""

    def __init__(self, network: str) -> None:
        self._network = ipaddress.ip_network(network)
        self._first = int(self._network.network_address) + 1
        self._end = int(self._network.broadcast_address)
        self._next = self._first
        self._used: set[int] = set()
        self._given: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._used)

    def take(self, owner: str) -> str:
        """An address for an owner that shows none yet; the same one until it does. Raises NoAddress."""
        number = self._given.get(owner)
        if number is None:
            number = self._given[owner] = self._free()
            self._used.add(number)
        return str(ipaddress.ip_address(number))

    def shown(self, owner: str, address: str) -> None:
        """An owner shows this address: it is in use, and whatever else was meant for the owner is not."""
        number = self._number(address)
        given = self._given.pop(owner, None)
        if given is not None and given != number:
            self._used.discard(given)
        if number is None:
            return
        self._used.add(number)
        if given is None:
            # It was given before a restart: we go on behind what is in use, not among it.
            self._next = max(self._next, number + 1)

    def release(self, owner: str, address: str = "") -> None:
        """An owner needs its address no more, nor the one that was meant for it."""
        for number in (self._given.pop(owner, None), self._number(address)):
            if number is not None:
                self._used.discard(number)

    def _free(self) -> int:
        for start, end in ((self._next, self._end), (self._first, self._next)):
            for number in range(start, min(end, self._end)):
                if number not in self._used:
                    self._next = number + 1
                    return number
        raise NoAddress(f"all {self._end - self._first} addresses of {self._network} are in use: delete some pods")

    def _number(self, address: str) -> int | None:
        try:
            number = int(ipaddress.ip_address(address))
        except ValueError:
            return None
        return number if self._first <= number < self._end else None
