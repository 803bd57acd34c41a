"""One watch connection: from the bytes of an HTTP answer to typed events.

The server sends one JSON frame a line. Nearly all hold a change and are decoded in one go. Whatever does not decode so
is taken apart first, and its object after that: one that does not fit its type spoils one event and not the watch.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator
from enum import Enum
from typing import Any, Generic, TypeVar

import msgspec

from shoal.api.meta.objects import Document, HasMetadata, PartialObject
from shoal.api.meta.resource import DecodeError, Resource
from shoal.api.meta.scan import members
from shoal.kube.errors import ConnectionFault, Status, error_from_status

T = TypeVar("T", bound=HasMetadata)

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class EventType(Enum):
    """What happened to an object; a bookmark only tells how far the watch has come."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


class WatchEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One event. ``object`` is None for a bookmark, and where it does not decode: then ``undecodable`` says why."""

    type: EventType
    resource_version: str
    object: T | None = None
    undecodable: DecodeError | None = None
    ends_initial_events: bool = False


class _Frame(msgspec.Struct, gc=False):
    type: EventType
    object: msgspec.Raw


_CHANGES = frozenset({EventType.ADDED, EventType.MODIFIED, EventType.DELETED})
_FRAMES = msgspec.json.Decoder(_Frame)
_PARTIAL = msgspec.json.Decoder(PartialObject)


async def event_batches(
    resource: Resource[T],
    chunks: AsyncIterator[bytes],
    *,
    request: str,
    idle_limit: float | None = None,
) -> AsyncIterator[list[WatchEvent[T]]]:
    """The events of a watch, as many at a time as arrived together.

    An ERROR frame is raised as the ApiError it carries, after the events before it. A connection on which nothing
    arrives for ``idle_limit`` seconds is taken for dead: some faults of a network leave no other trace.
    """
    rest = b""
    while True:
        try:
            async with asyncio.timeout(idle_limit):
                chunk = await anext(chunks, None)
        except TimeoutError:
            raise ConnectionFault(f"no event and no bookmark for {idle_limit:.0f} s ({request})") from None
        if chunk is None:
            return
        *lines, rest = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
        batch: list[WatchEvent[T]] = []
        failure: Exception | None = None
        for line in lines:
            if not line:
                continue
            try:
                batch.append(decode_event(resource, line, request=request))
            except msgspec.DecodeError as error:
                failure = ConnectionFault(f"a watch frame is not JSON: {error} ({request})")
            except Exception as error:
                failure = error
            if failure is not None:
                break
        if batch:
            yield batch
        if failure is not None:
            raise failure


def decode_event(resource: Resource[T], line: bytes, *, request: str = "") -> WatchEvent[T]:
    """One event from one line; raises the ApiError that an ERROR frame carries."""
    try:
        change = _typed_frames(resource.type).decode(line)
        if change.type in _CHANGES:
            found = Document.of(change.object) if resource.type is Document else change.object
            return WatchEvent(change.type, found.metadata.resource_version, found)
    except msgspec.ValidationError:
        pass  # no change, or an object that does not decode
    except RecursionError:
        return _too_deep(resource, line)
    return _taken_apart(resource, line, request)


@functools.cache
def _typed_frames(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    """Decodes frames whose objects are of a type."""
    content = dict[str, Any] if kind is Document else kind
    return msgspec.json.Decoder(msgspec.defstruct("_TypedFrame", [("type", EventType), ("object", content)], gc=False))


def _too_deep(resource: Resource[T], line: bytes) -> WatchEvent[T]:
    fields = dict(members(line))
    partial = PartialObject.salvage(fields.get("object", b"{}"))
    error = DecodeError(resource, partial, "it is nested too deep")
    return WatchEvent(EventType(msgspec.json.decode(fields["type"])), error.resource_version, undecodable=error)


def _taken_apart(resource: Resource[T], line: bytes, request: str) -> WatchEvent[T]:
    frame = _FRAMES.decode(line)
    if frame.type is EventType.ERROR:
        raise error_from_status(msgspec.json.decode(frame.object, type=Status), request=request)
    if frame.type is EventType.BOOKMARK:
        mark = _PARTIAL.decode(frame.object)
        return WatchEvent(
            frame.type,
            mark.metadata.resource_version,
            ends_initial_events=mark.metadata.annotations.get(INITIAL_EVENTS_END) == "true",
        )
    try:
        found: Any = resource.decode(frame.object)
    except DecodeError as error:
        return WatchEvent(frame.type, error.resource_version, undecodable=error)
    return WatchEvent(frame.type, found.metadata.resource_version, found)
