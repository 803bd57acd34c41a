"""Fields that an applier gives up: which of them go, and the object without them.

A field goes where the manager applied it last time, does not apply it now, and nobody else owns it.
"""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.apply.elements import Untypeable
from shoal.cluster.apiserver.apply.fieldset import Tree, difference, intersection, joined
from shoal.cluster.apiserver.apply.shape import LIST, MAP, ListShape, MapShape, Shape


def owned(shape: Shape, value: Any) -> Tree:
    """The fields that a configuration names: leaves, items, and entries of maps, but not the structs around them."""
    return _owned_below(shape, value) or {}


def pruned(shape: Shape, value: Any, *, last: Tree, all_owned: Tree) -> Any:
    """The merged object without what ``last`` names and nobody in ``all_owned`` (its new fields too) holds."""
    last = with_structs(shape, last)
    there = with_structs(shape, owned(shape, value))
    left = with_structs(shape, owned(shape, without(shape, value, last)))
    kept = without(shape, value, difference(there, joined(left, with_structs(shape, all_owned))))
    # Of what is gone now, only that which the manager had owned may go.
    gone = difference(there, with_structs(shape, owned(shape, kept)))
    return without(shape, value, intersection(gone, last))


def without(shape: Shape, value: Any, fields: Tree) -> Any:
    """The value without these fields; a map or list that loses all it has becomes null."""
    form = shape.form_of(value)
    if form is MAP and shape.map is not None:
        return _map_without(shape.map, value, fields)
    if form is LIST and shape.list is not None:
        return _list_without(shape.list, value, fields)
    return value


def with_structs(shape: Shape | None, tree: Tree) -> Tree:
    """The set and the declared fields around its members, which ownership leaves unsaid."""
    map_shape = shape.map if shape is not None else None
    list_shape = shape.list if shape is not None else None
    out: Tree = {}
    for label, branch in tree.items():
        if not branch:
            out[label] = branch
            continue
        child: Shape | None = None
        is_field = False
        if label[0] == "f" and map_shape is not None:
            name = label[2:]
            is_field = name in map_shape.fields.declared
            child = map_shape.child(name)
        elif label[0] == "k" and list_shape is not None:
            child = list_shape.item
        below = with_structs(child, branch)
        if is_field and "." not in below:
            below["."] = {}
        out[label] = below
    return out


def _owned_below(shape: Shape, value: Any) -> Tree | None:
    """The fields below a value; None for a leaf, which is owned itself."""
    form = shape.form_of(value)
    if form is MAP and shape.map is not None and not shape.map.is_atomic:
        return _owned_in_map(shape.map, value)
    if form is LIST and shape.list is not None and not shape.list.is_atomic:
        tree: Tree = {}
        if value.__class__ is list:
            item_shape = shape.list.item
            for item in value:
                label = _label(shape.list, item)
                below = _owned_below(item_shape, item) if label not in tree else None
                tree[label] = {".": {}, **below} if below else {}
        return tree
    return None


def _owned_in_map(shape: MapShape, value: Any) -> Tree:
    tree: Tree = {}
    if value.__class__ is not dict:
        return tree
    fields, element = shape.fields, shape.element
    declared = fields.declared
    for key, item in value.items():
        if key in declared:
            label, child, is_leaf = fields[key]
            if is_leaf or item is None or item == {}:
                tree[label] = {}
            elif (below := _owned_below(child, item)) or below is None:
                tree[label] = below or {}
        else:
            below = None if element is None or element.is_leaf else _owned_below(element, item)
            tree["f:" + key] = {".": {}, **below} if below else {}
    return tree


def _map_without(shape: MapShape, value: Any, fields: Tree) -> Any:
    if value.__class__ is not dict or shape.is_atomic:
        return None
    out = {}
    for key, item in value.items():
        cut = fields.get(f"f:{key}")
        if cut is None:
            out[key] = item
        elif cut and "." not in cut:
            child = shape.child(key)
            out[key] = item if child is None else without(child, item, cut)
    return out or None


def _list_without(shape: ListShape, value: Any, fields: Tree) -> Any:
    if value.__class__ is not list or shape.is_atomic:
        return None
    out = []
    for item in value:
        cut = fields.get(_label(shape, item))
        if cut is None:
            out.append(item)
        elif cut and "." not in cut:
            out.append(without(shape.item, item, cut))
    return out or None


def _label(shape: ListShape, item: Any) -> str:
    try:
        return shape.label(item)
    except Untypeable:
        return ""
