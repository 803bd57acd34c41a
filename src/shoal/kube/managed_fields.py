"""Whether an object already is as a manager applied it, told from the object alone.

The server records for each field manager which fields it owns (``metadata.managedFields``). An apply would change
nothing exactly when our record names the fields that we want, no more and no less, and the object has our values there.
So a controller at rest need not write to find out, and still notices when somebody removed or took one of its fields.

The record is a tree: ``f:name`` for a field, ``k:{…}`` for a list element by its key fields, ``v:…`` for an element of
a set, ``.`` for the node itself; an empty node is a leaf, which we own whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.meta.quantity import InvalidQuantity, parse_quantity

Fields = Mapping[str, Any]

_IDENTITY = {"apiVersion", "kind"}
_IDENTITY_METADATA = {"name", "namespace", "uid", "resourceVersion", "generateName"}
_HOLD_QUANTITIES = {"requests", "limits", "hard", "capacity", "overhead"}

# Inside a value that is owned whole, what the server writes where we wrote nothing. An earlier value of ours that
# equals the default may stay as well: taking it away would bring the same value back.
_DEFAULTS: dict[tuple[str, str], Any] = {
    ("fieldRef", "apiVersion"): "v1",
    ("resourceFieldRef", "divisor"): "0",
    ("serviceAccountToken", "expirationSeconds"): 3600,
    ("ports", "protocol"): "TCP",
}


def fields_of(content: Mapping[str, Any], manager: str, *, subresource: str = "") -> Fields | None:
    """What a manager owns of an object by applying, or None where it never applied."""
    for entry in content.get("metadata", {}).get("managedFields", ()):
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and entry.get("subresource", "") == subresource
        ):
            owned: Fields = entry.get("fieldsV1", {})
            return owned
    return None


def difference(wanted: Mapping[str, Any], live: Mapping[str, Any], owned: Fields) -> str | None:
    """The path of one field that an apply of ``wanted`` would change, or None where it would change nothing."""
    body = {key: value for key, value in wanted.items() if key not in _IDENTITY}
    if "metadata" in body:
        metadata = {key: value for key, value in body["metadata"].items() if key not in _IDENTITY_METADATA}
        body = {key: value for key, value in body.items() if key != "metadata"}
        if metadata or "f:metadata" in owned:
            body["metadata"] = metadata
    return _in_map(body, live, owned, "")


def owned_part(owned: Fields, part: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """What of a partial object a record names, with the live values; of a list, the elements that the record names."""
    found: dict[str, Any] = {}
    for name, value in part.items():
        node = owned.get(f"f:{name}")
        if node is None or name not in live:
            continue
        if isinstance(value, Mapping) and value and isinstance(live[name], Mapping):
            if inner := owned_part(node, value, live[name]):
                found[name] = inner
        else:
            found[name] = _owned_elements(node, live[name])
    return found


def without(owned: Fields, part: Mapping[str, Any]) -> Fields:
    """A record less the fields of a partial object, and less what then holds none any more."""
    if not part:
        return owned
    left = dict(owned)
    for name, value in part.items():
        node = left.pop(f"f:{name}", None)
        if node is None or not isinstance(value, Mapping) or not value:
            continue
        inner = without(node, value)
        if any(key != "." for key in inner):
            left[f"f:{name}"] = inner
    return left


def _owned_elements(owned: Fields, live: Any) -> Any:
    """A live value; of a list that several share, the elements that a record names."""
    if not isinstance(live, list):
        return live
    if values := [msgspec.json.decode(name[2:]) for name in owned if name.startswith("v:")]:
        return values
    if keys := [msgspec.json.decode(name[2:]) for name in owned if name.startswith("k:")]:
        return [item for item in live if any(all(item.get(field) == key[field] for field in key) for key in keys)]
    return live


def _between(wanted: Any, live: Any, owned: Fields, path: str) -> str | None:
    if isinstance(wanted, Mapping):
        return _in_map(wanted, live, owned, path)
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        return _in_list(wanted, live, owned, path)
    return None if _equal(wanted, live, path) else path


def _in_map(wanted: Mapping[str, Any], live: Any, owned: Fields, path: str) -> str | None:
    if not isinstance(live, Mapping):
        return path
    fields = {name[2:]: node for name, node in owned.items() if name.startswith("f:")}
    if not fields:
        # A leaf: we own the whole value. (Of a map that others fill we may own the existence alone; the record does not
        # tell the two apart, and one needless apply is better than one that is missing.)
        return None if _equal(wanted, live, path) else path
    for name, value in wanted.items():
        here = f"{path}.{name}" if path else name
        if name not in live and not value:
            # The server drops zero values. Had another manager removed the field, it would not be ours any more.
            if name in fields:
                continue
            return here
        if name not in fields or name not in live:
            return here
        if found := _between(value, live[name], fields[name], here):
            return found
    for name in fields:
        if name not in wanted:
            return f"{path}.{name}" if path else name
    return None


def _in_list(wanted: Sequence[Any], live: Any, owned: Fields, path: str) -> str | None:
    if not isinstance(live, Sequence):
        return path
    values = [msgspec.json.decode(name[2:]) for name in owned if name.startswith("v:")]
    keyed = {name: node for name, node in owned.items() if name.startswith("k:")}
    if values:
        same = len(values) == len(wanted) and all(value in values and value in live for value in wanted)
        return None if same else path
    if not keyed:
        return None if _equal(wanted, live, path) else path
    unmatched = {name: msgspec.json.decode(name[2:]) for name in keyed}
    for element in wanted:
        if not isinstance(element, Mapping):
            return path
        # A key field that we leave out has its default, which the record names: it matches anything.
        match = next(
            (
                name
                for name, key in unmatched.items()
                if all(
                    element[field] == value if field in element else f"f:{field}" not in keyed[name]
                    for field, value in key.items()
                )
            ),
            None,
        )
        if match is None:
            return f"{path}[{len(unmatched)}]"
        key = unmatched.pop(match)
        here = f"{path}[{match[2:]}]"
        counterpart = next(
            (
                item
                for item in live
                if isinstance(item, Mapping) and all(item.get(field) == value for field, value in key.items())
            ),
            None,
        )
        if counterpart is None:
            return here
        if found := _in_map(element, counterpart, keyed[match], here):
            return found
    return f"{path}[{next(iter(unmatched))[2:]}]" if unmatched else None


def _equal(wanted: Any, live: Any, path: str) -> bool:
    """Whether a value is as we want it, but for the form of amounts and for defaults that the server wrote in."""
    if isinstance(wanted, bool) or isinstance(live, bool):
        return wanted is live
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        return all(
            _equal(wanted[name], live[name], f"{path}.{name}")
            if name in wanted and name in live
            else _is_default(path, name, live.get(name), wanted.get(name))
            for name in wanted.keys() | live.keys()
        )
    if isinstance(wanted, list | tuple) and isinstance(live, list | tuple):
        return len(wanted) == len(live) and all(map(_equal, wanted, live, [path] * len(live)))
    if wanted == live:
        return True
    return _holds_quantity(path) and _same_quantity(wanted, live)


def _is_default(path: str, name: str, live: Any, wanted: Any) -> bool:
    """Whether a field that only one side has means the same on both: empty here, or the server's default there."""
    if live is None:
        return _is_empty(wanted)
    parent = path.rpartition(".")[2].partition("[")[0]
    return bool(_DEFAULTS.get((parent, name)) == live)


def _holds_quantity(path: str) -> bool:
    """Whether a path leads to a resource amount, which the server writes in its own form (1000m is 1)."""
    first, *between = path.split(".")[:-1] or [""]
    return first not in ("data", "metadata") and any(part in _HOLD_QUANTITIES for part in between)


def _same_quantity(wanted: Any, live: Any) -> bool:
    try:
        return parse_quantity(wanted) == parse_quantity(live)
    except (InvalidQuantity, TypeError):
        return False


def _is_empty(value: Any) -> bool:
    return value is None or value == []
