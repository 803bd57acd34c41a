"""Pods that want to be near each other, or apart: required and preferred terms, in both directions.

Two things are kept, and only for terms that somebody has. A *watch* counts the placed pods that are meant by terms of
pods to be placed. A *claim* counts the placed pods that have a term of their own. Either is counted by row; the term's
topology key says which other nodes share a row's fate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shoal.scheduler.model.resources import Mask
from shoal.scheduler.model.tasks import Constraints, Task
from shoal.scheduler.session.affinity_terms import Namespaces, Term, TermLookup, read_term
from shoal.scheduler.session.labels import ABSENT, LabelIndex
from shoal.scheduler.session.placed_pods import PlacedPods

NOT_NEAR: Final = "is not near the pods that the pod wants to be with"
TOO_NEAR: Final = "is near pods that the pod must be apart from"
UNWANTED: Final = "is near pods that must be apart from this pod"

_MOST_KEPT: Final = 8192
"""Terms that are remembered for pods to be placed: those of pods long gone are not worth keeping."""

_Raw = Mapping[str, Any]


class AffinityIndex:
    """What placed pods mean to each other and to those that are to be placed."""

    def __init__(self, labels: LabelIndex, size: int, placed: PlacedPods, namespaces: Namespaces) -> None:
        self._labels = labels
        self._size = size
        self._placed = placed
        self._namespaces = namespaces
        self._watches: dict[tuple[Term, ...], _Watch] = {}
        self._watching: TermLookup[_Watch] = TermLookup()
        self._apart = _Claims()
        self._preferred = _Claims()
        self._terms: dict[tuple[int, str], tuple[_Raw, Term]] = {}

    def concerns(self, constraints: Constraints) -> bool:
        """Whether a task could be refused anywhere."""
        return bool(self._apart.of_terms or constraints.pod_affinity or constraints.pod_anti_affinity)

    def scores_any(self, constraints: Constraints) -> bool:
        """Whether a task could be drawn to some node or away from it."""
        return bool(self._preferred.of_terms or constraints.preferred_pod_affinity)

    def count(self, task: Task, row: int, by: int) -> None:
        """Counts a pod that is placed (1), or no longer (-1)."""
        constraints = task.constraints
        for raw in constraints.pod_anti_affinity:
            self._apart.count(self._term(raw, task), 0, row, by)
        for raw in constraints.preferred_pod_affinity:
            self._preferred.count(*self._weighted(raw, task), row, by)
        if self._watches:
            for watch in self._watching.candidates(task.labels):
                if watch.means(task, self._namespaces):
                    _count(watch.rows, row, by)

    def refused(self, task: Task) -> Iterator[tuple[str, Mask]]:
        """[nodes] what each rule refuses a task."""
        if task.constraints.pod_affinity:
            yield NOT_NEAR, ~self._near(task)
        for raw in task.constraints.pod_anti_affinity:
            term = self._term(raw, task)
            yield TOO_NEAR, self._sharing(term.topology_key, self._watch((term,)).rows)
        for claim in self._apart.about(task, self._namespaces):
            yield UNWANTED, self._sharing(claim.term.topology_key, claim.rows)

    def scores(self, task: Task) -> NDArray[np.float64]:
        """[nodes] the weights of preferred terms, the task's own and those of placed pods that mean it."""
        scores = np.zeros(self._size)
        for raw in task.constraints.preferred_pod_affinity:
            term, weight = self._weighted(raw, task)
            scores += self._weights(term.topology_key, self._watch((term,)).rows, weight)
        for claim in self._preferred.about(task, self._namespaces):
            scores += self._weights(claim.term.topology_key, claim.rows, claim.weight)
        return scores

    def _near(self, task: Task) -> Mask:
        """Near pods that all terms mean. Where no pod is meant yet, the first that means itself may go anywhere."""
        terms = tuple(self._term(raw, task) for raw in task.constraints.pod_affinity)
        watch = self._watch(terms)
        has_keys = [self._labels.column(term.topology_key).is_present for term in terms]
        rows = list(watch.rows)
        near = np.ones(self._size, dtype=np.bool_)
        if not any(has_key[rows].any() for has_key in has_keys) and watch.means(task, self._namespaces):
            for has_key in has_keys:
                near &= has_key
        else:
            for term in terms:
                near &= self._sharing(term.topology_key, watch.rows)
        return near

    def _watch(self, terms: tuple[Term, ...]) -> _Watch:
        found = self._watches.get(terms)
        if found is None:
            if len(self._watches) >= _MOST_KEPT:
                self._watches, self._watching = {}, TermLookup()
            found = self._watches[terms] = _Watch(terms)
            narrowest = min(terms, key=lambda term: len(term.pairs) or self._size)
            self._watching.add(narrowest, found)
            for task, row in self._placed.having(narrowest.pairs):
                if found.means(task, self._namespaces):
                    _count(found.rows, row, 1)
        return found

    def _sharing(self, key: str, rows: Mapping[int, int]) -> Mask:
        """[nodes] those that have the same value of a label as one of these rows."""
        column = self._labels.column(key)
        table = column.table(of=False)
        table[column.codes[list(rows)]] = True
        table[ABSENT] = False
        return column.read(table)

    def _weights(self, key: str, rows: Mapping[int, int], weight: int) -> NDArray[np.float64]:
        """[nodes] a weight for every pod on rows that have the same value of a label."""
        column = self._labels.column(key)
        table = np.zeros(len(column.values) + 1)
        counts = np.fromiter(rows.values(), dtype=np.float64, count=len(rows))
        np.add.at(table, column.codes[list(rows)], counts * weight)
        table[ABSENT] = 0.0
        return column.read(table)

    def _weighted(self, raw: _Raw, task: Task) -> tuple[Term, int]:
        return self._term(raw.get("podAffinityTerm") or {}, task), int(raw.get("weight", 0))

    def _term(self, raw: _Raw, task: Task) -> Term:
        """A term as read once for all pods that share it; one that depends on the pod's own labels is read anew."""
        if raw.get("matchLabelKeys") or raw.get("mismatchLabelKeys"):
            return read_term(raw, task)
        key = id(raw), task.namespace
        found = self._terms.get(key)
        if found is None:
            if len(self._terms) >= _MOST_KEPT:
                self._terms.clear()
            found = self._terms[key] = raw, read_term(raw, task)
        return found[1]


class _Watch:
    """How many of the placed pods some terms mean, all of them together, by row."""

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms
        self.rows: Counter[int] = Counter()

    def means(self, task: Task, namespaces: Namespaces) -> bool:
        return all(term.matches(task, namespaces) for term in self.terms)


class _Claim:
    """How many of the placed pods have a term, by row."""

    def __init__(self, term: Term, weight: int) -> None:
        self.term = term
        self.weight = weight
        self.rows: Counter[int] = Counter()


class _Claims:
    """The terms of placed pods."""

    def __init__(self) -> None:
        self.of_terms: dict[tuple[Term, int], _Claim] = {}
        self._lookup: TermLookup[_Claim] = TermLookup()

    def count(self, term: Term, weight: int, row: int, by: int) -> None:
        """Counts a pod that has a term (1), or has it no longer (-1)."""
        claim = self.of_terms.get((term, weight))
        if claim is None:
            claim = self.of_terms[term, weight] = _Claim(term, weight)
            self._lookup.add(term, claim)
        _count(claim.rows, row, by)
        if not claim.rows:
            del self.of_terms[term, weight]
            self._lookup.remove(term, claim)

    def about(self, task: Task, namespaces: Namespaces) -> list[_Claim]:
        """Those whose terms mean a task."""
        if not self.of_terms:
            return []
        return [claim for claim in self._lookup.candidates(task.labels) if claim.term.matches(task, namespaces)]


def _count(rows: Counter[int], row: int, by: int) -> None:
    rows[row] += by
    if not rows[row]:
        del rows[row]
