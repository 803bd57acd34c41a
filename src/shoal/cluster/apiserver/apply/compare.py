"""What a write takes and what it removes: two objects compared field by field, as ownership sees them."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.apply.elements import Untypeable
from shoal.cluster.apiserver.apply.fieldset import Tree, union
from shoal.cluster.apiserver.apply.shape import LIST, MAP, ListShape, MapShape, Shape

Difference = tuple[Tree | None, Tree | None]
"""The fields that are new or changed, and those that are gone; None where there is none."""

_SAME: Difference = (None, None)


def compared(shape: Shape, before: Any, after: Any) -> Difference:
    """What differs between two values of one place, where both are there."""
    if shape.is_exact and before == after:
        return _SAME
    if shape.is_single:
        if shape.is_leaf:
            return _SAME if same(before, after) else ({}, None)
        if shape.map is not None:
            return _compared_maps(shape.map, before, after)
        assert shape.list is not None
        return _compared_lists(shape.list, before, after)
    old_form, new_form = shape.form_of(before), shape.form_of(after)
    difference = _compared_as(shape, new_form, before, after)
    # A null counts as the first form of its place, and not as the same form as a value's.
    if old_form != new_form or (before is None) != (after is None):
        difference = _either(_compared_as(shape, old_form, before, after), difference)
    return difference


def everything(shape: Shape, value: Any) -> Tree:
    """All fields of a value where there was none: every branch is a member as well."""
    kind = value.__class__
    if kind is dict:
        map_shape = shape.map
        if map_shape is None or map_shape.is_atomic or not value:
            return {}
        tree: Tree = {".": {}}
        fields, element = map_shape.fields, map_shape.element
        declared = fields.declared
        if not declared and element is not None and element.is_leaf:
            for key in value:
                tree["f:" + key] = {}
            return tree
        for key, item in value.items():
            if key in declared:
                label, child, is_leaf = fields[key]
                tree[label] = {} if is_leaf else everything(child, item)
            elif element is None:
                raise Untypeable(f".{key}: field not declared in schema")
            else:
                tree["f:" + key] = everything(element, item)
        return tree
    if kind is list:
        list_shape = shape.list
        if list_shape is None or list_shape.is_atomic or not value:
            return {}
        tree = {".": {}}
        item_shape, label_of = list_shape.item, list_shape.label
        for item in value:
            label = label_of(item)
            # What is there twice is owned as one lump.
            tree[label] = {} if label in tree else everything(item_shape, item)
        return tree
    return {}


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal; numbers by value, but true is not 1."""
    if one != other:
        return False
    kind = one.__class__
    if kind is str:
        return True
    if kind is dict:
        return all(same(item, other[key]) for key, item in one.items())
    if kind is list:
        return all(map(same, one, other))
    return (kind is bool) == (other.__class__ is bool)


def _compared_as(shape: Shape, form: str, before: Any, after: Any) -> Difference:
    if form is MAP and shape.map is not None:
        return _compared_maps(shape.map, before, after)
    if form is LIST and shape.list is not None:
        return _compared_lists(shape.list, before, after)
    return _SAME if same(before, after) else ({}, None)


def _compared_maps(shape: MapShape, before: Any, after: Any) -> Difference:
    old = before if before.__class__ is dict else {}
    new = after if after.__class__ is dict else {}
    if shape.is_atomic or not (old or new):
        return _SAME if same(before, after) else ({}, None)
    taken: Tree = {}
    removed: Tree = {}
    fields, element = shape.fields, shape.element
    declared = fields.declared
    for key, item in new.items():
        if key in declared:
            label, child, _ = fields[key]
        elif element is not None:
            label, child = "f:" + key, element
        else:
            raise Untypeable(f".{key}: field not declared in schema")
        if key in old:
            took, lost = compared(child, old[key], item)
            if took is not None:
                taken[label] = took
            if lost is not None:
                removed[label] = lost
        else:
            taken[label] = {} if child.is_leaf else everything(child, item)
    for key, item in old.items():
        if key not in new:
            shape_below = shape.child(key)
            if shape_below is None:
                raise Untypeable(f".{key}: field not declared in schema")
            removed["f:" + key] = everything(shape_below, item)
    return taken or None, removed or None


def _compared_lists(shape: ListShape, before: Any, after: Any) -> Difference:
    old = before if before.__class__ is list else []
    new = after if after.__class__ is list else []
    if shape.is_atomic or not (old or new):
        return _SAME if same(before, after) else ({}, None)
    old_items, new_items = _by_label(shape, old), _by_label(shape, new)
    taken: Tree = {}
    removed: Tree = {}
    for label, items in new_items.items():
        earlier = old_items.get(label, [])
        if len(items) == 1 and len(earlier) == 1:
            took, lost = compared(shape.item, earlier[0], items[0])
            if took is not None:
                taken[label] = took
            if lost is not None:
                removed[label] = lost
        elif len(items) == 1:
            taken[label] = everything(shape.item, items[0])
            if earlier:
                removed[label] = {}
        elif len(earlier) < 2:
            taken[label] = {}
            if earlier:
                removed[label] = everything(shape.item, earlier[0])
        elif not same(earlier, items):
            taken[label] = {}
    for label, items in old_items.items():
        if label not in new_items:
            removed[label] = everything(shape.item, items[0]) if len(items) == 1 else {}
    return taken or None, removed or None


def _by_label(shape: ListShape, items: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(shape.label(item), []).append(item)
    return found


def _either(one: Difference, other: Difference) -> Difference:
    return _joined(one[0], other[0]), _joined(one[1], other[1])


def _joined(one: Tree | None, other: Tree | None) -> Tree | None:
    if one is None or other is None:
        return other if one is None else one
    return union(one, other) if one != other else one
