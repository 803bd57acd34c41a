"""The stream of changes: each listener goes at its own pace, and all of them share what is encoded.

A listener is somewhere: at a moment. When a newer view is there it is told what lies between the two, however many
views that were, so nothing queues up for one who reads slowly; and one who does not read at all is cut off. Nothing is
compared or encoded but for somebody who listens.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import NamedTuple

from aiohttp import web

from shoal.visualizer import messages
from shoal.visualizer.answers import CROSS_ORIGIN, write_or_cut_off
from shoal.visualizer.changes import Difference, changes
from shoal.visualizer.library import KEPT_FOR, Library
from shoal.visualizer.moments import Moment, Moments
from shoal.visualizer.pages import coalesced
from shoal.visualizer.publisher import Published, Publisher
from shoal.visualizer.refusals import Refusal

_HEADERS = {
    **CROSS_ORIGIN,
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",  # a proxy in front that waits for more would hold the last message back
}


class Pace(NamedTuple):
    """How long things may take, and how many may listen."""

    heartbeat: float = 15.0
    """Seconds without anything new after which a comment says that the stream lives."""
    taken_within: float = 30.0
    """Seconds in which a listener takes a megabyte, or is cut off."""
    kept_for: float = KEPT_FOR
    """Seconds for which the last listener may be gone and come back to what it missed."""
    listeners: int = 256


class Told(NamedTuple):
    """What lies between two moments: messages with their kinds, and where a listener is who has had them."""

    messages: list[tuple[str, bytes]]
    moment: Moment


class Stream:
    """Tells listeners what changes."""

    def __init__(
        self, publisher: Publisher, library: Library, *, pace: Pace = Pace(), moments: Moments | None = None
    ) -> None:
        self._publisher = publisher
        self._library = library
        self._pace = pace
        self._moments = Moments() if moments is None else moments
        self._lock = asyncio.Lock()
        self._last: tuple[tuple[int, int], Told] | None = None
        """What was told last, from which version to which: all listeners but late ones are at the same moment."""
        self._listeners = 0
        self._forgetting: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nobody listens, and nothing is kept for anybody."""
        return self._listeners == 0 and len(self._moments) == 0

    async def serve(self, request: web.Request, kinds: frozenset[str]) -> web.StreamResponse:
        """Tells one listener everything, or what it missed, and then what changes, for as long as it listens."""
        if self._listeners >= self._pace.listeners:
            sentence = f"{self._listeners} are listening already: try again later"
            raise Refusal(503, sentence, {"Retry-After": "10"})
        response = web.StreamResponse(headers=_HEADERS)
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        with self._listening():
            try:
                async with aclosing(self._chunks(request.headers.get("Last-Event-ID", ""), kinds)) as chunks:
                    async for chunk in chunks:
                        await write_or_cut_off(request, response, chunk, within=self._pace.taken_within)
            except ConnectionResetError:
                return response  # gone, or cut off
        return response

    @contextmanager
    def _listening(self) -> Iterator[None]:
        self._listeners += 1
        if self._forgetting is not None:
            self._forgetting.cancel()
            self._forgetting = None
        try:
            yield
        finally:
            self._listeners -= 1
            if self._listeners == 0:
                self._forgetting = asyncio.get_running_loop().call_later(self._pace.kept_for, self._forget)

    def _forget(self) -> None:
        self._moments.clear()
        self._last = None
        self._forgetting = None

    async def _chunks(self, last_id: str, kinds: frozenset[str]) -> AsyncGenerator[bytes, None]:
        """What one listener is sent, for ever."""
        yield messages.RECONNECT
        version = messages.version_of(last_id, self._publisher.epoch)
        moment = None if version is None else self._moments.find(version)
        seen = 0 if moment is None else moment.version
        while True:
            try:
                async with asyncio.timeout(self._pace.heartbeat):
                    published = await self._publisher.after(seen)
            except TimeoutError:
                yield messages.HEARTBEAT
                continue
            seen = published.version
            if moment is None:
                moment, everything = await self._everything(published, kinds)
                for chunk in coalesced(everything):
                    yield chunk
                continue
            told = await self._since(moment, published)
            moment = told.moment
            if told.messages:
                chosen = [message for kind, message in told.messages if kind in kinds]
                for chunk in coalesced([*chosen, messages.of_cycle(published, self._publisher.epoch)]):
                    yield chunk

    async def _everything(self, published: Published, kinds: frozenset[str]) -> tuple[Moment, Iterator[bytes]]:
        """A whole view, in the pages that the routes send too."""
        library, view = self._library, published.view
        summary = (await library.summary(view)).whole
        pages = {
            "nodes": await library.node_pages(view) if "nodes" in kinds else [],
            "queues": await library.queue_pages(view) if "queues" in kinds else [],
            "jobs": await library.job_pages(view) if "jobs" in kinds else [],
        }
        moment = Moment(published.version, view, summary)
        newest = self._moments.newest
        self._moments.keep(moment, 0 if newest is None else changes(newest.view, view).size)

        def said() -> Iterator[bytes]:
            yield messages.RESET
            if "summary" in kinds:
                yield messages.of_summary(summary)
            for kind, of_kind in pages.items():
                for page in of_kind:
                    yield messages.of_page(kind, page)
            yield messages.of_cycle(published, self._publisher.epoch)

        return moment, said()

    async def _since(self, moment: Moment, published: Published) -> Told:
        """What lies between a moment and a view; made once for all who are at that moment."""
        key = (moment.version, published.version)
        async with self._lock:
            if self._last is None or self._last[0] != key:
                self._last = (key, await self._compared(moment, published))
            return self._last[1]

    async def _compared(self, moment: Moment, published: Published) -> Told:
        library, view = self._library, published.view
        changed = changes(moment.view, view)
        summary = (await library.summary(view)).whole
        said: list[tuple[str, bytes]] = []

        def say(kind: str, difference: Difference, encoded: dict[str, bytes]) -> None:
            # What can no longer be shown is gone for a listener, too.
            gone = [*difference.deleted, *(key for key in difference.upserted if key not in encoded)]
            said.extend((kind, message) for message in messages.of_changes(kind, list(encoded.values()), gone))

        if changed.nodes.size:
            say("nodes", changed.nodes, await library.encoded_nodes(view, changed.nodes.upserted))
        if changed.queues.size:
            say("queues", changed.queues, await library.encoded_queues(view, changed.queues.upserted))
        for namespace, difference in changed.jobs.items():
            upserted = difference.upserted
            say("jobs", difference, await library.encoded_jobs(view, namespace, upserted) if upserted else {})
        if summary != moment.summary:
            said.append(("summary", messages.of_summary(summary)))
        if not said:
            return Told([], moment)
        now = Moment(published.version, view, summary)
        self._moments.keep(now, changed.size)
        return Told(said, now)
