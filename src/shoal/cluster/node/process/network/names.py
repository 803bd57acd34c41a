"""Which names there are in a cluster, and what they stand for: Kubernetes' DNS specification, as CoreDNS answers it.

One thing is added to it. Where no service of its namespace has that name, a pod's own name stands for the pod, as if
it were a service: pods find each other by name, with the search list that they have anyway.

Nothing is asked of anybody else. A name outside of the cluster does not exist, and that is said at once: a refusal
would be the better manners, but there are resolvers that take it for silence and wait.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shoal.api.discovery_k8s_io import SERVICE_NAME, EndpointPort
from shoal.cluster.node.process.layout import CLUSTER_DOMAIN, NODE_ADDRESS
from shoal.cluster.node.process.network.catalogue import Catalogue
from shoal.cluster.node.process.network.messages import Code, Record, Reply, Soa, Srv, Type
from shoal.cluster.node.process.network.views import (
    ProxiedService,
    ServingEndpoint,
    ServingSlice,
    cluster_addresses,
    is_headless,
    is_ready,
)
from shoal.kube import Key

VERSION = "1.1.0"
"""Of the specification."""
TTL = 5
"""Seconds; as little as CoreDNS says by itself, since pods come and go."""
SERVER = f"ns.dns.{CLUSTER_DOMAIN}"

_ALIASES = 8
"""How many names may stand for another before one has an address."""


@dataclass(slots=True)
class Meaning:
    """What one name stands for."""

    addresses: list[str] = field(default_factory=list)
    ports: list[Srv] = field(default_factory=list)
    alias: str = ""
    others: list[tuple[Type, str | Soa]] = field(default_factory=list)

    def records(self, name: str, type_: int) -> tuple[Record, ...]:
        """The records of one type."""
        if type_ == Type.SRV:
            return tuple(Record(name, Type.SRV, port, TTL) for port in self.ports)
        if type_ == Type.A:
            return tuple(Record(name, Type.A, one, TTL) for one in self.addresses if ":" not in one)
        if type_ == Type.AAAA:
            return tuple(Record(name, Type.AAAA, one, TTL) for one in self.addresses if ":" in one)
        if type_ == Type.ANY:
            every = (Type.A, Type.AAAA, Type.SRV, *{type_ for type_, _ in self.others})
            return tuple(record for one in every for record in self.records(name, one))
        return tuple(Record(name, one, value, TTL) for one, value in self.others if one == type_)


NOTHING = Meaning()
"""A name that exists for the sake of others below it."""


class Names:
    """Answers questions from a catalogue. What a service's names mean is made out once, and kept until it changes."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[Key, dict[str, Meaning]] = {}
        catalogue.on_change(self._forget)

    def reply(self, name: str, type_: int) -> Reply:
        """What is said to a question."""
        answers: list[Record] = []
        asked = name
        for _ in range(_ALIASES):
            meaning = self._meaning(asked)
            if meaning is None or not meaning.alias:
                break
            answers.append(Record(asked, Type.CNAME, meaning.alias, TTL))
            if type_ in (Type.CNAME, Type.ANY):
                return Reply(answers=tuple(answers))
            asked = meaning.alias
        if meaning is None:
            return Reply(Code.NO_ERROR, tuple(answers)) if answers else Reply(Code.NO_SUCH_NAME, (), _soa(asked))
        found = meaning.records(asked, type_)
        if not found:
            return Reply(Code.NO_ERROR, tuple(answers), _soa(asked))
        return Reply(Code.NO_ERROR, (*answers, *found), (), self._addresses_of(found))

    def _meaning(self, name: str) -> Meaning | None:
        """What a name means; None where it does not exist."""
        if name == CLUSTER_DOMAIN:
            return Meaning(others=[(Type.SOA, _authority(name)), (Type.NS, SERVER)])
        if not name.endswith(f".{CLUSTER_DOMAIN}"):
            return self._outside(name)
        match name.removesuffix(f".{CLUSTER_DOMAIN}").split("."):
            case ["svc"] | ["pod"] | ["dns"]:
                return NOTHING
            case ["dns-version"]:
                return Meaning(others=[(Type.TXT, VERSION)])
            case ["ns", "dns"]:
                return Meaning(addresses=[NODE_ADDRESS])
            case [namespace, "svc" | "pod"]:
                return NOTHING if self._catalogue.has_namespace(namespace) else None
            case [dashed, _, "pod"]:
                return _dashed(dashed)
            case [*inner, service, namespace, "svc"] if len(inner) <= 2:
                return self._of_service(Key(namespace, service), ".".join(inner))
        return None

    def _of_service(self, key: Key, inner: str) -> Meaning | None:
        known = self._known.get(key)
        if known is None:
            found = self._catalogue.service(*key)
            if found is None:
                address = self._catalogue.pod_address(*key) if not inner else None
                return Meaning(addresses=[address]) if address else None
            known = self._known[key] = service_meanings(*found)
        return known.get(inner)

    def _outside(self, name: str) -> Meaning | None:
        if name == "localhost" or name.endswith(".localhost"):
            return Meaning(addresses=["127.0.0.1", "::1"])
        address = _reversed(name)
        if address is None:
            return None
        if address == "127.0.0.1":
            return Meaning(others=[(Type.PTR, "localhost")])
        names = self._names_at(address)
        return Meaning(others=[(Type.PTR, one) for one in names]) if names else None

    def _names_at(self, address: str) -> list[str]:
        service = self._catalogue.service_at(address)
        if service is not None:
            return [_service_name(service)]
        names = set()
        for one in self._catalogue.named_at(address):
            owner = Key(one.metadata.namespace, one.metadata.labels[SERVICE_NAME])
            found = self._catalogue.service(*owner)
            if found is None:
                continue
            for endpoint in one.endpoints or ():
                if endpoint.hostname and address in endpoint.addresses and _is_named(found[0], endpoint):
                    names.add(f"{endpoint.hostname.lower()}.{_service_name(owner)}")
        return sorted(names)

    def _addresses_of(self, records: Sequence[Record]) -> tuple[Record, ...]:
        """Where the targets of an answer are, so that nobody need ask again."""
        targets = dict.fromkeys(record.value.target for record in records if isinstance(record.value, Srv))
        found = [(target, meaning) for target in targets if (meaning := self._meaning(target)) is not None]
        return tuple(
            record
            for target, meaning in found
            for type_ in (Type.A, Type.AAAA)
            for record in meaning.records(target, type_)
        )

    def _forget(self, key: Key) -> None:
        self._known.pop(key, None)


def service_meanings(service: ProxiedService, slices: Iterable[ServingSlice]) -> dict[str, Meaning]:
    """The names below a service's own, and that one, which is empty here; what has no meaning does not exist."""
    if service.spec.type == "ExternalName":
        alias = service.spec.external_name.rstrip(".").lower()
        return {"": Meaning(alias=alias)} if alias else {}
    own = _service_name(Key(service.metadata.namespace, service.metadata.name))
    behind = _Behind()
    for one in slices:
        for endpoint in one.endpoints or ():
            if _is_named(service, endpoint):
                behind.add(endpoint, one.ports or (), own)
    if is_headless(service):
        addresses, ports = list(behind.addresses), list(behind.ports)
    else:
        addresses = cluster_addresses(service)
        ports = [(port.name, port.protocol, Srv(100, port.port, own)) for port in service.spec.ports]
    return {**behind.names, **_ported(addresses, ports)} if addresses else {}


@dataclass(slots=True)
class _Behind:
    """What stands behind a service: under names of their own, and all together. Each once, in the order seen."""

    names: dict[str, Meaning] = field(default_factory=dict)
    addresses: dict[str, None] = field(default_factory=dict)
    ports: dict[tuple[str, str, Srv], None] = field(default_factory=dict)

    def add(self, endpoint: ServingEndpoint, ports: Iterable[EndpointPort], own: str) -> None:
        for address in endpoint.addresses:
            self.addresses[address] = None
            name = (endpoint.hostname or address.replace(".", "-").replace(":", "-")).lower()
            meaning = self.names.setdefault(name, Meaning())
            if address not in meaning.addresses:
                meaning.addresses.append(address)
            for port in ports:
                if port.port is not None:
                    place = Srv(100, port.port, f"{name}.{own}")
                    self.ports[port.name or "", port.protocol or "TCP", place] = None
                    if place not in meaning.ports:
                        meaning.ports.append(place)


def _ported(addresses: list[str], ports: Sequence[tuple[str, str, Srv]]) -> dict[str, Meaning]:
    """A service's own name, and those of its ports; several places for one port share its weight."""
    found = {"": Meaning(addresses=addresses, ports=_weighed([place for _, _, place in ports]))}
    by_name: dict[tuple[str, str], list[Srv]] = {}
    for name, protocol, place in ports:
        if name:
            by_name.setdefault((name.lower(), protocol.lower()), []).append(place)
    for (name, protocol), places in by_name.items():
        found[f"_{protocol}"] = NOTHING
        found[f"_{name}._{protocol}"] = Meaning(ports=_weighed(places))
    return found


def _weighed(places: list[Srv]) -> list[Srv]:
    return [place._replace(weight=max(100 // len(places), 1)) for place in places]


def _is_named(service: ProxiedService, endpoint: ServingEndpoint) -> bool:
    return is_ready(endpoint) or service.spec.publish_not_ready_addresses


def _service_name(key: Key) -> str:
    return f"{key.name}.{key.namespace}.svc.{CLUSTER_DOMAIN}"


def _dashed(name: str) -> Meaning | None:
    """An address written with dashes; whose it is does not matter."""
    for candidate in (name.replace("-", "."), name.replace("-", ":")):
        try:
            return Meaning(addresses=[str(ipaddress.ip_address(candidate))])
        except ValueError:
            continue
    return None


def _reversed(name: str) -> str | None:
    """The address that a name of the reverse tree is for."""
    numbers = name.removesuffix(".in-addr.arpa").split(".")
    if not name.endswith(".in-addr.arpa") or len(numbers) != 4:
        return None
    try:
        return str(ipaddress.IPv4Address(".".join(reversed(numbers))))
    except ValueError:
        return None


def _soa(name: str) -> tuple[Record]:
    """Who says that something does not exist: that may be believed for a while."""
    zone = CLUSTER_DOMAIN if name == CLUSTER_DOMAIN or name.endswith(f".{CLUSTER_DOMAIN}") else ""
    return (Record(zone, Type.SOA, _authority(zone), TTL),)


def _authority(zone: str) -> Soa:
    return Soa(SERVER, f"hostmaster.{zone or CLUSTER_DOMAIN}", 1, TTL)
