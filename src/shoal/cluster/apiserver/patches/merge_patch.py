"""JSON merge patch (RFC 7386): maps are merged, null removes, anything else replaces."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.patches.go_text import json_kind
from shoal.cluster.apiserver.refusals import bad_request


def merge_patch(document: Object, patch: Any) -> Object:
    """The document with the patch merged into it; raises Refused where the patch is no map."""
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        told = f"cannot unmarshal {json_kind(patch)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding patch: json: {told}")
    try:
        merged: Object = msgspec.to_builtins(document)
        _merge(merged, msgspec.to_builtins(patch))
        return merged
    except RecursionError:
        raise bad_request("exceeded max depth") from None


def _merge(document: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
            continue
        current = document.get(key)
        if type(current) is dict and type(value) is dict:
            _merge(current, value)
        else:
            if type(current) is not dict:
                drop_nulls(value)
            document[key] = value


def drop_nulls(value: Any) -> None:
    """Removes fields that are null from what is new, wherever they are; items of lists stay."""
    if type(value) is dict:
        for key in [key for key, inner in value.items() if inner is None]:
            del value[key]
        for inner in value.values():
            drop_nulls(inner)
    elif type(value) is list:
        for inner in value:
            drop_nulls(inner)
