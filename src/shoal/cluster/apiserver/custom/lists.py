"""Lists that are sets, or maps by keys, hold nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.cluster.apiserver.custom.places import Key, Place, field_path
from shoal.cluster.apiserver.custom.sharing import by_content
from shoal.cluster.apiserver.custom.wording import Problems, Raw
from shoal.kube.admission.fields import duplicate, invalid

ListCheck = Callable[[Any, Place, Problems], None]


@by_content
def compile_list_check(raw: Raw) -> ListCheck | None:
    """Looks for what is there twice in a value and below; None where nothing needs to be there once."""
    declared = raw.get("properties") or {}
    children = {name: found for name, child in declared.items() if (found := compile_list_check(child)) is not None}
    additional = raw.get("additionalProperties")
    rest = compile_list_check(additional) if isinstance(additional, dict) else None
    items = raw.get("items")
    each = compile_list_check(items) if isinstance(items, dict) else None
    kind = raw.get("x-kubernetes-list-type")
    keys = tuple(raw.get("x-kubernetes-list-map-keys") or ())
    is_unique = kind in ("set", "map")
    if not (is_unique or children or rest or each):
        return None

    def check(value: Any, place: Place, problems: Problems) -> None:
        if type(value) is dict:
            for name, item in value.items():
                child = children.get(name)
                if child is not None:
                    child(item, (place, name), problems)
                elif rest is not None and name not in declared:
                    rest(item, (place, Key(name)), problems)
        elif type(value) is list:
            if is_unique:
                _unique(value, place, problems, None if kind == "set" else keys)
            if each is not None:
                for at, item in enumerate(value):
                    each(item, (place, at), problems)

    return check


def _unique(items: list[Any], place: Place, problems: Problems, keys: tuple[str, ...] | None) -> None:
    if _is_plainly_unique(items, keys):
        return
    shown: list[Any] = items
    if keys is not None:
        for at, item in enumerate(items):
            if item is not None and type(item) is not dict:
                message = "must be an object for an array of list-type map"
                problems.append(invalid(field_path((place, at)), item, message))
                return
        shown = [{key: item[key] for key in keys if item is not None and key in item} for item in items]
    if len(items) < 2:
        return
    seen: dict[Any, int] = {}
    for at, item in enumerate(shown):
        mark = _mark(item)
        seen[mark] = seen.get(mark, 0) + 1
        if seen[mark] == 2:
            problems.append(duplicate(field_path((place, at)), item))


def _is_plainly_unique(items: list[Any], keys: tuple[str, ...] | None) -> bool:
    """Whether a quick look shows that nothing is there twice, as it nearly always is."""
    try:
        if keys is None:
            marks = items
        elif len(keys) == 1:
            [key] = keys
            marks = [item[key] for item in items]
        else:
            marks = [tuple([item[key] for key in keys]) for item in items]
        return len(set(marks)) == len(items)
    except (KeyError, TypeError):
        return False


def _mark(item: Any) -> Any:
    kind = type(item)
    return (kind, msgspec.json.encode(item, order="sorted") if kind in (dict, list) else item)
