"""When each pod was there and when it was bound, as one watch shows both; and requests of the admin."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bench.starting.observer import Stalled
from shoal.kube import HttpTransport, load_connection
from shoal.kube.transport import Request

_STALLED_AFTER = 120.0


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    type: str
    object: _Pod


class _List(msgspec.Struct):
    metadata: _Metadata


_EVENTS = msgspec.json.Decoder(_Event)


class Observer:
    """The pods of a namespace, while its block lasts."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._transport = HttpTransport(load_connection(kubeconfig))
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._watching: asyncio.Task[None] | None = None
        self.seen: dict[str, float] = {}
        """When a pod was first shown."""
        self.bound: dict[str, float] = {}
        """When it was first shown with a node."""

    async def __aenter__(self) -> Observer:
        listed = msgspec.json.decode(await self.send("GET", self._path, query={"limit": "1"}), type=_List)
        self._watching = asyncio.create_task(self._watch(listed.metadata.resource_version))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._watching is not None
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        await self._transport.close()

    async def until_bound(self, wanted: int, say: Callable[[str], None]) -> float:
        """Waits until so many are bound, and gives the moment; raises Stalled when nothing moves any more."""
        assert self._watching is not None
        last, moved = len(self.bound), time.perf_counter()
        told = moved
        while (now := len(self.bound)) < wanted:
            if self._watching.done():
                self._watching.result()
            await asyncio.sleep(0.005)
            moment = time.perf_counter()
            if now != last:
                last, moved = now, moment
            elif moment - moved > _STALLED_AFTER:
                raise Stalled(f"{now:,} of {wanted:,} pods are bound, and nothing happens any more")
            if moment - told > 10:
                told = moment
                say(f"  {now:,} of {wanted:,} pods are bound")
        return time.perf_counter()

    async def send(self, method: str, path: str, body: Any = None, *, query: dict[str, str] | None = None) -> bytes:
        """A request as the admin."""
        encoded = None if body is None else msgspec.json.encode(body)
        answer = await self._transport.send(
            Request(method=method, path=path, body=encoded, query=query or {}, timeout=120)
        )
        if answer.status >= 400:
            raise Stalled(f"{method} {path} was answered with {answer.status}: {answer.body[:500]!r}")
        return answer.body

    async def _watch(self, version: str) -> None:
        query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "3600"}
        async with self._transport.stream(Request(method="GET", path=self._path, query=query)) as stream:
            if stream.status != 200:
                raise Stalled(f"the watch of pods was refused: {(await stream.read())[:500]!r}")
            rest = b""
            async for chunk in stream.chunks():
                now = time.perf_counter()
                *lines, rest = (rest + chunk).split(b"\n")
                for event in map(_EVENTS.decode, filter(None, lines)):
                    self._note(event, now)
        raise Stalled("the watch of pods has ended")

    def _note(self, event: _Event, now: float) -> None:
        name = event.object.metadata.name
        if event.type == "ERROR":
            raise Stalled("the watch of pods fell behind")
        self.seen.setdefault(name, now)
        if event.object.spec.node_name:
            self.bound.setdefault(name, now)
