"""Objects that ``kubectl apply`` has managed from the client's side, met by ``kubectl apply --server-side``.

Their last-applied annotation says what kubectl owned. A server-side apply by kubectl takes those fields over from
whoever updated them last, and keeps the annotation true, so that one may go back.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.meta import LAST_APPLIED
from shoal.cluster.apiserver.apply.check import fits
from shoal.cluster.apiserver.apply.compare import compared
from shoal.cluster.apiserver.apply.elements import encoded
from shoal.cluster.apiserver.apply.fieldset import Tree, difference
from shoal.cluster.apiserver.apply.prune import owned
from shoal.cluster.apiserver.apply.shape import Shape
from shoal.cluster.apiserver.kinds.kind import Object

MOST_BYTES = 256 * 1024
"""The most that all annotations of an object may hold."""


def takeable(shape: Shape, live: Object) -> Tree:
    """The fields that kubectl applied from the client's side and that are as it left them."""
    text = _annotations(live).get(LAST_APPLIED)
    if not text:
        return {}
    try:
        applied = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    if not isinstance(applied, dict) or applied.get("apiVersion") != live.get("apiVersion"):
        return {}
    # Lists with duplicates, which a live object may have, are not taken over either.
    if not (fits(shape, applied) and fits(shape, live)):
        return {}
    fields = owned(shape, applied)
    for changed in compared(shape, applied, live):
        fields = difference(fields, changed or {})
    return fields


def with_annotation(new: Object, applied: Object) -> None:
    """Writes what was applied into the annotation of an object that has one."""
    annotations = _annotations(new)
    if not annotations.get(LAST_APPLIED):
        return
    kept = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    text = _last_applied(applied)
    if (
        sum(len(key.encode()) + len(value.encode()) for key, value in {**kept, LAST_APPLIED: text}.items())
        <= MOST_BYTES
    ):
        kept[LAST_APPLIED] = text
    new["metadata"]["annotations"] = kept


def _annotations(thing: Object) -> dict[str, str]:
    found: Any = (thing.get("metadata") or {}).get("annotations")
    return found if isinstance(found, dict) else {}


def _last_applied(applied: Object) -> str:
    metadata = dict(applied["metadata"])
    if "annotations" in metadata:
        annotations = {key: value for key, value in (metadata["annotations"] or {}).items() if key != LAST_APPLIED}
        if metadata["annotations"] is None:
            del metadata["annotations"]
        else:
            metadata["annotations"] = annotations
    return encoded({**applied, "metadata": metadata}) + "\n"
