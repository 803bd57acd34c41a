"""Gives Services their addresses and node ports, none to two at once."""

from __future__ import annotations

import dataclasses

from shoal.cluster.apiserver.builtin.service_addresses import Ranges, Taken, addresses_of, allocate, ports_of
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.state import State

SERVICES = "services"


class ServiceAddresses:
    """Knows what Services hold: those in the store, and those on their way there."""

    def __init__(self, state: State, ranges: Ranges = Ranges()) -> None:
        self._state = state
        self._ranges = ranges
        self._seen = -1
        self._addresses: dict[str, tuple[str, str]] = {}
        self._ports: dict[int, tuple[str, str]] = {}
        self._held: dict[tuple[str, str], Object] = {}

    def allocate(self, service: Object, old: Object | None, *, is_trial: bool = False) -> None:
        """Completes a Service with what it asks for and was not given; raises Refused where that is taken."""
        if _needs_none(service):
            allocate(service, Taken(), self._ranges, old=old)
            return
        self._look()
        owner = _owner(service)
        addresses = {address for address, holder in self._addresses.items() if holder != owner}
        ports = {port for port, holder in self._ports.items() if holder != owner}
        for holder, held in self._held.items():
            if holder != owner:
                addresses |= addresses_of(held)
                ports |= ports_of(held)
        ranges = dataclasses.replace(self._ranges, is_trial=is_trial)
        allocate(service, Taken(addresses=addresses, ports=ports), ranges, old=old)
        self._held[owner] = {"spec": dict(service["spec"])}

    def release(self, value: Object) -> None:
        """A write has ended: what it took is in the store now, or free again."""
        if value.get("kind") == "Service" and self._held:
            self._held.pop(_owner(value), None)

    def _look(self) -> None:
        changed = self._state.store.changed(SERVICES)
        if changed == self._seen:
            return
        self._seen = changed
        self._addresses, self._ports = {}, {}
        for service in self._state.list(SERVICES):
            owner = _owner(service)
            self._addresses |= dict.fromkeys(addresses_of(service), owner)
            self._ports |= dict.fromkeys(ports_of(service), owner)


def _needs_none(service: Object) -> bool:
    """Whether it is headless: such a Service takes nothing from others, however many there are."""
    spec = service["spec"]
    return (spec.get("clusterIP"), spec.get("type", "ClusterIP")) == ("None", "ClusterIP")


def _owner(service: Object) -> tuple[str, str]:
    return service["metadata"].get("namespace", ""), service["metadata"].get("name", "")
