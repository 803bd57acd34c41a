"""Tells users what happened, as Events on the objects concerned, without ever holding up or flooding anyone.

``record`` only puts the event into a bounded line; one task writes them. Repeats are counted on one Event instead of
written again; many events of one kind that differ only in their words are combined into one; and an object that still
asks for too many is limited. An event is worth less than the work it tells of: what cannot be written is dropped and
counted.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import structlog

from shoal.api.meta.objects import HasMetadata, PartialObject
from shoal.api.meta.resource import DecodeError, Resource
from shoal.api.meta.time import format_time
from shoal.kube.backoff import TokenBucket
from shoal.kube.calm import Calm
from shoal.kube.client import Client
from shoal.kube.errors import ApiError, ConnectionFault, NotFound, NotLeading

log = structlog.get_logger("shoal.kube.events")

EVENTS = Resource(type=PartialObject, group="", version="v1", kind="Event", plural="events")

EventType = Literal["Normal", "Warning"]


@dataclass(frozen=True, kw_only=True)
class About:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    @classmethod
    def of(cls, resource: Resource[Any], found: HasMetadata) -> About:
        """Refers to an object."""
        return cls(
            api_version=resource.api_version,
            kind=resource.kind,
            namespace=found.metadata.namespace,
            name=found.metadata.name,
            uid=found.metadata.uid,
            resource_version=found.metadata.resource_version,
        )

    @classmethod
    def undecodable(cls, error: DecodeError) -> About:
        """Refers to an object that could not be read."""
        return cls(
            api_version=error.resource.api_version,
            kind=error.resource.kind,
            namespace=error.namespace,
            name=error.name,
            uid=error.uid,
            resource_version=error.resource_version,
        )


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When events are combined and when they are dropped; the defaults are client-go's."""

    similar: int = 10
    """From so many events on that differ only in their message, within ``similar_within``, they become one."""
    similar_within: float = 600.0
    burst: int = 25
    per_second: float = 1 / 300
    remembered: int = 4096
    waiting: int = 10_000
    """Ten times client-go's, so that a burst of pods is told of after it, instead of dropped."""
    yields_for: float = 0.1
    """Seconds for which an event leaves others to their work, unless the line is half full."""


@dataclass(frozen=True)
class _Said:
    about: About
    type: EventType
    reason: str
    message: str
    at: datetime


@dataclass
class _Written:
    name: str
    count: int
    first: datetime


class Recorder:
    """Writes the events of one component."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        limits: Limits = Limits(),
        calm: Calm | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._component = component
        self._limits = limits
        self._calm = calm
        self._clock = clock
        self._now = now
        self._waiting: asyncio.Queue[_Said] = asyncio.Queue(limits.waiting)
        self._written: OrderedDict[tuple[Any, ...], _Written] = OrderedDict()
        self._similar: OrderedDict[tuple[Any, ...], tuple[float, set[str]]] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, str], TokenBucket] = OrderedDict()
        self._dropped = client.metrics.events_dropped
        self._latest = 0
        self._salt = secrets.randbelow(1_000)
        """Tells apart what two components say about an object in the same microsecond."""

    def normal(self, about: About, reason: str, message: str) -> None:
        """Tells of something as it should be."""
        self.record(about, "Normal", reason, message)

    def warning(self, about: About, reason: str, message: str) -> None:
        """Tells of something that a person may have to look at."""
        self.record(about, "Warning", reason, message)

    def record(self, about: About, type: EventType, reason: str, message: str) -> None:  # noqa: A002
        """Puts an event in line; never waits and never fails."""
        try:
            words = message[:1024].encode(errors="replace").decode()
            self._waiting.put_nowait(_Said(about, type, reason, words, self._now()))
        except asyncio.QueueFull:
            self._dropped.labels("queue full").inc()

    async def run(self) -> None:
        """Writes what is in line until cancelled."""
        while True:
            said = await self._waiting.get()
            try:
                if self._calm is not None and self._waiting.qsize() < self._limits.waiting // 2:
                    await self._calm.wait(self._limits.yields_for)
                await self._write(said)
            except Exception:
                # Whatever is wrong with one event, the next ones must be written.
                self._dropped.labels("fault").inc()
                log.exception("event not written", reason=said.reason, object=said.about.name)
            finally:
                self._waiting.task_done()

    async def flush(self, within: float) -> None:
        """Waits a little for what is still in line; the rest is dropped."""
        try:
            async with asyncio.timeout(within):
                await self._waiting.join()
        except TimeoutError:
            self._dropped.labels("shut down").inc(self._waiting.qsize())

    async def _write(self, said: _Said) -> None:
        if not self._bucket(said.about).try_take():
            self._dropped.labels("rate limit").inc()
            return
        message, identity = self._combined(said)
        known = self._written.get(identity)
        try:
            if known is not None and await self._count_again(said, message, known):
                self._written.move_to_end(identity)
                return
            self._written[identity] = await self._create(said, message)
            _keep_newest(self._written, self._limits.remembered)
        except (ApiError, ConnectionFault, NotLeading) as error:
            self._dropped.labels("refused").inc()
            log.warning("event not written", reason=said.reason, object=said.about.name, error=str(error))

    def _combined(self, said: _Said) -> tuple[str, tuple[Any, ...]]:
        """The words to write, and what makes the event the same as an earlier one."""
        group = (said.about.uid, said.about.name, said.about.namespace, said.about.kind, said.type, said.reason)
        now = self._clock()
        since, messages = self._similar.get(group, (now, set()))
        if now - since > self._limits.similar_within:
            since, messages = now, set()
        messages.add(said.message)
        self._similar[group] = (now, messages)
        self._similar.move_to_end(group)
        _keep_newest(self._similar, self._limits.remembered)
        if len(messages) < self._limits.similar:
            return said.message, (*group, said.message)
        messages.discard(said.message)
        return f"(combined from similar events): {said.message}", group

    async def _count_again(self, said: _Said, message: str, known: _Written) -> bool:
        patch = {"count": known.count + 1, "lastTimestamp": format_time(said.at), "message": message}
        try:
            await self._client.merge_patch(EVENTS, known.name, patch, _namespace(said.about))
        except NotFound:
            return False  # events are kept for an hour: this one is gone, so the next begins anew
        known.count += 1
        return True

    async def _create(self, said: _Said, message: str) -> _Written:
        about = said.about
        name = f"{about.name[:230].rstrip('-.')}.{self._stamp(said.at):016x}"
        namespace = _namespace(about)
        reference = {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
            "resourceVersion": about.resource_version,
        }
        body = {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {key: value for key, value in reference.items() if value},
            "type": said.type,
            "reason": said.reason,
            "message": message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": format_time(said.at),
            "lastTimestamp": format_time(said.at),
            "count": 1,
        }
        await self._client.create(EVENTS, body, namespace)
        return _Written(name, 1, said.at)

    def _stamp(self, at: datetime) -> int:
        """A number that grows from event to event: times are told in seconds, and lists are sorted by name."""
        nanoseconds = int(at.timestamp() * 1_000_000) * 1_000 + self._salt
        self._latest = max(nanoseconds, self._latest + 1)
        return self._latest

    def _bucket(self, about: About) -> TokenBucket:
        key = (about.uid or f"{about.kind}/{about.namespace}", about.name)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(rate=self._limits.per_second, burst=self._limits.burst, clock=self._clock)
            self._buckets[key] = bucket
            _keep_newest(self._buckets, self._limits.remembered)
        self._buckets.move_to_end(key)
        return bucket


def _namespace(about: About) -> str:
    """Events live in a namespace; those of cluster-scoped objects in ``default``."""
    return about.namespace or "default"


def _keep_newest(entries: OrderedDict[Any, Any], count: int) -> None:
    while len(entries) > count:
        entries.popitem(last=False)
