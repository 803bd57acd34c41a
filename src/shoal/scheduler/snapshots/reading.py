"""Reading a snapshot, whoever made it: what is missing is taken as nothing."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from shoal.api.meta.time import InvalidTime, parse_time
from shoal.scheduler.snapshots.snapshot import FILE_NAME, SECTIONS, InvalidSnapshot, Json, Snapshot

_TIMES: Final = ("creationTimestamp", "startTime", "lastHeartbeatTime", "lastTransitionTime", "lastProbeTime")
_LARGEST: Final = 4 * 2**30
"""Bytes that a snapshot may have once it is unpacked: no cluster has that many objects."""


def read_snapshot(data: bytes) -> Snapshot:
    """The snapshot of an archive, or of the document that is in one; raises InvalidSnapshot."""
    text = _unpacked(data) if zipfile.is_zipfile(io.BytesIO(data)) else data
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = "is neither an archive with snapshot.json in it nor such a document: get one from /get-snapshot"
        raise InvalidSnapshot(message) from error
    if not isinstance(document, dict) or not isinstance(document.get("rawObjects"), dict):
        raise InvalidSnapshot("has no rawObjects, so it is no snapshot: get one from a scheduler's /get-snapshot")
    raw = document["rawObjects"]
    objects = {
        section: [one for one in raw[section] or [] if isinstance(one, dict)] for section in SECTIONS if section in raw
    }
    return Snapshot(
        taken_at=_moment(document.get("takenAt")) or max(_moments(objects), default=0.0),
        objects=objects,
        config=_mapping(document.get("config")),
        parameters=_mapping(document.get("schedulerParams")),
        discovery=_mapping(document.get("discovery")),
    )


def _unpacked(data: bytes) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entry = archive.getinfo(FILE_NAME)
            if entry.file_size > _LARGEST:
                raise InvalidSnapshot(f"has {FILE_NAME} of {entry.file_size} bytes, which is too large")
            return archive.read(entry)
    except KeyError as error:
        raise InvalidSnapshot(f"has no {FILE_NAME} in it: get one from a scheduler's /get-snapshot") from error
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise InvalidSnapshot(f"cannot be unpacked: {error}") from error


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _moment(text: Any) -> float:
    try:
        return parse_time(text).timestamp() if isinstance(text, str) else 0.0
    except InvalidTime:
        return 0.0


def _moments(objects: dict[str, list[Json]]) -> Iterator[float]:
    """Every moment that an object speaks of."""
    for section in objects.values():
        for one in section:
            status = _mapping(one.get("status"))
            places = [_mapping(one.get("metadata")), status, *(status.get("conditions") or [])]
            for place in places:
                if isinstance(place, dict):
                    yield from (moment for name in _TIMES if (moment := _moment(place.get(name))))
