"""Writing a snapshot: objects as they are, without what is nobody else's business.

Pods are written without what their containers are told (environment, arguments, commands), ConfigMaps without what is
in them: the scheduler decides by none of it, and people keep secrets there. Which ConfigMaps a pod needs is written.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from shoal.api.meta import LAST_APPLIED
from shoal.api.meta.objects import Document
from shoal.api.meta.time import format_time
from shoal.scheduler.snapshots.snapshot import FILE_NAME, SECTIONS, Json

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_KEPT_OF_CONTAINERS: Final = ("name", "image", "ports", "resources", "restartPolicy")
_DROPPED: Final = {"ConfigMap": ("data", "binaryData")}
_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The first moment that an archive can write down."""


def snapshot_document(
    objects: Mapping[str, Iterable[Any]],
    *,
    config: Json,
    parameters: Json,
    discovery: Json | None = None,
    taken_at: float,
) -> Json:
    """The whole as one document. ``objects``: typed or as documents, by section; sections without any are empty."""
    raw = {section: [document_of(one, *kind) for one in objects.get(section, ())] for section, kind in SECTIONS.items()}
    made: Json = {
        "takenAt": format_time(datetime.fromtimestamp(taken_at, UTC)),
        "config": config,
        "schedulerParams": parameters,
        "rawObjects": raw,
    }
    if discovery is not None:
        made["discovery"] = discovery
    return made


def packed(document: Json) -> bytes:
    """A snapshot as the archive that is handed out. The same snapshot gives the same bytes."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        entry = zipfile.ZipInfo(FILE_NAME, date_time=_EARLIEST)
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, msgspec.json.encode(document))
    return written.getvalue()


def document_of(one: Any, api_version: str, kind: str) -> Json:
    """One object, less what is nobody else's business."""
    content: Json = dict(one.content) if isinstance(one, Document) else msgspec.to_builtins(one)
    content["apiVersion"], content["kind"] = content.get("apiVersion") or api_version, content.get("kind") or kind
    metadata = {key: value for key, value in content.get("metadata", {}).items() if key != "managedFields"}
    annotations = {key: value for key, value in metadata.get("annotations", {}).items() if key != LAST_APPLIED}
    if "annotations" in metadata:
        metadata["annotations"] = annotations
    content["metadata"] = metadata
    for name in _DROPPED.get(kind, ()):
        content.pop(name, None)
    if kind == "Pod":
        content["spec"] = _without_secrets(content.get("spec") or {})
    return content


def _without_secrets(spec: Json) -> Json:
    made = dict(spec)
    for name in _CONTAINERS:
        if name in made:
            made[name] = [_without_words(one) for one in made[name]]
    return made


def _without_words(container: Json) -> Json:
    made = {key: container[key] for key in _KEPT_OF_CONTAINERS if key in container}
    variables = [
        {"name": one.get("name", ""), "valueFrom": {"configMapKeyRef": one["valueFrom"]["configMapKeyRef"]}}
        for one in container.get("env") or ()
        if (one.get("valueFrom") or {}).get("configMapKeyRef")
    ]
    sources = [
        {"configMapRef": one["configMapRef"]} for one in container.get("envFrom") or () if one.get("configMapRef")
    ]
    mounts = [{"name": one.get("name", "")} for one in container.get("volumeMounts") or ()]
    told = {"env": variables, "envFrom": sources, "volumeMounts": mounts}
    return made | {key: value for key, value in told.items() if value}
