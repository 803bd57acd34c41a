"""Keeps a picture of one kind equal to the server's: read everything once, then follow the changes.

The picture begins with a streaming list (the server sends all there is as events and then a bookmark that ends it), or
with a paged list where the server knows none. It goes on with a watch from exactly that version. When the connection
breaks the watch resumes from the last version seen, so that nothing is lost; when the server has forgotten that version
(410) everything is read again, and the sink is told the whole picture, so that it can tell what was deleted meanwhile.

Faults that this loop has to live with, each seen in the field: a server that restarts or is overloaded, a watch that
ends every few minutes by design, a connection that is dead but not closed, a kind that is not served yet or no more,
a page token that expires while paging, and a frame that is not JSON.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import structlog

from shoal.api.meta.objects import HasMetadata
from shoal.api.meta.resource import DecodeError, Resource
from shoal.kube.backoff import Backoff
from shoal.kube.client import Client, Listing
from shoal.kube.errors import ApiError, BadRequest, ConnectionFault, Expired, Forbidden, Invalid, NotFound
from shoal.kube.queries import watch_query
from shoal.kube.watch import EventType, WatchEvent

T = TypeVar("T", bound=HasMetadata)

log = structlog.get_logger("shoal.kube.reflector")


class Sink(Protocol[T]):
    """Where the picture is kept."""

    def replace(self, items: Sequence[T], undecodable: Sequence[DecodeError], version: str) -> None:
        """Everything there is, at one version: what is not named here is gone."""
        ...

    def update(self, events: Sequence[WatchEvent[T]]) -> None:
        """Changes, in the order in which they happened."""
        ...

    def unserved(self) -> None:
        """The server does not serve this kind (any more)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The times of a reflector; tests make them short."""

    backoff: Backoff = Backoff(initial=0.2, cap=30.0, jitter=0.5)
    unserved: Backoff = Backoff(initial=0.5, cap=15.0, jitter=0.5)
    """A kind that is installed now is soon found; one that never comes costs little, however many there are."""
    watch_seconds: tuple[int, int] = (300, 600)
    """A watch lives for a random time between these, so that load spreads over servers."""
    idle_limit: float = 150.0
    """Bookmarks come about every minute; silence much longer than that means a dead connection."""
    list_idle_limit: float = 15.0
    """A streaming list sends what is there at once; a server that has lost its store may never end one."""
    steady: float = 5.0
    """A watch that lived this long counts as a success and resets the back-off."""


class Reflector(Generic[T]):
    """Lists and watches one selection of one kind into a sink, for as long as it runs."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        sink: Sink[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        pace: Pace = Pace(),
    ) -> None:
        self._client = client
        self._resource = resource
        self._sink = sink
        self._namespace = namespace
        self._labels = label_selector
        self._fields = field_selector
        self._pace = pace
        self._version = ""
        self._streaming = True
        self._missing = 0
        self._failures = 0
        self._expirations = 0
        self._said_unserved = False
        self.problem = ""
        """Why there is no picture yet, in words; empty while all is well."""

    async def run(self) -> None:
        """Follows the server until cancelled; no fault of the server ends it."""
        while True:
            try:
                if not self._version:
                    await self._read_everything()
                await self._follow()
            except Expired:
                # The server is well: how often it could not be reached before does not count.
                self._version = ""
                self._expirations += 1
                self._failures = self._expirations - 1
                await self._pause(self._pace.backoff, "the version is too old: reading everything again")
            except NotFound:
                await self._wait_until_served()
            except Forbidden as error:
                await self._pause(self._pace.backoff, str(error), warn=True)
            except (ApiError, ConnectionFault) as error:
                await self._pause(self._pace.backoff, str(error))

    async def _read_everything(self) -> None:
        self._client.metrics.lists.labels(str(self._resource)).inc()
        streaming, self._streaming = self._streaming, True
        listing = await self._stream_list() if streaming else None
        if listing is None:
            listing = await self._paged_list()
        self._version = listing.resource_version
        self._sink.replace(listing.items, listing.undecodable, listing.resource_version)
        if self._said_unserved:
            log.info("the kind is served now", resource=str(self._resource))
        self._said_unserved = False
        self._missing = 0
        self.problem = ""

    async def _stream_list(self) -> Listing[T] | None:
        """A consistent read as a stream of events; None where the server cannot do that.

        One that knows no such streams may also begin an ordinary watch, and never say that the beginning has ended:
        where that breaks or falls silent the next try reads in pages.
        """
        query = watch_query(
            label_selector=self._labels,
            field_selector=self._fields,
            initial_events=True,
            timeout_seconds=self._watch_seconds(),
        )
        items: dict[tuple[str, str], T] = {}
        undecodable: dict[tuple[str, str], DecodeError] = {}
        limit = min(self._pace.idle_limit, self._pace.list_idle_limit)
        batches = self._client.watch_batches(self._resource, self._namespace, query, idle_limit=limit)
        try:
            async for batch in batches:
                for event in batch:
                    if event.ends_initial_events:
                        return Listing(
                            items=list(items.values()),
                            resource_version=event.resource_version,
                            undecodable=list(undecodable.values()),
                        )
                    error = event.undecodable
                    if event.object is not None:
                        key = (event.object.metadata.namespace, event.object.metadata.name)
                    elif error is not None:
                        key = (error.namespace, error.name)
                    else:
                        continue
                    items.pop(key, None)
                    undecodable.pop(key, None)
                    if event.type is EventType.DELETED:
                        continue
                    if event.object is not None:
                        items[key] = event.object
                    elif error is not None:
                        undecodable[key] = error
        except (BadRequest, Invalid) as refused:
            log.debug("no streaming lists here: reading in pages", resource=str(self._resource), error=str(refused))
        except ConnectionFault:
            self._streaming = False
            raise
        finally:
            await batches.aclose()  # type: ignore[attr-defined]
        return None

    async def _paged_list(self) -> Listing[T]:
        try:
            return await self._list(page=500)
        except Expired:
            # The token of the next page expired while we read the last: a single large answer cannot.
            return await self._list(page=0)

    async def _list(self, page: int) -> Listing[T]:
        return await self._client.list(
            self._resource,
            self._namespace,
            label_selector=self._labels,
            field_selector=self._fields,
            page=page,
        )

    async def _follow(self) -> None:
        query = watch_query(
            resource_version=self._version,
            label_selector=self._labels,
            field_selector=self._fields,
            timeout_seconds=self._watch_seconds(),
        )
        self._client.metrics.watches.labels(str(self._resource)).inc()
        received = self._client.metrics.watch_events.labels(str(self._resource))
        began = time.monotonic()
        batches = self._client.watch_batches(self._resource, self._namespace, query, idle_limit=self._pace.idle_limit)
        try:
            async for batch in batches:
                self._version = batch[-1].resource_version or self._version
                received.inc(len(batch))
                self._sink.update(batch)
                self._missing = 0
                self.problem = ""
        finally:
            await batches.aclose()  # type: ignore[attr-defined]
            if time.monotonic() - began >= self._pace.steady:
                self._failures = self._expirations = 0
        if time.monotonic() - began < 1.0:
            await self._pause(self._pace.backoff, "the watch ended at once")

    async def _wait_until_served(self) -> None:
        self._missing += 1
        if self._version and self._missing < 3:
            # A gateway that is starting may say 404 for all it does not know yet: what we hold is worth asking again.
            await self._pause(self._pace.unserved, f"{self._resource} was not found")
            return
        self._version = ""
        self._sink.unserved()
        if not self._said_unserved:
            self._said_unserved = True
            log.info("the kind is not served: its watch begins when it appears", resource=str(self._resource))
        await self._pause(self._pace.unserved, f"{self._resource} is not served", quiet=True)

    async def _pause(self, backoff: Backoff, problem: str, *, warn: bool = False, quiet: bool = False) -> None:
        self._failures += 1
        self.problem = problem
        delay = backoff.delay(self._failures)
        say = log.warning if (warn or self._failures == 3) and not quiet else log.debug
        say("watch interrupted", resource=str(self._resource), problem=problem, retry_in=round(delay, 2))
        await asyncio.sleep(delay)

    def _watch_seconds(self) -> int:
        return random.randint(*self._pace.watch_seconds)  # noqa: S311 - spreads load, guards nothing
