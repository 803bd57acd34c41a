"""What pods ask of each other's labels: terms of pod affinity and anti-affinity, read once and compared as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from shoal.api.meta.selector import (
    SELECT_NOTHING,
    InvalidSelector,
    LabelOperator,
    LabelRequirement,
    LabelSelector,
    Selector,
)
from shoal.scheduler.model.tasks import Task

Namespaces = Mapping[str, Mapping[str, str]]
"""The labels of each namespace, by its name."""

_ONE_OF: Final = (LabelOperator.EQUALS, LabelOperator.IN)


@dataclass(frozen=True, slots=True)
class Term:
    """Pods of some namespaces with some labels, seen together with the nodes that share a label's value."""

    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector
    topology_key: str

    def matches(self, task: Task, namespaces: Namespaces) -> bool:
        """Whether a pod is one of those meant."""
        return self.selector.matches(task.labels) and (
            task.namespace in self.namespaces or self.namespace_selector.matches(namespaces.get(task.namespace, {}))
        )

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Labels of which a pod must have one to be meant at all; () where no such labels can be told."""
        choices: list[tuple[tuple[str, str], ...]] = [
            tuple((requirement.key, value) for value in requirement.values)
            for requirement in self.selector.requirements or ()
            if requirement.operator in _ONE_OF
        ]
        return min(choices, key=lambda pairs: len(pairs), default=())  # noqa: PLW0108 (the type of len is too wide)


def read_term(term: Mapping[str, Any], owner: Task) -> Term:
    """A term as its owner means it. One that is not valid means no pods."""
    names, among = frozenset(term.get("namespaces") or ()), term.get("namespaceSelector")
    if not names and among is None:
        names = frozenset((owner.namespace,))
    return Term(
        selector=_with_keys(_selector(term.get("labelSelector")), term, owner.labels),
        namespaces=names,
        namespace_selector=_selector(among),
        topology_key=term.get("topologyKey", ""),
    )


def _selector(selector: Mapping[str, Any] | None) -> Selector:
    if selector is None:
        return SELECT_NOTHING
    try:
        return Selector.of(msgspec.convert(selector, LabelSelector))
    except (InvalidSelector, msgspec.ValidationError):
        return SELECT_NOTHING


def _with_keys(selector: Selector, term: Mapping[str, Any], labels: Mapping[str, str]) -> Selector:
    """Further requires the owner's own value of some labels, or any other than its own."""
    if selector.requirements is None:
        return selector
    more = [
        LabelRequirement(key, operator, (labels[key],))
        for name, operator in (("matchLabelKeys", LabelOperator.IN), ("mismatchLabelKeys", LabelOperator.NOT_IN))
        for key in term.get(name) or ()
        if key in labels
    ]
    if not more:
        return selector
    together = {*selector.requirements, *more}
    return Selector(tuple(sorted(together, key=lambda requirement: (requirement.key, requirement.operator.value))))


Found = TypeVar("Found")


class TermLookup(Generic[Found]):
    """Things by the terms that they go by, so that for a pod's labels the few that may mean it are found at once."""

    def __init__(self) -> None:
        self._by_pair: dict[tuple[str, str], dict[Found, None]] = {}
        self._others: dict[Found, None] = {}

    def add(self, term: Term, found: Found) -> None:
        """Takes a thing in."""
        pairs = term.pairs
        if not pairs:
            self._others[found] = None
        for pair in pairs:
            self._by_pair.setdefault(pair, {})[found] = None

    def remove(self, term: Term, found: Found) -> None:
        """Forgets a thing."""
        if not term.pairs:
            del self._others[found]
        for pair in term.pairs:
            things = self._by_pair[pair]
            del things[found]
            if not things:
                del self._by_pair[pair]

    def candidates(self, labels: Mapping[str, str]) -> Iterable[Found]:
        """The things whose terms may mean a pod with these labels, each once, in a fixed order."""
        if not self._by_pair:
            return list(self._others)
        found = dict(self._others)
        for pair in labels.items():
            found |= self._by_pair.get(pair, {})
        return list(found)
