"""Carries a change made on a typed view back onto the whole object, so that nothing the view does not name is lost.

A type of ours names only the fields we use. A function that defaults a ``Queue`` gets such a view and returns a changed
one; writing that out would drop everything else the user wrote. So the object is looked at three ways: as it came
(``raw``), as the view saw it (``before``) and as the view should be (``after``). Only where ``before`` and ``after``
differ is ``raw`` changed:

- A field that became None or unset is removed; any other that differs is written, even where it now equals its default.
- A field that the user left out reads as its default. Returning that same default is no difference, hence no write: a
  field that is to be filled in must be told apart from one that was written, so declare it ``int | None = None``.
- An item of a list keeps its unnamed fields when its partner in the old list is known: an equal item; else the one of
  the same ``name``; else, where as many items are left over on both sides, the one in the same order. A renamed item of
  a named list is a new item. Where that leaves a doubt, and something unnamed could go to the wrong item or be lost,
  ``AmbiguousChange`` is raised: such a function should take whole documents (``QUEUES.documents()``) instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.kube.admission.jsonpatch import is_same

_PLAIN = (str, int, float, bool)


class _Named(msgspec.Struct):
    name: Any = None


_NAMED = msgspec.json.Decoder(_Named)


class AmbiguousChange(Exception):
    """It cannot be told which items of a list a function kept."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"cannot tell which items of {path or 'the list'} were kept, and they carry fields that the type does not "
            "name: take whole documents instead (resource.documents()), or name the items"
        )


def overlaid(raw: Any, before: Any, after: Any, path: str = "") -> Any:
    """The raw value with what changed between the two typed ones; ``raw`` itself is left as it is."""
    return raw if _is_unchanged(before, after) else _changed(raw, before, after, path)


def _changed(raw: Any, before: Any, after: Any, path: str) -> Any:
    """The raw value with what changed between two that are known to differ."""
    if isinstance(raw, dict):
        if isinstance(before, msgspec.Struct) and type(before) is type(after):
            return _with_fields(raw, before, after, path)
        if isinstance(before, dict) and isinstance(after, dict):
            return _with_keys(raw, before, after, path)
    if isinstance(raw, list) and isinstance(before, list | tuple) and isinstance(after, list | tuple):
        return _with_items(raw, before, after, path)
    return _plain(after)


def _with_fields(raw: dict[str, Any], before: msgspec.Struct, after: msgspec.Struct, path: str) -> dict[str, Any]:
    changed = dict(raw)
    for field, key in zip(after.__struct_fields__, after.__struct_encode_fields__, strict=True):
        old, new = getattr(before, field), getattr(after, field)
        if _is_unchanged(old, new):
            continue
        if (new is None or new is msgspec.UNSET) and key not in _plain(after):
            changed.pop(key, None)
        else:
            changed[key] = _changed(raw.get(key), old, new, f"{path}.{key}" if path else key)
    return changed


def _with_keys(raw: dict[str, Any], before: dict[Any, Any], after: dict[Any, Any], path: str) -> dict[str, Any]:
    changed = {key: value for key, value in raw.items() if key in after or key not in before}
    for key, new in after.items():
        where = f"{path}.{key}" if path else str(key)
        changed[key] = overlaid(raw.get(key), before[key], new, where) if key in before else _plain(new)
    return changed


def _with_items(raw: list[Any], before: Sequence[Any], after: Sequence[Any], path: str) -> list[Any]:
    if len(raw) != len(before):
        # The old list was not read from here: the field was left out, and its default is a list of its own.
        return [_plain(item) for item in after]
    partners = _partners(raw, [_content(item) for item in before], [_content(item) for item in after], path)
    return [
        _plain(item) if partner is None else overlaid(raw[partner], before[partner], item, f"{path}[{place}]")
        for place, (item, partner) in enumerate(zip(after, partners, strict=True))
    ]


def _partners(raw: list[Any], before: list[bytes], after: list[bytes], path: str) -> list[int | None]:
    """For each item of ``after`` its place in ``before``, or None for a new one; both are given by their contents."""
    partners = _equal_partners(raw, before, after, path)
    kept = {partner for partner in partners if partner is not None}
    old = [place for place in range(len(before)) if place not in kept]
    new = [place for place, partner in enumerate(partners) if partner is None]
    old_names = _names(before, old)
    new_names = _names(after, new)
    if old_names is not None and new_names is not None:
        for name, place in new_names.items():
            partners[place] = old_names.get(name)
    elif len(old) == len(new):
        for old_place, new_place in zip(old, new, strict=True):
            partners[new_place] = old_place
    elif new and any(not is_same(raw[place], msgspec.json.decode(before[place])) for place in old):
        raise AmbiguousChange(path)
    return partners


def _equal_partners(raw: list[Any], before: list[bytes], after: list[bytes], path: str) -> list[int | None]:
    """Pairs the items that did not change: in their own place first, then wherever they went."""
    twins: dict[bytes, list[int]] = defaultdict(list)
    for place, content in enumerate(before):
        twins[content].append(place)
    partners: list[int | None] = [None] * len(after)
    left = {content: list(places) for content, places in twins.items()}
    for place, content in enumerate(after):
        if place in left.get(content, ()):
            left[content].remove(place)
            partners[place] = place
    for place, content in enumerate(after):
        if partners[place] is None and left.get(content):
            partners[place] = left[content].pop(0)
    if len(before) != len(after):
        for content, places in twins.items():
            some_kept = 0 < len(left[content]) < len(places)
            if some_kept and any(not is_same(raw[place], raw[places[0]]) for place in places):
                raise AmbiguousChange(path)
    return partners


def _names(contents: list[bytes], places: list[int]) -> dict[str, int] | None:
    """The items at these places by name, where each has one of its own."""
    named = {name: place for place in places if (name := _name(contents[place]))}
    return named if len(named) == len(places) else None


def _name(content: bytes) -> Any:
    return _NAMED.decode(content).name if content.startswith(b"{") else None


def _is_unchanged(before: Any, after: Any) -> bool:
    if before is after:
        return True
    if type(before) is type(after):
        # What Python calls different is; of what it calls equal, only plain values are surely the same JSON.
        if before != after:
            return False
        if isinstance(before, _PLAIN):
            return True
    if before is msgspec.UNSET or after is msgspec.UNSET:
        return False
    return _content(before) == _content(after)


def _content(item: Any) -> bytes:
    return msgspec.json.encode(item, order="sorted")


def _plain(value: Any) -> Any:
    # By way of JSON, which also carries Raw values; unset has no JSON form, and is only ever compared.
    return value if value is msgspec.UNSET else msgspec.json.decode(msgspec.json.encode(value))
