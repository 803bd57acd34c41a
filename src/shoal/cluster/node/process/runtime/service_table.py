"""The table that translates the addresses of Services: what is in it before there is any Service.

Sets hold what differs between Services, so that a change is a few elements:

- ``services`` maps a Service's address, protocol and port to a chain that chooses one of so many endpoints.
- ``endpoints`` maps these and the number of an endpoint to its address and port.
- ``affinity`` maps a client and a Service to the endpoint it was sent to, for as long as the Service's session
  affinity lasts, and ``members`` holds which endpoints such a Service has now, so that none is used that has gone.
- ``hairpins`` holds each endpoint's address as source and destination: a pod that reaches itself through a Service
  would not take packets that seem to come from itself, so these alone get the node's address.

Rules look at the first packet of a connection alone. Services without endpoints have no elements: their addresses are
the node's own, where nothing listens, so that the kernel refuses at once.
"""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

from shoal.cluster.node.process.runtime import nftables
from shoal.cluster.node.process.runtime.nftables import Base, Element, Expression, Goto, Request

TABLE = "shoal-services"
SERVICES, ENDPOINTS, MEMBERS, AFFINITY, HAIRPINS = "services", "endpoints", "members", "affinity", "hairpins"
PROTOCOLS = {"TCP": socket.IPPROTO_TCP, "UDP": socket.IPPROTO_UDP, "SCTP": socket.IPPROTO_SCTP}

_DISPATCH = "dispatch"
_CLIENTS = 65_535
"""How many clients are remembered; one beyond that is sent to any endpoint each time."""
_SOURCE, _DESTINATION = 12, 16


class Choice(NamedTuple):
    """The chain that chooses one of several endpoints; Services with equally many share it."""

    endpoints: int
    affinity_seconds: int | None = None

    @property
    def chain(self) -> str:
        """Its name."""
        seconds = self.affinity_seconds
        return f"choose-{self.endpoints}" if seconds is None else f"choose-{self.endpoints}-keep-{seconds}"


def new_table() -> list[Request]:
    """Requests for an empty table in the place of any that is there."""
    hooks = {"prerouting": nftables.PREROUTING, "output": nftables.OUTPUT}
    return [
        nftables.add_table(TABLE),
        nftables.delete_table(TABLE),
        nftables.add_table(TABLE),
        nftables.add_set(TABLE, SERVICES, number=1, key=12, verdicts=True),
        nftables.add_set(TABLE, ENDPOINTS, number=2, key=16, data=8),
        nftables.add_set(TABLE, MEMBERS, number=3, key=20),
        nftables.add_set(TABLE, AFFINITY, number=4, key=16, data=8, size=_CLIENTS),
        nftables.add_set(TABLE, HAIRPINS, number=5, key=8),
        nftables.add_chain(TABLE, _DISPATCH),
        nftables.add_rule(TABLE, _DISPATCH, *_load_service(0), nftables.look_up_verdict(SERVICES, 0)),
        *(nftables.add_chain(TABLE, name, hook) for name, hook in hooks.items()),
        *(nftables.add_rule(TABLE, name, nftables.jump(_DISPATCH)) for name in hooks),
        nftables.add_chain(TABLE, "postrouting", nftables.POSTROUTING),
        nftables.add_rule(
            TABLE,
            "postrouting",
            _load_address(0, _SOURCE),
            _load_address(1, _DESTINATION),
            nftables.look_up(HAIRPINS, 0),
            nftables.masquerade(),
        ),
    ]


def add_choice(choice: Choice) -> list[Request]:
    """Requests for a chain that chooses endpoints."""
    choose = (*_load_service(0), nftables.load_random(3, below=choice.endpoints))
    rules = [(*choose, nftables.look_up(ENDPOINTS, 0, 4), nftables.translate_destination(4, 5))]
    if choice.affinity_seconds is not None:
        client = (_load_address(6, _SOURCE), *_load_service(7))
        keep = nftables.remember(AFFINITY, 6, 10, seconds=choice.affinity_seconds)
        kept = nftables.look_up(AFFINITY, 6, 10)
        is_member = (*_load_service(0), nftables.look_up(AFFINITY, 6, 3), nftables.look_up(MEMBERS, 0))
        translate = nftables.translate_destination(10, 11)
        rules = [
            (*client, kept, *is_member, keep, translate),
            (*client, nftables.forget(AFFINITY, 6)),
            (*choose, nftables.look_up(ENDPOINTS, 0, 10), *client, keep, translate),
            *rules,  # where no more clients can be remembered
        ]
    return [
        nftables.add_chain(TABLE, choice.chain),
        *(nftables.add_rule(TABLE, choice.chain, *rule) for rule in rules),
    ]


def delete_choice(choice: Choice) -> Request:
    """The request that removes such a chain, once no Service needs it."""
    return nftables.delete_chain(TABLE, choice.chain)


# Elements


def service_key(address: str, protocol: str, port: int) -> bytes:
    """What Services are found by."""
    return _key(address, PROTOCOLS[protocol].to_bytes(1, "big"), port.to_bytes(2, "big"))


def service_element(service: bytes, choice: Choice) -> Element:
    """Sends connections to a Service to a chain that chooses."""
    return Element(service, Goto(choice.chain))


def endpoint_element(service: bytes, number: int, address: str, port: int) -> Element:
    """One of a Service's endpoints, by its number."""
    return Element(service + struct.pack("=I", number), _key(address, port.to_bytes(2, "big")))


def member_element(service: bytes, address: str, port: int) -> Element:
    """An endpoint that clients may be kept at."""
    return Element(service + _key(address, port.to_bytes(2, "big")))


def hairpin_element(address: str) -> Element:
    """An endpoint that may reach itself."""
    return Element(_key(address) * 2)


def _key(address: str, *fields: bytes) -> bytes:
    return socket.inet_aton(address) + b"".join(field.ljust(4, b"\0") for field in fields)


def _load_service(register: int) -> tuple[Expression, ...]:
    return (
        _load_address(register, _DESTINATION),
        nftables.load_protocol(register + 1),
        nftables.load_payload(register + 2, Base.TRANSPORT, 2, 2),
    )


def _load_address(register: int, offset: int) -> Expression:
    return nftables.load_payload(register, Base.NETWORK, offset, 4)
