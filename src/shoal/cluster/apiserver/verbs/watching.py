"""Watch: everything that happens to the objects that are selected, from one version on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Hashable
from dataclasses import dataclass

import msgspec

from shoal.cluster.apiserver.calls import status_value
from shoal.cluster.apiserver.kinds.decode import decode
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.refusals import Refused, expired
from shoal.cluster.apiserver.state import State
from shoal.cluster.apiserver.storage import Change, ChangeType, Compacted, Overrun, Record, TooNew
from shoal.cluster.apiserver.verbs.asked import Asked
from shoal.cluster.apiserver.verbs.list_options import ListOptions
from shoal.cluster.apiserver.verbs.reading import not_older, too_large
from shoal.cluster.apiserver.verbs.selection import selection
from shoal.kube.errors import Status

_BOOKMARK_EVERY = 60.0
_BOOKMARK_BEFORE_END = 2.0
_SHORTEST = 1800
_BATCH = 500
_END_OF_INITIAL = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoding:
    """How a watch's objects are written; ``key`` names the encoding, so that watchers share its bytes."""

    key: Hashable
    encode: Callable[[Record], bytes]
    first: Callable[[Record], bytes] | None = None
    """How the very first object is written, where that differs: a table says its columns once."""


async def watch(
    state: State, asked: Asked, options: ListOptions, encoding: Encoding, *, name: str = ""
) -> AsyncIterator[bytes]:
    """The events of a watch, as JSON lines, in pieces as they come."""
    kind = asked.kind
    selected = selection(kind, options.labels, options.fields, name=name)
    revision = options.revision
    wants_state = options.send_initial if options.send_initial is not None else revision in (None, 0)
    loop = asyncio.get_running_loop()
    seconds = options.timeout if options.timeout is not None and options.timeout > 0 else _some_minutes()
    end = loop.time() + seconds
    if revision and (wants_state or revision > state.store.revision):
        try:
            await not_older(state, revision)
        except Refused as refusal:
            if wants_state:
                yield error_line(refusal.status)
                return
    since = state.store.revision if wants_state or revision in (None, 0) else revision
    assert since is not None
    try:
        watcher = state.store.watch(
            kind.storage, asked.namespace or None, since=since, selects=selected.selects, name=selected.name
        )
    except Compacted as error:
        yield error_line(expired(f"too old resource version: {since} ({error.oldest})").status)
        return
    except TooNew:
        yield error_line(too_large(since, state.store.revision).status)
        return
    writer = _Lines(encoding)
    try:
        if wants_state:
            page = state.store.page(kind.storage, asked.namespace or None, selects=selected.selects)
            for start in range(0, len(page.records), _BATCH):
                yield b"".join(map(writer.added, page.records[start : start + _BATCH]))
            if options.send_initial and options.bookmarks:
                yield writer.bookmark(bookmark(kind, since, _END_OF_INITIAL))
        next_bookmark = loop.time() + min(_BOOKMARK_EVERY, max(seconds - _BOOKMARK_BEFORE_END, 0.1))
        while (left := end - loop.time()) > 0:
            wait = min(left, next_bookmark - loop.time()) if options.bookmarks else left
            try:
                async with asyncio.timeout(max(wait, 0)):
                    changes = await watcher.changes()
            except TimeoutError:
                if options.bookmarks and loop.time() >= next_bookmark:
                    next_bookmark = loop.time() + _BOOKMARK_EVERY
                    yield writer.bookmark(bookmark(kind, watcher.revision, None))
                continue
            if not changes:
                return
            yield b"".join([writer.line(type_, change) for type_, change in changes])
    except Overrun:
        return
    finally:
        watcher.close()


class _Lines:
    """Writes events, each encoded once for all who watch in the same way."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._first = encoding.first

    def added(self, record: Record) -> bytes:
        return _line(ChangeType.ADDED.value, self._take_first()(record))

    def bookmark(self, record: Record) -> bytes:
        return _line("BOOKMARK", self._encoding.encode(record))

    def line(self, type_: ChangeType, change: Change) -> bytes:
        if self._first is not None:
            return _line(type_.value, self._take_first()(change.shown(type_)))
        key = (self._encoding.key, type_)
        line = change.frames.get(key)
        if line is None:
            line = change.frames[key] = _line(type_.value, self._encoding.encode(change.shown(type_)))
        return line

    def _take_first(self) -> Callable[[Record], bytes]:
        first, self._first = self._first, None
        return first or self._encoding.encode


def bookmark(kind: Kind, revision: int, annotations: dict[str, str] | None) -> Record:
    """An object that says nothing but how far a watch has come, so that it can be taken up again from there."""
    metadata: dict[str, object] = {"resourceVersion": str(revision)}
    if annotations:
        metadata["annotations"] = annotations
    value: Object = {"metadata": metadata} if kind.is_custom else decode(kind.schema, {"metadata": metadata}, [])
    content = {key: item for key, item in value.items() if key not in ("apiVersion", "kind")}
    return Record("", "", revision, msgspec.json.encode(content), {}, {}, "")


def error_line(status: Status) -> bytes:
    """The event that ends a watch which cannot go on."""
    return b'{"type":"ERROR","object":%s}\n' % msgspec.json.encode(status_value(status))


def _line(type_: str, data: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), data)


def _some_minutes() -> float:
    """Long, and not the same for all, so that they do not come back at once."""
    return _SHORTEST * (1 + random.random())  # noqa: S311
