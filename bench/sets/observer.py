"""The pods of one set and the set itself, as a watch shows them: how many are there, and how many are ready."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec

from bench.starting.observer import Stalled
from shoal.kube import HttpTransport, load_connection
from shoal.kube.transport import Request

NAMESPACE = "default"
SETS = f"/apis/grove.io/v1alpha1/namespaces/{NAMESPACE}/podcliquesets"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_PART_OF = "app.kubernetes.io/part-of"
_CHILDREN = (
    f"/apis/grove.io/v1alpha1/namespaces/{NAMESPACE}/podcliques",
    f"/apis/scheduler.grove.io/v1alpha1/namespaces/{NAMESPACE}/podgangs",
    f"/api/v1/namespaces/{NAMESPACE}/services",
)
_STALLED_AFTER = 120.0


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct, rename="camel"):
    """Of a pod or of a set; what one of them lacks stays empty."""

    conditions: list[_Condition] = []
    available_replicas: int = 0


class _Object(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def is_ready(self) -> bool:
        return any((one.type, one.status) == ("Ready", "True") for one in self.status.conditions)


class _Event(msgspec.Struct):
    type: str
    object: _Object


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _List(msgspec.Struct):
    metadata: _ListMetadata
    items: list[msgspec.Raw] = []


_EVENTS = msgspec.json.Decoder(_Event)
_LISTS = msgspec.json.Decoder(_List)


class Observer:
    """What there is of a set of this name, while its block lasts."""

    def __init__(self, kubeconfig: Path, name: str) -> None:
        self._transport = HttpTransport(load_connection(kubeconfig))
        self._name = name
        self._watches: list[asyncio.Task[None]] = []
        self._pods: set[str] = set()
        self._ready: set[str] = set()
        self.available = 0
        """Replicas of the set that its status calls available."""
        self.exists = False

    @property
    def pods(self) -> int:
        """How many pods there are."""
        return len(self._pods)

    @property
    def ready(self) -> int:
        """How many of them are ready."""
        return len(self._ready)

    async def __aenter__(self) -> Observer:
        of_pods = {"labelSelector": f"{_PART_OF}={self._name}"}
        of_set = {"fieldSelector": f"metadata.name={self._name}"}
        self._watches = [
            asyncio.create_task(self._watch(_PODS, of_pods, await self._version(_PODS, of_pods), self._pod_changed)),
            asyncio.create_task(self._watch(SETS, of_set, await self._version(SETS, of_set), self._set_changed)),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        await self._transport.close()

    async def until(self, what: str, holds: Callable[[], bool]) -> float:
        """Waits until something holds, and gives the moment; raises Stalled when nothing moves any more."""
        last, moved = self._state(), time.perf_counter()
        while not holds():
            for watch in self._watches:
                if watch.done():
                    watch.result()
            await asyncio.sleep(0.005)
            if (state := self._state()) != last:
                last, moved = state, time.perf_counter()
            elif time.perf_counter() - moved > _STALLED_AFTER:
                raise Stalled(f"{what}: {self.pods} pods, {self.ready} ready, and nothing happens any more")
        return time.perf_counter()

    async def until_nothing_is_left(self) -> float:
        """Waits until what was made for the set is gone as well, and gives the moment."""
        deadline = time.perf_counter() + _STALLED_AFTER
        selected = {"labelSelector": f"{_PART_OF}={self._name}", "limit": "1"}
        for path in _CHILDREN:
            while _LISTS.decode(await self.send("GET", path, query=selected)).items:
                if time.perf_counter() > deadline:
                    raise Stalled(f"not all of {path} went")
                await asyncio.sleep(0.05)
        return time.perf_counter()

    async def send(
        self, method: str, path: str, body: Any = None, *, query: dict[str, str] | None = None, kind: str = ""
    ) -> bytes:
        """A request as the admin."""
        encoded = None if body is None else msgspec.json.encode(body)
        more = {"content_type": kind} if kind else {}
        asked = Request(method=method, path=path, body=encoded, query=query or {}, timeout=120, **more)
        answer = await self._transport.send(asked)
        if answer.status >= 400:
            raise Stalled(f"{method} {path} was answered with {answer.status}: {answer.body[:500]!r}")
        return answer.body

    def _state(self) -> tuple[object, ...]:
        return self.pods, self.ready, self.available, self.exists

    def _pod_changed(self, change: str, pod: _Object) -> None:
        name = pod.metadata.name
        (self._pods.discard if change == "DELETED" else self._pods.add)(name)
        (self._ready.add if change != "DELETED" and pod.is_ready else self._ready.discard)(name)

    def _set_changed(self, change: str, found: _Object) -> None:
        self.exists = change != "DELETED"
        self.available = found.status.available_replicas

    async def _version(self, path: str, query: dict[str, str]) -> str:
        return _LISTS.decode(await self.send("GET", path, query=query)).metadata.resource_version

    async def _watch(
        self, path: str, query: dict[str, str], version: str, changed: Callable[[str, _Object], None]
    ) -> None:
        while True:
            options = {**query, "watch": "1", "resourceVersion": version, "timeoutSeconds": "3600"}
            async for line in self._lines(path, options):
                event = _EVENTS.decode(line)
                if event.type == "ERROR":
                    raise Stalled(f"the watch of {path} fell behind")
                version = event.object.metadata.resource_version
                changed(event.type, event.object)

    async def _lines(self, path: str, query: dict[str, str]) -> AsyncIterator[bytes]:
        async with self._transport.stream(Request(method="GET", path=path, query=query)) as stream:
            if stream.status != 200:
                raise Stalled(f"the watch of {path} was refused: {(await stream.read())[:500]!r}")
            rest = b""
            async for chunk in stream.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    yield line
