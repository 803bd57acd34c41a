"""Counts running pods at little cost to the server that is watched, and looks afterwards when they came.

Running pods are counted by a watch that selects them and is sent metadata alone: one small event for each. When the
last was created and bound is read from the pods themselves once all of them run; that is exact to the second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import msgspec

from shoal.kube import HttpTransport, load_connection
from shoal.kube.transport import Request

_METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_RUNNING = "status.phase=Running"
_WATCH_SECONDS = 3600
_STALLED_AFTER = 180.0
_PAGE = "2000"


class Stalled(Exception):
    """Nothing happens any more, and not all is done."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    creation_timestamp: datetime | None = None


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    last_transition_time: datetime | None = None


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct):
    metadata: _Metadata
    status: _Status


class _Pods(msgspec.Struct):
    metadata: _Metadata
    items: list[_Pod] = []


class _Changed(msgspec.Struct):
    metadata: _Metadata


class _Event(msgspec.Struct):
    type: str
    object: _Changed


_EVENTS = msgspec.json.Decoder(_Event)


class Observer:
    """How many pods run, while its block lasts."""

    def __init__(self, kubeconfig: Path) -> None:
        self._transport = HttpTransport(load_connection(kubeconfig))
        self._watching: asyncio.Task[None] | None = None
        self.running = 0

    async def __aenter__(self) -> Observer:
        listed = await self._page({"limit": "1", "fieldSelector": _RUNNING})
        self._watching = asyncio.create_task(self._watch(listed.metadata.resource_version))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._watching is not None
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        await self._transport.close()

    async def wait_for(self, running: int, say: Callable[[str], None]) -> None:
        """Returns when so many pods run."""
        assert self._watching is not None
        moved_at = said_at = time.monotonic()
        last = self.running
        while self.running != running:
            if self._watching.done():
                self._watching.result()
            await asyncio.sleep(0.02)
            now = time.monotonic()
            if self.running != last:
                moved_at, last = now, self.running
            elif now - moved_at > _STALLED_AFTER:
                raise Stalled(f"{self.running:,} of {running:,} pods run, and nothing happens any more")
            if now - said_at > 10:
                said_at = now
                say(f"  {self.running:,} pods run")

    async def last_moments(self) -> tuple[float, float]:
        """When the last pod was created, and when the last one was bound: seconds of the wall clock."""
        created = bound = 0.0
        query = {"limit": _PAGE, "fieldSelector": _RUNNING}
        while True:
            page = await self._page(query)
            for pod in page.items:
                came = pod.metadata.creation_timestamp
                created = max(created, came.timestamp() if came is not None else 0.0)
                for one in pod.status.conditions:
                    if one.type == "PodScheduled" and one.last_transition_time is not None:
                        bound = max(bound, one.last_transition_time.timestamp())
            if not page.metadata.continue_:
                return created, bound
            query["continue"] = page.metadata.continue_

    async def _watch(self, version: str) -> None:
        while True:
            query = {
                "watch": "1",
                "resourceVersion": version,
                "fieldSelector": _RUNNING,
                "timeoutSeconds": str(_WATCH_SECONDS),
            }
            asked = Request(method="GET", path="/api/v1/pods", query=query, accept=_METADATA)
            async with self._transport.stream(asked) as stream:
                if stream.status != 200:
                    raise Stalled(f"the watch of running pods was refused: {(await stream.read())[:500]!r}")
                rest = b""
                async for chunk in stream.chunks():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for event in map(_EVENTS.decode, filter(None, lines)):
                        version = event.object.metadata.resource_version
                        self.running += {"ADDED": 1, "DELETED": -1}.get(event.type, 0)
                        if event.type == "ERROR":
                            raise Stalled("the watch of running pods fell behind")

    async def _page(self, query: dict[str, str]) -> _Pods:
        answer = await self._transport.send(Request(method="GET", path="/api/v1/pods", query=query, timeout=60))
        if answer.status != 200:
            raise Stalled(f"pods were not listed: {answer.status} {answer.body[:500]!r}")
        return msgspec.json.decode(answer.body, type=_Pods)
