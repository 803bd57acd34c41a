"""Gives Services their addresses and node ports, none to two at once."""

from __future__ import annotations

import time

from shoal.cluster.apiserver.builtin.service_addresses import Ranges, Taken, addresses_of, allocate, ports_of
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.state import State

SERVICES = "services"

_HELD_SECONDS = 30.0


class ServiceAddresses:
    """Knows what Services hold: those in the store, and for a while those on their way there."""

    def __init__(self, state: State, ranges: Ranges = Ranges()) -> None:
        self._state = state
        self._ranges = ranges
        self._seen = -1
        self._addresses: dict[str, tuple[str, str]] = {}
        self._ports: dict[int, tuple[str, str]] = {}
        self._held: list[tuple[float, tuple[str, str], Object]] = []

    def allocate(self, service: Object, old: Object | None) -> None:
        """Completes a Service with what it asks for and was not given; raises Refused where that is taken."""
        self._look()
        owner = (service["metadata"].get("namespace", ""), service["metadata"].get("name", ""))
        addresses = {address for address, holder in self._addresses.items() if holder != owner}
        ports = {port for port, holder in self._ports.items() if holder != owner}
        self._held = [held for held in self._held if held[0] > time.monotonic()]
        for _, holder, held in self._held:
            if holder != owner:
                addresses |= addresses_of(held)
                ports |= ports_of(held)
        allocate(service, Taken(addresses=addresses, ports=ports), self._ranges, old=old)
        self._held.append((time.monotonic() + _HELD_SECONDS, owner, {"spec": dict(service["spec"])}))

    def _look(self) -> None:
        changed = self._state.store.changed(SERVICES)
        if changed == self._seen:
            return
        self._seen = changed
        self._addresses, self._ports = {}, {}
        for service in self._state.list(SERVICES):
            owner = (service["metadata"]["namespace"], service["metadata"]["name"])
            self._addresses |= dict.fromkeys(addresses_of(service), owner)
            self._ports |= dict.fromkeys(ports_of(service), owner)
