"""The rules for the kernel: that a table which follows them leads each Service where it should, after any changes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.cluster.node.process.network.balance import Backend, Balance, Front
from shoal.cluster.node.process.network.rules import Rules, outdated_datagrams, service_rules, transactions
from shoal.cluster.node.process.runtime.netlink_messages import attributes
from shoal.cluster.node.process.runtime.nftables import Request
from shoal.kube import Key

NEW_CHAIN, DELETE_CHAIN, NEW_RULE, NEW_ELEMENT, DELETE_ELEMENT = 3, 5, 6, 12, 14
WEB, API = Key("default", "web"), Key("default", "api")
FRONT, DATAGRAMS = Front("10.96.0.7", 80), Front("10.96.0.7", 53, is_datagram=True)

Fronts: TypeAlias = Mapping[Front, Balance]


class Table:
    """A table as the kernel keeps it, which refuses what the kernel would."""

    def __init__(self) -> None:
        self.chains: set[str] = set()
        self.sets: dict[str, dict[bytes, Any]] = {"services": {}, "endpoints": {}, "members": {}, "hairpins": {}}

    def apply(self, requests: list[Request]) -> None:
        for request in requests:
            found = dict(attributes(request.body))
            if request.kind == NEW_CHAIN:
                self.chains.add(_text(found[3]))
            elif request.kind == DELETE_CHAIN:
                name = _text(found[3])
                assert name not in self.sets["services"].values(), f"{name} is in use"
                self.chains.remove(name)
            elif request.kind in (NEW_ELEMENT, DELETE_ELEMENT):
                kept = self.sets[_text(found[2])]
                for _, element in attributes(found[3]):
                    self._change(kept, dict(attributes(element)), is_new=request.kind == NEW_ELEMENT)
            else:
                assert request.kind == NEW_RULE

    def _change(self, kept: dict[bytes, Any], parts: dict[int, bytes], *, is_new: bool) -> None:
        key = dict(attributes(parts[1]))[1]
        assert (key in kept) is not is_new, f"{key!r} is {'there already' if is_new else 'not there'}"
        if not is_new:
            del kept[key]
            return
        data = dict(attributes(parts.get(2, b"")))
        kept[key] = data.get(1)
        if 2 in data:
            kept[key] = _text(dict(attributes(data[2]))[2])
            assert kept[key] in self.chains

    def fronts(self) -> dict[Front, Balance]:
        """What the table does, told in the words that it was made from."""
        found: dict[Front, Balance] = {}
        for key, chain in self.sets["services"].items():
            words = chain.split("-")
            backends = [self.sets["endpoints"][key + struct.pack("=I", n)] for n in range(int(words[1]))]
            if len(words) > 2:
                assert all(key + backend in self.sets["members"] for backend in backends)
            front = Front(socket.inet_ntoa(key[:4]), _port(key[8:]), key[4] == socket.IPPROTO_UDP)
            found[front] = Balance(
                backends=tuple(Backend(socket.inet_ntoa(one[:4]), _port(one[4:])) for one in backends),
                affinity_seconds=int(words[3]) if len(words) > 2 else None,
            )
        return found

    @property
    def hairpins(self) -> set[str]:
        assert all(key[:4] == key[4:] for key in self.sets["hairpins"])
        return {socket.inet_ntoa(key[:4]) for key in self.sets["hairpins"]}


def _text(content: bytes) -> str:
    return content.rstrip(b"\0").decode()


def _port(content: bytes) -> int:
    return int.from_bytes(content[:2], "big")


def a_balance(*addresses: str, port: int = 8080, affinity: int | None = None) -> Balance:
    return Balance(backends=tuple(Backend(address, port) for address in addresses), affinity_seconds=affinity)


balances = st.builds(
    lambda addresses, port, affinity: a_balance(*addresses, port=port, affinity=affinity),
    st.lists(st.sampled_from([f"10.88.0.{n}" for n in range(2, 6)]), min_size=1, max_size=4, unique=True),
    st.sampled_from((80, 8080)),
    st.sampled_from((None, 60, 10800)),
)
services = st.sampled_from([(WEB, "10.96.0.7"), (API, "10.96.0.8"), (Key("other", "web"), "10.96.0.9")]).flatmap(
    lambda one: st.tuples(
        st.just(one[0]),
        st.dictionaries(
            st.builds(Front, st.just(one[1]), st.sampled_from((80, 443)), st.booleans(), st.just(False)),
            balances,
            max_size=2,
        ),
    )
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(services, min_size=1, max_size=3).map(dict), max_size=6))
def test_after_any_changes_the_table_leads_where_it_should(changes: list[dict[Key, Fronts]]) -> None:
    rules, table, wanted = Rules(), Table(), dict[Key, Fronts]()

    for changed in changes:
        requests, waiting = rules.update({key: service_rules(fronts) for key, fronts in changed.items()})
        assert waiting == []
        table.apply(requests)
        wanted |= changed

        every = {front: balance for fronts in wanted.values() for front, balance in fronts.items()}
        assert table.fronts() == every
        assert table.hairpins == {one.address for balance in every.values() for one in balance.backends}
        assert table.chains == set(table.sets["services"].values())
        assert len(table.sets["endpoints"]) == sum(len(balance.backends) for balance in every.values())
        kept = [balance for balance in every.values() if balance.affinity_seconds is not None]
        assert len(table.sets["members"]) == sum(len(balance.backends) for balance in kept)


def test_what_did_not_change_is_not_written() -> None:
    rules = Rules()
    wanted = service_rules({FRONT: a_balance("10.88.0.2", "10.88.0.3")})
    rules.update({WEB: wanted, API: service_rules({Front("10.96.0.8", 80): a_balance("10.88.0.2", "10.88.0.4")})})

    assert rules.update({WEB: wanted}) == ([], [])


def test_another_endpoint_is_one_element_in_each_set() -> None:
    rules = Rules()
    rules.update({WEB: service_rules({FRONT: a_balance("10.88.0.2", "10.88.0.3")})})

    requests, _ = rules.update({WEB: service_rules({FRONT: a_balance("10.88.0.2", "10.88.0.4")})})

    changed = [
        (
            request.kind,
            _text(dict(attributes(request.body))[2]),
            len(list(attributes(dict(attributes(request.body))[3]))),
        )
        for request in requests
    ]
    assert sorted(changed) == [
        (NEW_ELEMENT, "endpoints", 1),
        (NEW_ELEMENT, "hairpins", 1),
        (DELETE_ELEMENT, "endpoints", 1),
        (DELETE_ELEMENT, "hairpins", 1),
    ]


def test_a_port_may_go_from_one_service_to_another_at_once() -> None:
    rules, table = Rules(), Table()
    port = {Front("10.88.0.1", 30080): a_balance("10.88.0.2")}
    table.apply(rules.update({WEB: service_rules(port)})[0])

    for old, new in ((WEB, API), (API, WEB)):
        requests, waiting = rules.update({new: service_rules(port), old: service_rules({})})
        table.apply(requests)
        assert waiting == []
        assert table.fronts() == port


def test_a_service_waits_while_another_one_has_its_address() -> None:
    rules, table = Rules(), Table()
    table.apply(rules.update({WEB: service_rules({FRONT: a_balance("10.88.0.2")})})[0])
    second = service_rules({FRONT: a_balance("10.88.0.3")})

    requests, waiting = rules.update({API: second})
    table.apply(requests)
    assert waiting == [API]
    assert table.fronts() == {FRONT: a_balance("10.88.0.2")}

    table.apply(rules.update({WEB: service_rules({})})[0])
    table.apply(rules.update({API: second})[0])
    assert table.fronts() == {FRONT: a_balance("10.88.0.3")}


def test_a_thousand_services_are_one_transaction_unless_the_kernel_takes_less() -> None:
    many = {
        Key("default", f"s{n}"): service_rules(
            {Front(f"10.96.{n // 250}.{n % 250 + 1}", 80): a_balance(*[f"10.88.{k}.{n % 250 + 2}" for k in range(4)])}
        )
        for n in range(1000)
    }
    requests, _ = Rules().update(many)

    assert len(list(transactions(requests, limit=400_000))) == 1
    several, table = list(transactions(requests, limit=60_000)), Table()
    assert all(sum(request.size for request in one) <= 60_000 for one in several)
    for one in several:
        table.apply(one)
    assert len(table.fronts()) == 1000


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {DATAGRAMS: a_balance("10.88.0.2")}, {("10.88.0.2", 8080)}, id="first endpoint"),
        pytest.param({DATAGRAMS: a_balance("10.88.0.2")}, {}, set(), id="last endpoint gone"),
        pytest.param(
            {DATAGRAMS: a_balance("10.88.0.2", "10.88.0.3")},
            {DATAGRAMS: a_balance("10.88.0.3")},
            {("10.88.0.3", 8080)},
            id="one of several gone",
        ),
        pytest.param(
            {DATAGRAMS: a_balance("10.88.0.2")}, {DATAGRAMS: a_balance("10.88.0.2", "10.88.0.3")}, None, id="one more"
        ),
        pytest.param({FRONT: a_balance("10.88.0.2")}, {}, None, id="connections"),
    ],
)
def test_datagrams_that_go_astray_are_found(
    before: Fronts, after: Fronts, expected: set[tuple[str, int]] | None
) -> None:
    assert outdated_datagrams(before, after) == ({} if expected is None else {("10.96.0.7", 53): frozenset(expected)})
