"""What pods require of the pods around them: to be near some, away from others, and spread evenly.

A term selects pods by their namespace and labels, and says by its topology key how wide "near" is: the nodes that share
the value of that label. Away holds both ways: a pod must also keep off those that want to be away from it. Spread means
that the place with the most of some pods has at most so many more than the one with the fewest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.api.core import Pod
from shoal.api.meta import SELECT_NOTHING, InvalidSelector, LabelSelector, Selector

if TYPE_CHECKING:
    from shoal.cluster.controllers.binding.demand import Load

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_COUNTED = 1024
"""So many questions about neighbours are kept answered; the oldest is counted anew when it is asked again."""

NamespaceLabels = Callable[[str], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Term:
    """Some pods, and how wide their surroundings are."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    topology_key: str

    def selects(self, load: Load, namespace_labels: NamespaceLabels) -> bool:
        """Whether a pod is one of those."""
        if load.namespace not in self.namespaces:
            chosen = self.namespace_selector
            if chosen is SELECT_NOTHING or not chosen.matches(namespace_labels(load.namespace)):
                return False
        return self.selector.matches(load.labels)


@dataclass(frozen=True, slots=True)
class Spread:
    """Some pods, and how unevenly they may be spread over the places that a pod may be in."""

    term: Term
    max_skew: int
    min_domains: int
    honors_affinity: bool
    honors_taints: bool


@dataclass(frozen=True, slots=True)
class Peers:
    """The pods that a pod must be near to, those that it must be away from, and those to be spread with."""

    near: tuple[Term, ...] = ()
    away: tuple[Term, ...] = ()
    spread: tuple[Spread, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.near or self.away or self.spread)

    @property
    def company(self) -> tuple[Term, ...]:
        """The pods whose coming may help."""
        return (*self.near, *(spread.term for spread in self.spread))


NO_PEERS = Peers()

Placed = Callable[[], "list[tuple[Load, Mapping[str, str]]]"]
Domains = Callable[[Spread], Collection[str]]


def peers_of(pod: Pod) -> Peers:
    """What a pod requires of the pods around it."""
    affinity, spread = pod.spec.affinity or {}, pod.spec.topology_spread_constraints
    if not spread and not affinity.get("podAffinity") and not affinity.get("podAntiAffinity"):
        return NO_PEERS
    return _peers(msgspec.json.encode([affinity, spread]), pod.metadata.namespace)


class Neighbours:
    """Counts who is where, for the questions that pods ask about their neighbours."""

    def __init__(self, namespace_labels: NamespaceLabels) -> None:
        self._namespace_labels = namespace_labels
        self._counted: dict[tuple[Term, ...], dict[tuple[str, str], int]] = {}
        self._shunning: dict[Term, dict[str, int]] = {}
        """For each term that placed pods want to be away from: where those pods are."""

    def arrive(self, load: Load, labels: Mapping[str, str], by: int = 1) -> None:
        """A pod came to a node of these labels; ``by=-1``: it went."""
        for terms, counts in self._counted.items():
            if all(term.selects(load, self._namespace_labels) for term in terms):
                for term in terms:
                    _count(counts, term.topology_key, labels, by)
        for term in load.peers.away:
            places = self._shunning.setdefault(term, {})
            value = labels.get(term.topology_key)
            if value is not None:
                places[value] = places.get(value, 0) + by
                if not places[value]:
                    del places[value]
            if not places:
                del self._shunning[term]

    def forget_counts(self) -> None:
        """Namespaces have changed: what was counted by their labels may be wrong."""
        self._counted.clear()

    def judge(self, load: Load, placed: Placed, domains: Domains) -> Callable[[Mapping[str, str]], str]:
        """A function from a node's labels to the reason why the pod cannot be there, empty where it can.

        ``placed`` gives every placed pod with the labels of its node: it is asked for what was not counted before.
        ``domains`` gives the places over which a constraint of the pod spreads.
        """
        crowded = [self._crowded(spread, load, placed, domains(spread)) for spread in load.peers.spread]
        near, away = load.peers.near, load.peers.away
        near_counts = self._counts(near, placed) if near else {}
        # The first of a group that wants to be together may be anywhere.
        is_first = not near_counts and all(term.selects(load, self._namespace_labels) for term in near)
        away_counts = [(term.topology_key, self._counts((term,), placed)) for term in away]
        shunned = [
            (term.topology_key, places)
            for term, places in self._shunning.items()
            if term.selects(load, self._namespace_labels)
        ]

        def reason(labels: Mapping[str, str]) -> str:
            for key, full in crowded:
                value = labels.get(key)
                if value is None:
                    return "node(s) didn't match pod topology spread constraints (missing required label)"
                if value in full:
                    return "node(s) didn't match pod topology spread constraints"
            for term in near:
                value = labels.get(term.topology_key)
                if value is None or not (is_first or near_counts.get((term.topology_key, value))):
                    return "node(s) didn't match pod affinity rules"
            for key, counts in away_counts:
                if (key, labels.get(key, "")) in counts and key in labels:
                    return "node(s) didn't match pod anti-affinity rules"
            for key, places in shunned:
                if labels.get(key) in places:
                    return "node(s) didn't satisfy existing pods anti-affinity rules"
            return ""

        return reason

    def _crowded(
        self, spread: Spread, load: Load, placed: Placed, domains: Collection[str]
    ) -> tuple[str, Collection[str]]:
        """The label that makes the places, and those of them that have too many already."""
        key = spread.term.topology_key
        counts = self._counts((spread.term,), placed)
        numbers = {value: counts.get((key, value), 0) for value in domains}
        fewest = min(numbers.values(), default=0) if len(numbers) >= spread.min_domains else 0
        own = 1 if spread.term.selects(load, self._namespace_labels) else 0
        return key, {value for value, number in numbers.items() if number + own - fewest > spread.max_skew}

    def matter_to(self, load: Load) -> bool:
        """Whether a pod's place depends on its neighbours at all."""
        if load.peers:
            return True
        return any(term.selects(load, self._namespace_labels) for term in self._shunning)

    def _counts(self, terms: tuple[Term, ...], placed: Placed) -> dict[tuple[str, str], int]:
        counts = self._counted.pop(terms, None)
        if counts is None:
            counts = {}
            for load, labels in placed():
                if all(term.selects(load, self._namespace_labels) for term in terms):
                    for term in terms:
                        _count(counts, term.topology_key, labels, 1)
            while len(self._counted) >= _COUNTED:
                del self._counted[next(iter(self._counted))]
        self._counted[terms] = counts
        return counts


def _count(counts: dict[tuple[str, str], int], key: str, labels: Mapping[str, str], by: int) -> None:
    value = labels.get(key)
    if value is not None:
        counts[key, value] = counts.get((key, value), 0) + by
        if not counts[key, value]:
            del counts[key, value]


@lru_cache(maxsize=8192)
def _peers(wishes: bytes, namespace: str) -> Peers:
    wanted, constraints = msgspec.json.decode(wishes)
    return Peers(
        spread=tuple(_spread(one, namespace) for one in constraints if one.get("whenUnsatisfiable") == "DoNotSchedule"),
        near=tuple(_term(term, namespace) for term in (wanted.get("podAffinity") or {}).get(_REQUIRED) or ()),
        away=tuple(_term(term, namespace) for term in (wanted.get("podAntiAffinity") or {}).get(_REQUIRED) or ()),
    )


def _term(term: Mapping[str, Any], namespace: str) -> Term:
    namespaces = frozenset(term.get("namespaces") or ())
    chosen = term.get("namespaceSelector")
    if not namespaces and chosen is None:
        namespaces = frozenset({namespace})
    return Term(namespaces, _selector(chosen), _selector(term.get("labelSelector")), term.get("topologyKey", ""))


def _spread(constraint: Mapping[str, Any], namespace: str) -> Spread:
    selector, key = _selector(constraint.get("labelSelector")), constraint.get("topologyKey", "")
    return Spread(
        term=Term(frozenset({namespace}), SELECT_NOTHING, selector, key),
        max_skew=constraint.get("maxSkew", 1),
        min_domains=constraint.get("minDomains") or 1,
        honors_affinity=constraint.get("nodeAffinityPolicy", "Honor") == "Honor",
        honors_taints=constraint.get("nodeTaintsPolicy", "Ignore") == "Honor",
    )


def _selector(selector: Mapping[str, Any] | None) -> Selector:
    try:
        return Selector.of(None if selector is None else msgspec.convert(selector, LabelSelector))
    except InvalidSelector:
        return SELECT_NOTHING
