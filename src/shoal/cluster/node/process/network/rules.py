"""What the kernel must know to translate the addresses of Services: from fronts and what is behind them to requests.

Pure. Services are kept apart, so that a change costs no more than the Services that changed; what several of them share
is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from shoal.cluster.node.process.network.balance import Balance, Front
from shoal.cluster.node.process.runtime.nftables import Element, Request, add_elements, delete_elements
from shoal.cluster.node.process.runtime.service_table import (
    ENDPOINTS,
    HAIRPINS,
    MEMBERS,
    SERVICES,
    TABLE,
    Choice,
    add_choice,
    delete_choice,
    endpoint_element,
    hairpin_element,
    member_element,
    service_element,
    service_key,
)
from shoal.kube import Key

Shared = TypeVar("Shared", bound=Hashable)

_SETS = (ENDPOINTS, MEMBERS, HAIRPINS, SERVICES)
"""In the order in which elements are added: a Service is there when all that it needs is. They go in reverse."""


class ServiceRules(NamedTuple):
    """What one Service needs in the table."""

    elements: frozenset[tuple[str, Element]] = frozenset()
    """Its own, each with the name of its set."""
    choices: frozenset[Choice] = frozenset()
    hairpins: frozenset[str] = frozenset()
    """The addresses of its endpoints. These and the choices it shares with others."""


def service_rules(fronts: Mapping[Front, Balance]) -> ServiceRules:
    """What a Service with these fronts needs."""
    choices = {_choice(balance) for balance in fronts.values()}
    hairpins = {backend.address for balance in fronts.values() for backend in balance.backends}
    elements = {one for front, balance in fronts.items() for one in _elements(front, balance)}
    return ServiceRules(frozenset(elements), frozenset(choices), frozenset(hairpins))


def _elements(front: Front, balance: Balance) -> Iterator[tuple[str, Element]]:
    key = service_key(front.address, "UDP" if front.is_datagram else "TCP", front.port)
    yield SERVICES, service_element(key, _choice(balance))
    for number, backend in enumerate(balance.backends):
        yield ENDPOINTS, endpoint_element(key, number, backend.address, backend.port)
        if balance.affinity_seconds is not None:
            yield MEMBERS, member_element(key, backend.address, backend.port)


def _choice(balance: Balance) -> Choice:
    return Choice(len(balance.backends), balance.affinity_seconds)


class Rules:
    """What the table holds for each Service."""

    def __init__(self) -> None:
        self._services: dict[Key, ServiceRules] = {}
        self._owners: dict[tuple[str, bytes], Key] = {}
        self._choices: Counter[Choice] = Counter()
        self._hairpins: Counter[str] = Counter()

    def update(self, changed: Mapping[Key, ServiceRules]) -> tuple[list[Request], list[Key]]:
        """The requests that give these Services what they need, and the Services that must wait.

        A Service waits while another one has its address and port, and has nothing until then.
        """
        before = [self._services.pop(key, ServiceRules()) for key in changed]
        removed = {one for rules in before for one in rules.elements}
        for name, element in removed:
            self._owners.pop((name, element.key), None)
        waiting: list[Key] = []
        after: list[ServiceRules] = []
        for key, rules in changed.items():
            if any((name, element.key) in self._owners for name, element in rules.elements):
                waiting.append(key)
                continue
            self._owners |= {(name, element.key): key for name, element in rules.elements}
            if rules.elements:
                self._services[key] = rules
            after.append(rules)
        added = {one for rules in after for one in rules.elements}
        new_choices, old_choices = _recount(
            self._choices, [rules.choices for rules in before], [rules.choices for rules in after]
        )
        new_hairpins, old_hairpins = _recount(
            self._hairpins, [rules.hairpins for rules in before], [rules.hairpins for rules in after]
        )
        gone = (removed - added) | {(HAIRPINS, hairpin_element(address)) for address in old_hairpins}
        new = (added - removed) | {(HAIRPINS, hairpin_element(address)) for address in new_hairpins}
        requests = [
            *(request for choice in sorted(new_choices, key=repr) for request in add_choice(choice)),
            *(one for name in reversed(_SETS) for one in delete_elements(TABLE, name, _of(name, gone))),
            *(one for name in _SETS for one in add_elements(TABLE, name, _of(name, new))),
            *(delete_choice(choice) for choice in sorted(old_choices, key=repr)),
        ]
        return requests, waiting


def transactions(requests: Iterable[Request], *, limit: int) -> Iterator[list[Request]]:
    """The requests as few transactions of at most ``limit`` bytes each: one, unless a thousand Services change."""
    several: list[Request] = []
    size = 0
    for request in requests:
        if several and size + request.size > limit:
            yield several
            several, size = [], 0
        several.append(request)
        size += request.size
    if several:
        yield several


def outdated_datagrams(
    before: Mapping[Front, Balance], after: Mapping[Front, Balance]
) -> dict[tuple[str, int], frozenset[tuple[str, int]]]:
    """Where datagrams may go to what is gone, or nowhere as nothing was there: each with the endpoints there are now.

    A connection ends with its endpoint, but the kernel sends all datagrams of one client where it sent the first.
    """
    found: dict[tuple[str, int], frozenset[tuple[str, int]]] = {}
    for front in {*before, *after}:
        old, new = (_ends(of.get(front)) for of in (before, after))
        if front.is_datagram and (old - new or not old):
            found[front.address, front.port] = new
    return found


def _ends(balance: Balance | None) -> frozenset[tuple[str, int]]:
    return frozenset((one.address, one.port) for one in balance.backends) if balance is not None else frozenset()


def _recount(
    counts: Counter[Shared], before: Sequence[Iterable[Shared]], after: Sequence[Iterable[Shared]]
) -> tuple[set[Shared], set[Shared]]:
    """Counts what is shared; gives what is needed for the first time, and what nobody needs any more."""
    known = {one for several in (*before, *after) for one in several if counts[one]}
    for several in before:
        counts.subtract(several)
    for several in after:
        counts.update(several)
    gone = {one for one in known if not counts[one]}
    for one in gone:
        del counts[one]
    return {one for several in after for one in several} - known, gone


def _of(name: str, elements: Iterable[tuple[str, Element]]) -> list[Element]:
    return sorted((element for owner, element in elements if owner == name), key=lambda one: one.key)
