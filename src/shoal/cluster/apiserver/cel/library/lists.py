"""Lists: order, sums, extremes, positions, and lists taken as sets."""

from __future__ import annotations

import itertools
from typing import Any

from shoal.cluster.apiserver.cel.functions import Library
from shoal.cluster.apiserver.cel.values import CelError, checked_int, checked_uint, duration_of, equal

LISTS = Library()
_add = LISTS.add
_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def _is_sorted(items: list[Any]) -> bool:
    return all(one <= other for one, other in itertools.pairwise(items))


def _largest(items: list[Any]) -> Any:
    if not items:
        raise CelError("max called on empty list")
    return max(items)


def _smallest(items: list[Any]) -> Any:
    if not items:
        raise CelError("min called on empty list")
    return min(items)


def _in_order(items: list[Any]) -> list[Any]:
    return sorted(items)


for _kind in _COMPARABLE:
    _add(_is_sorted, f"list<{_kind}>::isSorted(): bool")
    _add(_largest, f"list<{_kind}>::max(): {_kind}")
    _add(_smallest, f"list<{_kind}>::min(): {_kind}")
    _add(_in_order, f"list<{_kind}>::sort(): list<{_kind}>")

_add(lambda items: checked_int(sum(items)), "list<int>::sum(): int")
_add(lambda items: checked_uint(sum(map(int, items))), "list<uint>::sum(): uint")
_add(lambda items: float(sum(items)), "list<double>::sum(): double")
_add(lambda items: duration_of(sum(each.nanos for each in items)), "list<duration>::sum(): duration")


@LISTS.function("list<A>::indexOf(A): int")
def _index_of(items: list[Any], item: Any) -> int:
    return next((at for at, each in enumerate(items) if equal(each, item)), -1)


@LISTS.function("list<A>::lastIndexOf(A): int")
def _last_index_of(items: list[Any], item: Any) -> int:
    return next((at for at in range(len(items) - 1, -1, -1) if equal(items[at], item)), -1)


@LISTS.function("list<A>::slice(int, int): list<A>")
def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


@LISTS.function("list<list<A>>::flatten(): list<A>", "list<dyn>::flatten(): list<dyn>")
def _flatten(items: list[Any]) -> list[Any]:
    return _flattened(items, 1)


@LISTS.function("list<dyn>::flatten(int): list<dyn>")
def _flatten_deep(items: list[Any], depth: int) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    return _flattened(items, depth)


def _flattened(items: list[Any], depth: int) -> list[Any]:
    flat: list[Any] = []
    for each in items:
        if type(each) is list and depth > 0:
            flat.extend(_flattened(each, depth - 1))
        else:
            flat.append(each)
    return flat


@LISTS.function("list<A>::distinct(): list<A>")
def _distinct(items: list[Any]) -> list[Any]:
    kept: list[Any] = []
    known: set[tuple[bool, Any]] = set()
    for each in items:
        if type(each) is list or type(each) is dict:
            if not any(equal(each, other) for other in kept):
                kept.append(each)
        elif (type(each) is bool, each) not in known:
            known.add((type(each) is bool, each))
            kept.append(each)
    return kept


@LISTS.function("lists.range(int): list<int>")
def _range(count: int) -> list[int]:
    if count > 1_000_000:
        raise CelError("operation cancelled: actual cost limit exceeded")
    return list(range(count))


_add(lambda items: items[::-1], "list<A>::reverse(): list<A>")


def _holds(items: list[Any], item: Any) -> bool:
    return any(equal(each, item) for each in items)


@LISTS.function("sets.contains(list<A>, list<A>): bool")
def _contains(items: list[Any], wanted: list[Any]) -> bool:
    return all(_holds(items, each) for each in wanted)


@LISTS.function("sets.equivalent(list<A>, list<A>): bool")
def _equivalent(one: list[Any], other: list[Any]) -> bool:
    return bool(_contains(one, other) and _contains(other, one))


@LISTS.function("sets.intersects(list<A>, list<A>): bool")
def _intersects(one: list[Any], other: list[Any]) -> bool:
    return any(_holds(one, each) for each in other)
