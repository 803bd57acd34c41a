"""The merge of an applied configuration into the live object: what is applied wins, what it leaves out stays."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.apply.shape import LIST, MAP, ListShape, MapShape, Shape

_LUMP: Any = object()
"""Stands for items of the live list that share a path element: nothing of theirs is merged."""


def merged(shape: Shape, live: Any, applied: Any) -> Any:
    """The value of a place that both objects have; the result shares parts with them.

    The live object is the caller's own: a number in it for which a truth value is applied becomes null, since Python
    holds 1 and true for the same and would see no change.
    """
    form = shape.form_of(applied)
    if form is MAP and shape.map is not None:
        return _merged_maps(shape.map, live, applied)
    if form is LIST and shape.list is not None:
        return _merged_lists(shape.list, live, applied)
    return applied


def _merged_maps(shape: MapShape, live: Any, applied: Any) -> Any:
    old = live if live.__class__ is dict else {}
    new = applied if applied.__class__ is dict else {}
    if shape.is_atomic or not (old or new):
        return applied
    out = dict(old)
    for key, item in new.items():
        child = shape.child(key)
        if key not in old or child is None:
            out[key] = item
            continue
        out[key] = merged(child, old[key], item)
        if item.__class__ is bool and old[key].__class__ is not bool:
            old[key] = None
    return out


def _merged_lists(shape: ListShape, live: Any, applied: Any) -> Any:
    old = live if live.__class__ is list else []
    new = applied if applied.__class__ is list else []
    if shape.is_atomic or not (old or new):
        return applied
    old_labels = [shape.label(item) for item in old]
    new_items = {shape.label(item): item for item in new}
    old_items: dict[str, Any] = {}
    for label, item in zip(old_labels, old, strict=True):
        old_items[label] = _LUMP if label in old_items else item

    def both(label: str) -> Any:
        item = new_items[label]
        counterpart = old_items.get(label, _LUMP)
        return item if counterpart is _LUMP else merged(shape.item, counterpart, item)

    return [
        old[place] if label is None else both(label)
        for label, place in _interleaved(old_labels, list(new_items), old_items)
    ]


def _interleaved(old: list[str], new: list[str], in_old: dict[str, Any]) -> list[tuple[str | None, int]]:
    """The order of a merged list: that of the applied items, with each of the others staying where it was among them.

    Yields the label of each applied item, or None and a place in the live list.
    """
    in_new = set(new)
    shared = [label for label in new if label in in_old]
    next_shared = 0
    placed: set[str] = set()
    order: list[tuple[str | None, int]] = []
    at_old = at_new = 0
    while at_old < len(old) or at_new < len(new):
        if at_old < len(old) and at_new < len(new):
            label = old[at_old]
            if label == new[at_new]:
                placed.add(label)
                order.append((label, 0))
                at_old += 1
                at_new += 1
                next_shared += 1
                continue
            if label in in_new and next_shared < len(shared) and shared[next_shared] != label:
                # It comes later among the applied ones.
                at_old += 1
                continue
        if at_old < len(old):
            label = old[at_old]
            if label not in in_new:
                order.append((None, at_old))
                at_old += 1
                continue
            if label in placed:
                at_old += 1
        if at_new < len(new):
            label = new[at_new]
            placed.add(label)
            order.append((label, 0))
            at_new += 1
            if next_shared < len(shared) and shared[next_shared] == label:
                next_shared += 1
    return order
