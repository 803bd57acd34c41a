"""Labels of nodes as columns, so that what a pod asks of them is put to the distinct values and not to every node.

A column holds, for each node, the place of its value among all values of that label. A requirement becomes a small
table with one answer per value, and one for nodes without the label; read by the column it answers for all nodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.model.resources import Mask

ABSENT: Final = -1
"""The code of a node without the label: as an index it is the last place of a table, which is kept for it."""

_NODE_NAME: Final = "metadata.name"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,200}")


@dataclass(frozen=True, eq=False)
class Column:
    """One label of all nodes."""

    codes: NDArray[np.int64]
    """[nodes] the place of the node's value in ``values``; ABSENT without the label."""

    values: tuple[str, ...]
    """The distinct values, sorted."""

    @cached_property
    def is_present(self) -> Mask:
        """[nodes] those that have the label."""
        present: Mask = self.codes != ABSENT
        return present

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each value is."""
        return {value: place for place, value in enumerate(self.values)}

    @cached_property
    def numbers(self) -> tuple[NDArray[np.int64], Mask]:
        """[values] each value as a whole number of 64 bits, and which values are such numbers."""
        numbers = [_integer(value) for value in self.values]
        is_number = np.array([number is not None for number in numbers], dtype=np.bool_)
        return np.array([number or 0 for number in numbers], dtype=np.int64), is_number

    def read(self, table: NDArray[Any]) -> NDArray[Any]:
        """[nodes] each node's answer from a table [values + 1]; the last place is for nodes without the label."""
        found: NDArray[Any] = table[self.codes]
        return found

    def table(self, *, of: bool) -> Mask:
        """[values + 1] the same answer everywhere, to begin with."""
        return np.full(len(self.values) + 1, of, dtype=np.bool_)


class LabelIndex:
    """The labels of nodes, a column for each that somebody has asked for."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._columns: dict[str, Column] = {}

    def column(self, key: str) -> Column:
        """One label of all nodes."""
        found = self._columns.get(key)
        if found is None:
            values = [node.labels.get(key) for node in self._nodes.nodes]
            distinct = tuple(sorted(value for value in set(values) if value is not None))
            places: dict[str | None, int] = {value: place for place, value in enumerate(distinct)} | {None: ABSENT}
            codes = np.fromiter(map(places.__getitem__, values), dtype=np.int64, count=len(values))
            found = self._columns[key] = Column(codes, distinct)
        return found

    def selected(self, selector: Mapping[str, str]) -> Mask:
        """[nodes] those that have all of these labels."""
        mask = np.ones(len(self._nodes), dtype=np.bool_)
        for key, value in selector.items():
            mask &= self._among(key, (value,))
        return mask

    def matching_any(self, terms: Sequence[Mapping[str, Any]]) -> Mask:
        """[nodes] those that match one of these node selector terms at least; no terms are matched by no node."""
        mask = np.zeros(len(self._nodes), dtype=np.bool_)
        for term in terms:
            mask |= self.matching(term)
        return mask

    def matching(self, term: Mapping[str, Any]) -> Mask:
        """[nodes] those that match one node selector term. An empty one, or one that is not valid, no node matches."""
        expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
        mask = np.full(len(self._nodes), bool(expressions or fields), dtype=np.bool_)
        for expression in expressions:
            mask &= self._meeting(expression)
        for field in fields:
            mask &= self._named(field)
        return mask

    def _meeting(self, requirement: Mapping[str, Any]) -> Mask:
        key, operator = requirement.get("key", ""), requirement.get("operator", "")
        values = tuple(requirement.get("values") or ())
        match operator:
            case "In" if values:
                return self._among(key, values)
            case "NotIn" if values:
                return ~self._among(key, values)
            case "Exists" if not values:
                return self.column(key).is_present
            case "DoesNotExist" if not values:
                return ~self.column(key).is_present
            case "Gt" | "Lt" if len(values) == 1 and (bound := _integer(values[0])) is not None:
                return self._beyond(key, bound, is_above=operator == "Gt")
            case _:
                return np.zeros(len(self._nodes), dtype=np.bool_)

    def _among(self, key: str, values: Sequence[str]) -> Mask:
        column = self.column(key)
        table = column.table(of=False)
        for value in values:
            place = column.places.get(value)
            if place is not None:
                table[place] = True
        return column.read(table)

    def _beyond(self, key: str, bound: int, *, is_above: bool) -> Mask:
        column = self.column(key)
        numbers, is_number = column.numbers
        table = column.table(of=False)
        table[:-1] = is_number & (numbers > bound if is_above else numbers < bound)
        return column.read(table)

    def _named(self, requirement: Mapping[str, Any]) -> Mask:
        """The name is the one field that nodes are selected by, and a single name at a time."""
        values = tuple(requirement.get("values") or ())
        operator = requirement.get("operator")
        mask = np.zeros(len(self._nodes), dtype=np.bool_)
        if requirement.get("key") != _NODE_NAME or operator not in ("In", "NotIn") or len(values) != 1:
            return mask
        row = self._nodes.index.get(values[0])
        if row is not None:
            mask[row] = True
        return mask if operator == "In" else ~mask


def _integer(text: str) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
