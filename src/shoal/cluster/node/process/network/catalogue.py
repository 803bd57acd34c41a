"""Which services there are, what stands behind them, and where pods are: one picture for names and for the proxy.

It is kept by changes, each of which costs no more than the slice or service that changed, and tells which service it
concerns. Nothing is derived here: whoever reads keeps what it makes of a service until that one changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from shoal.api.core.pod_details import PodDetails
from shoal.api.core.pods import is_finished
from shoal.api.discovery_k8s_io import SERVICE_NAME
from shoal.cluster.node.process.network.views import ProxiedService, ServingSlice, cluster_addresses
from shoal.kube import Change, Key
from shoal.kube.store import key_of


@dataclass(slots=True)
class Backed:
    """A service, and the slices of what stands behind it; either may be known before the other."""

    service: ProxiedService | None = None
    slices: dict[str, ServingSlice] = field(default_factory=dict)


class Catalogue:
    """Services with their slices, and the addresses of pods."""

    def __init__(self) -> None:
        self._backed: dict[str, dict[str, Backed]] = {}
        self._slices: dict[Key, ServingSlice] = {}
        self._pods: dict[str, dict[str, str]] = {}
        self._cluster_addresses: dict[str, Key] = {}
        self._named_addresses: dict[str, tuple[Key, ...]] = {}
        self._listeners: list[Callable[[Key], None]] = []

    # For readers

    def on_change(self, listener: Callable[[Key], None]) -> None:
        """Calls ``listener`` with the key of every service that changes, or behind which something does."""
        self._listeners.append(listener)

    def service(self, namespace: str, name: str) -> tuple[ProxiedService, list[ServingSlice]] | None:
        """A service and its slices."""
        found = self._backed.get(namespace, {}).get(name)
        if found is None or found.service is None:
            return None
        return found.service, list(found.slices.values())

    def service_keys(self) -> Iterator[Key]:
        """The keys of all services."""
        for namespace, names in self._backed.items():
            yield from (Key(namespace, name) for name, backed in names.items() if backed.service is not None)

    def pod_address(self, namespace: str, name: str) -> str | None:
        """Where a pod is."""
        return self._pods.get(namespace, {}).get(name)

    def has_namespace(self, namespace: str) -> bool:
        """Whether anything in a namespace has a name."""
        return namespace in self._backed or namespace in self._pods

    def service_at(self, address: str) -> Key | None:
        """The service that has an address of its own."""
        return self._cluster_addresses.get(address)

    def named_at(self, address: str) -> list[ServingSlice]:
        """The slices in which an endpoint with a hostname has this address."""
        return [self._slices[key] for key in self._named_addresses.get(address, ())]

    # What informers tell

    def service_changed(self, change: Change[ProxiedService]) -> None:
        """Takes a service that is new, changed or gone."""
        key = key_of(change.latest)
        backed = self._entry(key)
        for address in cluster_addresses(backed.service) if backed.service is not None else ():
            if self._cluster_addresses.get(address) == key:
                del self._cluster_addresses[address]
        backed.service = change.after
        for address in cluster_addresses(change.after) if change.after is not None else ():
            self._cluster_addresses[address] = key
        self._settle(key, backed)

    def slice_changed(self, change: Change[ServingSlice]) -> None:
        """Takes a slice that is new, changed, gone, or of another service than before."""
        key = key_of(change.latest)
        before = self._slices.pop(key, None)
        if before is not None:
            self._leave(key, before, has_moved=change.after is None or _owner(change.after) != _owner(before))
        if change.after is None or not (owner := _owner(change.after)):
            return
        self._slices[key] = change.after
        for address in _named(change.after):
            known = self._named_addresses.get(address, ())
            self._named_addresses[address] = known if key in known else (*known, key)
        backed = self._entry(owner)
        backed.slices[key.name] = change.after
        self._settle(owner, backed)

    def pod_changed(self, change: Change[PodDetails]) -> None:
        """Takes a pod that is new, changed or gone; only one that has an address and is not over has a name."""
        namespace, name = key_of(change.latest)
        address = change.after.status.pod_ip if change.after is not None and not is_finished(change.after) else ""
        if address:
            self._pods.setdefault(namespace, {})[name] = address
        elif namespace in self._pods:
            self._pods[namespace].pop(name, None)
            if not self._pods[namespace]:
                del self._pods[namespace]

    def _leave(self, key: Key, before: ServingSlice, *, has_moved: bool) -> None:
        for address in _named(before):
            left = tuple(one for one in self._named_addresses.get(address, ()) if one != key)
            if left:
                self._named_addresses[address] = left
            else:
                self._named_addresses.pop(address, None)
        owner = _owner(before)
        if has_moved and owner is not None:
            backed = self._entry(owner)
            backed.slices.pop(key.name, None)
            self._settle(owner, backed)

    def _entry(self, key: Key) -> Backed:
        return self._backed.setdefault(key.namespace, {}).setdefault(key.name, Backed())

    def _settle(self, key: Key, backed: Backed) -> None:
        """Forgets a service of which nothing is left, and says that it changed."""
        if backed.service is None and not backed.slices:
            del self._backed[key.namespace][key.name]
            if not self._backed[key.namespace]:
                del self._backed[key.namespace]
        for listener in self._listeners:
            listener(key)


def _owner(one: ServingSlice) -> Key | None:
    name = one.metadata.labels.get(SERVICE_NAME)
    return Key(one.metadata.namespace, name) if name else None


def _named(one: ServingSlice) -> Iterator[str]:
    for endpoint in one.endpoints or ():
        if endpoint.hostname:
            yield from endpoint.addresses
