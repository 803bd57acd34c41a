"""JSON patch (RFC 6902) as Kubernetes carries it out.

It is laxer than the RFC, and clients have come to rely on that. A list may be indexed from its end (``-1``). A field
that is not there counts as null: ``replace`` sets it, ``copy`` copies null, ``test`` finds null. Every operation that
fails gets the same answer, which does not say why; only who patches on behalf of others learns more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import msgspec

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.patches.go_text import json_kind
from shoal.cluster.apiserver.refusals import Refused, bad_request, too_large, unprocessable
from shoal.kube.admission.jsonpatch import is_same

MOST_OPERATIONS = 10_000
MOST_COPIED_BYTES = 3 * 1024 * 1024
"""What all copies of one patch may add, so that copies of copies stay small."""

Container: TypeAlias = dict[str, Any] | list[Any]

_INDEX = re.compile(r"[+-]?[0-9]{1,18}")


class Unfit(Exception):
    """An operation cannot be carried out on the document as it is."""


def json_patch(document: Object, operations: Any) -> Object:
    """The document after all operations; raises Refused, and nothing is changed, where one cannot be carried out."""
    checked = _checked(operations)
    try:
        return patched(document, checked)
    except Unfit:
        raise not_carried_out() from None
    except RecursionError:
        raise bad_request("exceeded max depth") from None


def patched(document: Object, operations: Sequence[Mapping[str, Any] | None]) -> Object:
    """The document after operations that are known to be well formed; raises Unfit, which says what is wrong."""
    own: Object = msgspec.to_builtins(document)
    return _Patching(own).after(operations) if operations else own


def not_carried_out() -> Refused:
    """The answer to a patch that can be read and not be carried out."""
    return unprocessable("the server rejected our request due to an error in our request")


def unknown_fields(operations: Any) -> list[str]:
    """What strict validation finds in the operations themselves."""
    if not isinstance(operations, list):
        return []
    known = {"op", "path", "from", "value"}
    return [
        f'json patch unknown field "[{place}].{field}"'
        for place, operation in enumerate(operations)
        if isinstance(operation, dict)
        for field in operation
        if field not in known
    ]


def _checked(operations: Any) -> list[dict[str, Any] | None]:
    if operations is None:
        return []
    if not isinstance(operations, list):
        raise _undecodable(operations, "Go value of type []handlers.jsonPatchOp")
    for operation in operations:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            raise _undecodable(operation, "Go value of type handlers.jsonPatchOp")
        for field in ("op", "path", "from"):
            if not isinstance(operation.get(field), str | None):
                raise _undecodable(operation[field], f"Go struct field jsonPatchOp.{field} of type string")
    if len(operations) > MOST_OPERATIONS:
        told = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(operations)}"
        raise too_large(f"Request entity too large: {told}")
    return operations


def _undecodable(value: Any, target: str) -> Refused:
    return bad_request(f"error decoding patch: json: cannot unmarshal {json_kind(value)} into {target}")


class _Patching:
    """One document, which is its own and changed in place, on its way through the operations."""

    def __init__(self, document: Object) -> None:
        self._document = document
        self._copied = 0

    def after(self, operations: Sequence[Mapping[str, Any] | None]) -> Object:
        for each in operations:
            operation = each or {}
            match operation.get("op"):
                case "add":
                    self._add(_text(operation, "path"), _value(operation))
                case "remove":
                    self._remove(_text(operation, "path"))
                case "replace":
                    self._replace(_text(operation, "path"), _value(operation))
                case "move":
                    self._move(_text(operation, "from"), operation)
                case "copy":
                    self._copy(_text(operation, "from"), operation)
                case "test":
                    self._test(_text(operation, "path"), _value(operation))
                case unknown:
                    raise Unfit(f"Unexpected kind: {unknown or 'unknown'}")
        return self._document

    def _add(self, path: str, value: Any, doing: str = "add") -> None:
        container, key = self._place(path, _MISSING[doing])
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(_index(key, len(container) + 1), value)

    def _remove(self, path: str, doing: str = "remove") -> None:
        container, key = self._place(path, _MISSING[doing])
        if isinstance(container, list):
            del container[_index(key, len(container))]
        elif key in container:
            del container[key]
        else:
            raise Unfit(f"error in {doing} for path: '{path}': Unable to remove nonexistent key: {key}: missing value")

    def _replace(self, path: str, value: Any) -> None:
        if not path:
            if not isinstance(value, dict | list):
                raise Unfit("replace operation value must be object or array")
            # A list is no object, which whoever reads the result will say.
            self._document = cast("Object", value)
            return
        container, key = self._place(path, "replace operation does not apply: doc is missing path: {}")
        if isinstance(container, dict):
            container[key] = value
        else:
            container[_index(key, len(container))] = value

    def _move(self, source: str, operation: Mapping[str, Any]) -> None:
        value = _found(*self._place(source, "move operation does not apply: doc is missing from path: {}"))
        self._remove(source, "move")
        self._add(_text(operation, "path"), value, "move")

    def _copy(self, source: str, operation: Mapping[str, Any]) -> None:
        value = _found(*self._place(source, "copy operation does not apply: doc is missing from path: {}"))
        if value is not None:
            self._copied += len(msgspec.json.encode(value))
            if self._copied > MOST_COPIED_BYTES:
                raise Unfit(
                    "Unable to complete the copy, the accumulated size increase of copy is "
                    f"{self._copied}, exceeding the limit {MOST_COPIED_BYTES}"
                )
        self._add(_text(operation, "path"), msgspec.to_builtins(value), "copy")

    def _test(self, path: str, value: Any) -> None:
        found = self._document
        if path:
            found = _found(*self._place(path, "test operation does not apply: is missing path: {}"))
        if not is_same(found, value):
            raise Unfit(f"testing value {path} failed: test failed")

    def _place(self, path: str, complaint: str) -> tuple[Container, str]:
        """The container that a path leads into, and the last step; what is before the first slash does not count."""
        _, *steps = path.split("/")
        container: Any = self._document if steps else None
        for step in steps[:-1]:
            container = _found(container, _unescaped(step)) if isinstance(container, dict | list) else None
        if not isinstance(container, dict | list):
            raise Unfit(f"{complaint.format(path)}: missing value")
        return container, _unescaped(steps[-1])


_MISSING = {
    "add": 'add operation does not apply: doc is missing path: "{}"',
    "remove": 'remove operation does not apply: doc is missing path: "{}"',
    "move": "move operation does not apply: doc is missing destination path: {}",
    "copy": "copy operation does not apply: doc is missing destination path: {}",
}


def _found(container: Container, key: str) -> Any:
    """What is there; null where a map has no such field."""
    return container.get(key) if isinstance(container, dict) else container[_index(key, len(container))]


def _index(key: str, length: int) -> int:
    if not _INDEX.fullmatch(key):
        raise Unfit(f"value was not a proper array index: '{key}'")
    index = int(key)
    if not -length <= index < length:
        raise Unfit(f"Unable to access invalid index: {index}: invalid index referenced")
    return index + length if index < 0 else index


def _text(operation: Mapping[str, Any], field: str) -> str:
    text = operation.get(field)
    if text is None:
        raise Unfit(f"{operation.get('op')} operation failed to decode {field}: missing value")
    return str(text)


def _value(operation: Mapping[str, Any]) -> Any:
    return msgspec.to_builtins(operation.get("value"))


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~") if "~" in step else step
