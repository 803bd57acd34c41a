"""Strategic merge patch: maps are merged field by field, and lists by what their schema says of them.

A list whose schema says ``merge`` is merged item by item: maps are matched by their merge key, plain values are a set.
Any other list is replaced. Directives in the patch say what a plain value cannot:

- ``$patch: replace`` or ``delete``, in a map or an item of a list;
- ``$retainKeys: […]``: of the map that is there, only these fields stay;
- ``$setElementOrder/<list>: […]``: the order of the merged list;
- ``$deleteFromPrimitiveList/<list>: […]``: plain values to take out.

Most faults of a patch are answered with 500 and no reason, since Kubernetes does not foresee them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.patches.go_text import json_kind, shown, shown_as_text, type_name
from shoal.cluster.apiserver.patches.merge_patch import drop_nulls
from shoal.cluster.apiserver.patches.ordering import element_type, has_key, in_order
from shoal.cluster.apiserver.patches.repetition import without_repetition
from shoal.cluster.apiserver.refusals import Refused, bad_request, refused
from shoal.cluster.apiserver.schema import Schema

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder"
_DELETE = "$deleteFromPrimitiveList"


def strategic_merge(document: Object, patch: Any, schema: Schema) -> Object:
    """The document with the patch merged into it by what the schema says; raises Refused."""
    if patch is None:
        return msgspec.to_builtins(document)  # type: ignore[no-any-return]
    if not isinstance(patch, dict):
        told = f"cannot unmarshal {json_kind(patch)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"json: {told}")
    try:
        return _merged(msgspec.to_builtins(document), msgspec.to_builtins(patch), schema)
    except RecursionError:
        raise bad_request("exceeded max depth") from None


def _merged(original: dict[str, Any], patch: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Merges the patch into the original, which are both its own and changed."""
    if _PATCH in patch:
        return _by_directive(patch)
    if _RETAIN in patch:
        _retain(original, patch)
    # Lists with an order are merged first, and leave the patch with it.
    for key in [key for key in patch if key.startswith(_ORDER)]:
        _merge_in_order(original, patch, key, schema)
    for key in [key for key in patch if key.startswith(_DELETE)]:
        _delete_values(original, key, patch.pop(key), schema)
    for key, value in patch.items():
        if value is None:
            original.pop(key, None)
            continue
        current = original.get(key)
        if type(current) is dict and type(value) is dict:
            place = _field(schema, key)
            replaces = "replace" in place.merge_strategies
            original[key] = value if replaces else _merged(current, value, place)
        elif type(current) is list and type(value) is list:
            place = _list_field(schema, key)
            merges = "merge" in place.merge_strategies
            original[key] = _merged_list(current, value, place) if merges else value
        else:
            _take_over(original, key, value)
    return original


def _take_over(original: dict[str, Any], key: str, value: Any) -> None:
    """Sets what was not there, or was of another type; the patch has nothing to merge with."""
    if type(value) is dict or type(value) is list:
        drop_nulls(value)
        if _has_directive(value):
            original.pop(key, None)
            return
        value = _without_directives(value)
    original[key] = value


def _by_directive(patch: dict[str, Any]) -> dict[str, Any]:
    directive = patch[_PATCH]
    if directive == "replace":
        del patch[_PATCH]
        return patch
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _retain(original: dict[str, Any], patch: dict[str, Any]) -> None:
    keys = patch.pop(_RETAIN)
    if not isinstance(keys, list):
        raise bad_request("invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith((_DELETE, _ORDER)) and key not in keys:
            raise bad_request("invalid patch format of retainKeys")
    for key in [key for key in original if key not in keys]:
        del original[key]


def _merge_in_order(original: dict[str, Any], patch: dict[str, Any], directive: str, schema: Schema) -> None:
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise _wrong_type(order)
    prefix, slash, key = directive.partition("/")
    if prefix != _ORDER or not slash:
        raise bad_request("invalid patch format of setElementOrder list")
    current, changes = original.get(key, msgspec.UNSET), patch.get(key, msgspec.UNSET)
    for found in (current, changes):
        if found is not msgspec.UNSET and not isinstance(found, list):
            raise _wrong_type(found)
    place = _list_field(schema, key)
    items: list[Any] = changes if isinstance(changes, list) else []
    _check_order(items, order, place.merge_key)
    before: list[Any] = current if isinstance(current, list) else []
    live = before
    if isinstance(current, list) and isinstance(changes, list):
        merged = changes
        if "merge" in place.merge_strategies:
            joined, live, changes = _joined(current, changes, place)
            merged = in_order(joined, changes, live, place.merge_key)
            # What is new takes the places of what was deleted, as far as there are such.
            live = joined[: len(before)]
    elif isinstance(current, list):
        merged = current
    elif isinstance(changes, list):
        merged = _without_directives(changes)
    else:
        return
    element_type(before, items)
    original[key] = in_order(merged, order, live, place.merge_key)
    patch.pop(key, None)


def _check_order(items: list[Any], order: list[Any], merge_key: str) -> None:
    """Refuses a patch whose items are not all in the order, one after the other."""
    if not items or not order:
        return
    place = 0
    wanted = [item for item in items if not _has_directive(item)]
    for item in wanted:
        while place < len(order) and not _is_same_item(item, order[place], merge_key):
            place += 1
        if place == len(order):
            raise _failed(f"The order in patch list:\n{shown(items)}\n doesn't match {_ORDER} list:\n{shown(order)}\n")
        place += 1


def _is_same_item(item: Any, other: Any, merge_key: str) -> bool:
    if not merge_key:
        return type(item) is type(other) and bool(item == other)
    for each in (item, other):
        if not isinstance(each, dict):
            raise _failed(f"expected a map[string]interface {{}}, but received a {type_name(each)}")
        has_key(each, merge_key)
    return type(item[merge_key]) is type(other[merge_key]) and bool(item[merge_key] == other[merge_key])


def _delete_values(original: dict[str, Any], directive: str, values: Any, schema: Schema) -> None:
    prefix, slash, key = directive.partition("/")
    if prefix != _DELETE or not slash:
        raise bad_request("invalid patch format of primitive list")
    if values is None:
        original.pop(key, None)
        return
    current = original.get(key)
    if type(current) is not type(values):
        return
    if isinstance(current, dict) and isinstance(values, dict):
        original[key] = _merged(current, values, _field(schema, key))
    elif isinstance(current, list) and isinstance(values, list):
        place = _list_field(schema, key)
        if not current and not values:
            return
        if element_type(current, values) is dict:
            original[key] = _merged_list(current, values, place)
        else:
            gone = set(values)
            original[key] = [item for item in current if item not in gone]


def _merged_list(original: list[Any], patch: list[Any], place: Schema) -> list[Any]:
    if not original and not patch:
        return original
    joined, live, wanted = _joined(original, patch, place)
    return in_order(joined, wanted, live, place.merge_key)


def _joined(original: list[Any], patch: list[Any], place: Schema) -> tuple[list[Any], list[Any], list[Any]]:
    """All items of both in no order yet, and the two lists by which to order them: what is live, and the patch."""
    if not original and not patch:
        return [], [], []
    if element_type(original, patch) is not dict:
        return without_repetition(original + patch), original, patch
    merge_key = place.merge_key
    if not merge_key:
        raise _failed("cannot merge lists without merge key for struct")
    live, wanted = _after_special_items(original, patch, merge_key)
    joined = list(live)
    items = place.items or place
    # The first item of each key, as it comes: a list may hold twenty thousand of them.
    known: dict[tuple[type, Any], int] = {}
    for at, item in enumerate(joined):
        if merge_key in item:
            known.setdefault(_exact(item[merge_key]), at)
    for change in wanted:
        has_key(change, merge_key)
        found = known.get(_exact(change[merge_key]))
        if found is None:
            known[_exact(change[merge_key])] = len(joined)
            joined.append(change)
        else:
            joined[found] = _merged(joined[found], change, items)
    return joined, live, wanted


def _after_special_items(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Carries out the directives among the items; gives what stays of the list, and the plain items of the patch."""
    plain = []
    replaces = False
    gone: set[tuple[type, Any]] = set()
    for item in patch:
        if _PATCH not in item:
            plain.append(item)
            continue
        match item[_PATCH]:
            case "delete":
                has_key(item, merge_key)
                gone.add(_exact(item[merge_key]))
            case "replace":
                replaces = True
            case "merge":
                raise _failed("merging lists cannot yet be specified in the patch")
            case unknown:
                raise _unknown_directive(unknown, item)
    if gone:
        original = [each for each in original if merge_key not in each or _exact(each[merge_key]) not in gone]
    return (plain, []) if replaces else (original, plain)


def _exact(value: Any) -> tuple[type, Any]:
    """What tells values apart by their type as well, since true is not 1."""
    if type(value) is dict or type(value) is list:
        value = msgspec.json.encode(value, order="sorted")
    return type(value), value


def _has_directive(value: Any) -> bool:
    return type(value) is dict and _PATCH in value


def _without_directives(value: Any) -> Any:
    """The value without the maps that are directives, wherever they are."""
    if type(value) is dict:
        return {key: _without_directives(inner) for key, inner in value.items() if not _has_directive(inner)}
    if type(value) is list:
        return [_without_directives(inner) for inner in value if not _has_directive(inner)]
    return value


def _field(schema: Schema, key: str) -> Schema:
    place = schema.properties.get(key)
    if place is None:
        raise _no_field(schema, key)
    return place


def _list_field(schema: Schema, key: str) -> Schema:
    place = _field(schema, key)
    if place.items is None and not place.is_pointer:
        raise _failed("expected slice or array type, but got: struct")
    return place


def _no_field(schema: Schema, key: str) -> Refused:
    if schema.type == "object" and schema.additional is None:
        name = schema.go_type.lstrip("*").rpartition(".")[2]
        return _failed(f'unable to find api field in struct {name} for the json field "{key}"')
    kind = {"object": "map", "array": "slice", "": "interface"}.get(schema.type, schema.type)
    return _failed(f"merging an object in json but data type is not struct, instead is: {kind}")


def _unknown_directive(directive: Any, patch: dict[str, Any]) -> Refused:
    return _failed(f"unknown patch type: {shown_as_text(directive)} in map: {shown(patch)}")


def _wrong_type(value: Any) -> Refused:
    return _failed(f"expected a []interface {{}}, but received a {type_name(value)}")


def _failed(message: str) -> Refused:
    return refused(500, "", message)
