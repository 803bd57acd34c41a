"""How each place of an object merges: the schema, read once for what structured merge asks of it.

A place holds a scalar, a list, a map, or any of them (a value without a declared type). A list or a map is either
atomic, owned and replaced whole, or granular, with its items owned one by one. The fields of a struct are worked out
when they are first met: a kind costs only what its objects use, and types that hold themselves need no care.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import msgspec

from shoal.cluster.apiserver.apply.elements import key_label, value_label
from shoal.cluster.apiserver.kinds.decode import decode
from shoal.cluster.apiserver.schema import ListType, Schema

NUMERIC, STRING, BOOLEAN, UNTYPED = "numeric", "string", "boolean", "untyped"
SCALAR, LIST, MAP = "scalar", "list", "map"
_MOST_KNOWN = 1024


class ListShape:
    """A list: how its items are told apart, and what each of them is."""

    __slots__ = ("_known", "defaults", "is_atomic", "item", "keys")

    def __init__(self, item: Shape, *, is_atomic: bool, keys: tuple[str, ...], defaults: dict[str, Any]) -> None:
        self.item = item
        self.is_atomic = is_atomic
        self.keys = keys
        self.defaults = defaults
        self._known: dict[str, str] = {}

    def label(self, item: Any) -> str:
        """The path element of an item; raises NotAnElement for one that has none."""
        keys = self.keys
        if not keys:
            return value_label(item)
        if len(keys) > 1 or item.__class__ is not dict:
            return key_label(keys, self.defaults, item)
        # Objects repeat the few names that they give to containers, variables, volumes.
        name = item.get(keys[0])
        if name.__class__ is not str:
            return key_label(keys, self.defaults, item)
        known = self._known
        label = known.get(name)
        if label is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            label = known[name] = key_label(keys, self.defaults, item)
        return label


class MapShape:
    """A map or a struct: its declared fields, and what any other key holds (None where there may be no other)."""

    __slots__ = ("element", "fields", "is_atomic")

    def __init__(self, fields: Fields, element: Shape | None, *, is_atomic: bool) -> None:
        self.fields = fields
        self.element = element
        self.is_atomic = is_atomic

    def child(self, key: str) -> Shape | None:
        """What the key holds, if it may be there."""
        return self.fields[key][1] if key in self.fields.declared else self.element


class Shape:
    """One place: the scalar, the list and the map that it may hold, one of them alone where its type is declared."""

    __slots__ = ("is_exact", "is_leaf", "is_single", "list", "map", "scalar")

    scalar: str | None
    list: ListShape | None
    map: MapShape | None
    is_single: bool
    is_leaf: bool
    """Whether it is never taken apart."""
    is_exact: bool
    """Whether == is enough to compare values: nowhere below can true stand where 1 did."""

    def set(self, scalar: str | None, list_: ListShape | None, map_: MapShape | None, *, is_exact: bool) -> None:
        """Says what may be here, once it is known."""
        self.scalar, self.list, self.map = scalar, list_, map_
        self.is_single = (scalar is not None) + (list_ is not None) + (map_ is not None) == 1
        self.is_leaf = (list_ is None or list_.is_atomic) and (map_ is None or map_.is_atomic)
        self.is_exact = is_exact

    def form_of(self, value: Any) -> str:
        """Which of its forms a value takes; null and misfits take the first there is."""
        kind = value.__class__
        if kind is dict:
            if self.map is not None:
                return MAP
        elif kind is list:
            if self.list is not None:
                return LIST
        elif value is not None and self.scalar is not None:
            return SCALAR
        return self.first

    @property
    def first(self) -> str:
        """The form of a null."""
        if self.map is not None:
            return MAP
        return SCALAR if self.scalar is not None else LIST


class Fields(dict[str, tuple[str, Shape, bool]]):
    """The fields of a struct by name: path element, shape and whether that is a leaf; made when first asked for."""

    __slots__ = ("_make", "_preserves", "declared")

    def __init__(self, make: _Maker | None, declared: dict[str, Schema | Shape], *, preserves: bool) -> None:
        super().__init__()
        self._make = make
        self._preserves = preserves
        self.declared = declared

    def __missing__(self, name: str) -> tuple[str, Shape, bool]:
        declared = self.declared[name]
        assert self._make is not None, "fields are declared where something makes their shapes"
        shape = declared if isinstance(declared, Shape) else self._make.shape(declared, preserves=self._preserves)
        field = self[name] = (f"f:{name}", shape, shape.is_leaf)
        return field


def shape_of(schema: Schema) -> Shape:
    """The shape of a kind's objects; it is kept with the schema, and goes with it when a definition is deleted."""
    if schema.shape is None:
        schema.shape = place_shape(schema) if schema.go_type else _custom_shape(schema)
    shape: Shape = schema.shape
    return shape


def _custom_shape(schema: Schema) -> Shape:
    return _Maker(is_custom=True, is_exact=not _reaches_untyped(schema)).custom_object(schema)


def place_shape(schema: Schema) -> Shape:
    """The shape of what is in any place."""
    is_exact = not _reaches_untyped(schema)
    return _Maker(is_custom=not schema.go_type, is_exact=is_exact).shape(schema, preserves=False)


def zero_bytes(schema: Schema) -> bytes:
    """The JSON of an object of this kind in which nothing is set: what is there before a create."""
    return _zero_bytes(schema) if schema.go_type else b"{}"


@cache
def _zero_bytes(schema: Schema) -> bytes:
    return msgspec.json.encode(decode(schema, {}, []))


def is_untyped(map_shape: MapShape) -> bool:
    """Whether a map declares nothing about itself."""
    element = map_shape.element
    return not map_shape.fields.declared and element is not None and element.scalar == UNTYPED and not element.is_leaf


class _Maker:
    """Makes the shapes of one kind; places that share a schema node share a shape."""

    def __init__(self, *, is_custom: bool, is_exact: bool) -> None:
        self._is_custom = is_custom
        self._is_exact = is_exact
        self._made: dict[tuple[Schema, bool], Shape] = {}
        self._making = threading.RLock()
        """Threads share shapes, and none may see one that another is still filling in."""
        self._atomic = _untyped_shape(is_atomic=True)
        self._deduced = _untyped_shape(is_atomic=False)

    def shape(self, schema: Schema, *, preserves: bool) -> Shape:
        """The shape of a node; a custom kind's nodes also keep unknown fields where one around them does."""
        preserves = self._is_custom and (preserves or schema.preserves_unknown)
        key = (schema, preserves)
        with self._making:
            shape = self._made.get(key)
            if shape is None:
                shape = self._made[key] = Shape()
                self._fill(shape, schema, preserves=preserves)
            return shape

    def custom_object(self, schema: Schema) -> Shape:
        """The shape of a custom kind, whose metadata is not for its schema to say."""
        shape = Shape()
        declared: dict[str, Schema | Shape] = {**schema.properties, **_OBJECT_FIELDS}
        preserves = schema.preserves_unknown
        fields = Fields(self, declared, preserves=preserves)
        element = self._element(schema, preserves=preserves)
        shape.set(None, None, MapShape(fields, element, is_atomic=False), is_exact=self._is_exact)
        return shape

    def _fill(self, shape: Shape, schema: Schema, *, preserves: bool) -> None:
        if schema.go_type in RAW_TYPES:
            shape.set(UNTYPED, self._atomic.list, self._atomic.map, is_exact=False)
        elif schema.format in ("quantity", "int-or-string") and schema.go_type:
            shape.set(UNTYPED, None, None, is_exact=True)
        elif schema.go_type and not schema.type:
            shape.set(UNTYPED, self._deduced.list, self._deduced.map, is_exact=False)
        elif schema.type == "object":
            shape.set(None, None, self._map(schema, preserves=preserves), is_exact=self._is_exact)
        elif schema.type == "array":
            shape.set(None, self._list(schema, preserves=preserves), None, is_exact=self._is_exact)
        elif schema.type in _SCALARS:
            scalar = _SCALARS[schema.type]
            if scalar is STRING and schema.format not in ("", "byte"):
                scalar = UNTYPED
            shape.set(scalar, None, None, is_exact=True)
        else:
            list_, map_ = self._list(schema, preserves=preserves), self._map(schema, preserves=preserves)
            shape.set(UNTYPED, list_, map_, is_exact=False)

    def _map(self, schema: Schema, *, preserves: bool) -> MapShape:
        declared: dict[str, Schema | Shape] = dict(schema.properties)
        if schema.is_embedded:
            declared |= _OBJECT_FIELDS
        element = self._element(schema, preserves=preserves)
        return MapShape(Fields(self, declared, preserves=preserves), element, is_atomic=schema.is_atomic)

    def _element(self, schema: Schema, *, preserves: bool) -> Shape | None:
        if schema.additional is not None:
            return self.shape(schema.additional, preserves=preserves)
        return self._deduced if preserves or not schema.properties else None

    def _list(self, schema: Schema, *, preserves: bool) -> ListShape:
        items = schema.items
        item = self._atomic if items is None else self.shape(items, preserves=preserves)
        keys = schema.list_keys if schema.list_type is ListType.MAP else ()
        defaults: dict[str, Any] = {}
        for key in keys:
            field = items.properties.get(key) if items is not None else None
            if field is not None and field.default is not msgspec.UNSET and field.default is not None:
                defaults[key] = field.default
        return ListShape(item, is_atomic=schema.list_type is ListType.ATOMIC, keys=keys, defaults=defaults)


RAW_TYPES = frozenset({"RawExtension", "runtime.RawExtension"})
_SCALARS = {"string": STRING, "integer": NUMERIC, "number": NUMERIC, "boolean": BOOLEAN}
_STRING_NODE = Schema(type="string")


def _untyped_shape(*, is_atomic: bool) -> Shape:
    """A value of any type whose lists are atomic, and its maps too where it is said so."""
    shape = Shape()
    inner = shape if is_atomic else _untyped_shape(is_atomic=True)
    list_ = ListShape(inner, is_atomic=True, keys=(), defaults={})
    fields = Fields(None, {}, preserves=True)
    shape.set(UNTYPED, list_, MapShape(fields, shape, is_atomic=is_atomic), is_exact=False)
    return shape


def _object_meta() -> Shape:
    text, number = _STRING_NODE, Schema(type="integer")
    time = Schema(type="string", format="date-time")
    texts = Schema(type="object", additional=text)
    owner = Schema(
        type="object",
        properties=dict.fromkeys(("apiVersion", "kind", "name", "uid"), text)
        | dict.fromkeys(("controller", "blockOwnerDeletion"), Schema(type="boolean")),
        is_atomic=True,
    )
    owner.properties["uid"] = Schema(type="string", default="")
    properties = dict.fromkeys(("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), text) | {
        "generation": number,
        "creationTimestamp": time,
        "deletionTimestamp": time,
        "deletionGracePeriodSeconds": number,
        "labels": texts,
        "annotations": texts,
        "ownerReferences": Schema(type="array", items=owner, list_type=ListType.MAP, list_keys=("uid",)),
        "finalizers": Schema(type="array", items=text, list_type=ListType.SET),
        "managedFields": Schema(type="array", items=Schema()),
    }
    make = _Maker(is_custom=False, is_exact=True)
    return make.shape(Schema(type="object", properties=properties), preserves=False)


OBJECT_META = _object_meta()
"""The metadata of every custom object and of objects held inside others."""
_OBJECT_FIELDS: dict[str, Schema | Shape] = {"apiVersion": _STRING_NODE, "kind": _STRING_NODE, "metadata": OBJECT_META}


def _reaches_untyped(root: Schema) -> bool:
    seen: set[Schema] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node in seen or node.go_type == "v1.FieldsV1":
            continue
        seen.add(node)
        is_special = node.format in ("quantity", "int-or-string")
        if (not node.type and not is_special) or node.preserves_unknown or node.go_type in RAW_TYPES:
            return True
        if node.type == "object" and not node.properties and node.additional is None:
            return True
        waiting.extend(node.properties.values())
        waiting.extend(below for below in (node.additional, node.items) if below is not None)
    return False
