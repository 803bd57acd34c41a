"""The order of a merged list: what the patch says comes first, then what the live list says."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.cluster.apiserver.patches.go_text import shown
from shoal.cluster.apiserver.refusals import refused, unprocessable


def in_order(merged: list[Any], wanted: list[Any], live: list[Any], merge_key: str) -> list[Any]:
    """The merged items in order: those that are wanted keep the wanted order among themselves, the others the live one.

    The others are put between them where the live list had them, as far as that can be.
    """
    is_map = bool(merged) and type(merged[0]) is dict
    if merge_key:
        for item in (*merged, *wanted, *(live if is_map else ())):
            if type(item) is dict:
                has_key(item, merge_key)
    places = _places(wanted, merge_key)
    live_places = _places(live, merge_key)
    from_patch = _sorted([item for item in merged if _identity(item, merge_key) in places], places, merge_key)
    others = _sorted([item for item in merged if _identity(item, merge_key) not in places], live_places, merge_key)
    return _interleaved(others, from_patch, live_places, merge_key)


def has_key(item: dict[str, Any], merge_key: str) -> None:
    """Refuses an item that cannot be told apart from others."""
    if merge_key not in item:
        raise refused(500, "", f"map: {shown(item)} does not contain declared merge key: {merge_key}")


def element_type(*lists: list[Any]) -> type:
    """The one type that all items have; refuses mixed ones, and lists of lists."""
    found: type | None = None
    for items in lists:
        for item in items:
            if found is None:
                found = type(item)
                if found is list:
                    raise unprocessable("lists of lists are not supported")
            elif type(item) is not found:
                raise refused(500, "", f"list element types are not identical: {shown(list(lists))}")
    if found is None:
        raise refused(500, "", "no elements in any of the given slices")
    return found


def _places(items: list[Any], merge_key: str) -> dict[Any, int]:
    places: dict[Any, int] = {}
    for place, item in enumerate(items):
        places.setdefault(_identity(item, merge_key), place)
    return places


def _identity(item: Any, merge_key: str) -> Any:
    """What tells an item apart: the type counts, since true is not 1."""
    value = item.get(merge_key) if merge_key and type(item) is dict else item
    if type(value) is dict or type(value) is list:
        value = msgspec.json.encode(value, order="sorted")
    return type(value), value


def _sorted(items: list[Any], places: dict[Any, int], merge_key: str) -> list[Any]:
    found = [places.get(_identity(item, merge_key)) for item in items]
    if None not in found:
        at = sorted(range(len(items)), key=lambda each: found[each] or 0)
        return [items[each] for each in at]
    # An item that has no place goes before all that were there already, as with Kubernetes.
    ordered: list[tuple[int | None, Any]] = []
    for place, item in zip(found, items, strict=True):
        at_end = len(ordered)
        while at_end and _is_before(place, ordered[at_end - 1][0]):
            at_end -= 1
        ordered.insert(at_end, (place, item))
    return [item for _, item in ordered]


def _is_before(place: int | None, other: int | None) -> bool:
    return place is None or other is None or place < other


def _interleaved(others: list[Any], from_patch: list[Any], live: dict[Any, int], merge_key: str) -> list[Any]:
    result: list[Any] = []
    rest = list(reversed(others))
    for item in from_patch:
        place = live.get(_identity(item, merge_key))
        while rest and place is not None:
            other = live.get(_identity(rest[-1], merge_key))
            if other is None or other >= place:
                break
            result.append(rest.pop())
        result.append(item)
    return result + rest[::-1]
