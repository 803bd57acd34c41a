"""Pods as a client outside sees them: made, watched and deleted over TLS, with the moments at which it saw what."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bench.starting.observer import Stalled
from shoal.kube import HttpTransport, load_connection
from shoal.kube.transport import Request

NAMESPACE = "bench"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_CONNECTIONS = 16
_PATIENCE = 180.0
_ACCEPTED = (200, 201, 202, 409)
_CHANNELS = "v5.channel.k8s.io"
_EXIT_CHANNEL = b"\x03"


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _Ended(msgspec.Struct, frozen=True, rename="camel"):
    exit_code: int
    message: str = ""


class _State(msgspec.Struct, frozen=True):
    terminated: _Ended | None = None


class _Container(msgspec.Struct, frozen=True):
    state: _State = _State()


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    conditions: list[_Condition] = []
    container_statuses: list[_Container] = []


class Pod(msgspec.Struct, frozen=True):
    """What was last seen of a pod."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def is_ready(self) -> bool:
        return any((one.type, one.status) == ("Ready", "True") for one in self.status.conditions)

    @property
    def is_over(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def last_words(self) -> str:
        """What its first container said about its end."""
        ended = [one.state.terminated for one in self.status.container_statuses]
        return ended[0].message if ended and ended[0] is not None else ""


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: Pod


_EVENTS = msgspec.json.Decoder(_Event)


@dataclass
class Seen:
    """A pod, and when what was seen of it first: seconds of a clock that all processes share, 0 for not yet."""

    asked: float = 0.0
    """When it was asked for."""
    bound: float = 0.0
    running: float = 0.0
    ready: float = 0.0
    dismissed: float = 0.0
    """When it was asked to go."""
    gone: float = 0.0
    pod: Pod = field(default_factory=Pod)

    def see(self, pod: Pod, now: float) -> None:
        self.pod = pod
        self.bound = self.bound or (now if pod.spec.node_name else 0.0)
        self.running = self.running or (now if pod.status.phase == "Running" else 0.0)
        self.ready = self.ready or (now if pod.is_ready else 0.0)


class Pods:
    """The pods of one namespace, watched while its block lasts."""

    def __init__(self, kubeconfig: Path) -> None:
        self.seen: dict[str, Seen] = {}
        self._transport = HttpTransport(load_connection(kubeconfig))
        self._watching: asyncio.Task[None] | None = None
        self._has_news = asyncio.Event()

    async def __aenter__(self) -> Pods:
        await self.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        # The controllers make it, too, and may be quicker; a pod that comes before it is refused.
        await self.post(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
        listed = msgspec.json.decode(await self._send("GET", _PODS), type=Pod)
        self._watching = asyncio.create_task(self._watch(listed.metadata.resource_version))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._watching is not None
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        await self._transport.close()

    async def create(self, name: str, spec: Mapping[str, Any]) -> Seen:
        """Asks for a pod."""
        seen = self.seen[name] = Seen(asked=time.perf_counter())
        await self.post(_PODS, {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
        return seen

    async def create_all(self, names: Iterable[str], spec: Mapping[str, Any]) -> list[Seen]:
        """Asks for pods over several connections at once."""
        waiting = iter(names)
        made: list[Seen] = []

        async def worker() -> None:
            for name in waiting:
                made.append(await self.create(name, spec))

        await asyncio.gather(*(worker() for _ in range(_CONNECTIONS)))
        return made

    async def execute(self, name: str, *command: str) -> None:
        """Runs a command in a pod and waits for its end, which must be a good one."""
        query = (("stdout", "true"), ("stderr", "true"), *(("command", word) for word in command))
        asked = Request(method="GET", path=f"{_PODS}/{name}/exec", query=query, timeout=60)
        ended = b""
        async with self._transport.websocket(asked, (_CHANNELS,)) as websocket:
            async for message in websocket.messages():
                if message[:1] == _EXIT_CHANNEL:
                    ended = message[1:]
        if not ended or msgspec.json.decode(ended)["status"] != "Success":
            raise Stalled(f"{' '.join(command)} in {name} ended with {ended.decode()}")

    async def delete(self, name: str) -> None:
        """Asks a pod to go, with the grace that it has by default."""
        self.seen[name].dismissed = time.perf_counter()
        await self._send("DELETE", f"{_PODS}/{name}")

    async def delete_all(self) -> None:
        """Asks all pods to go, and waits until they are gone."""
        staying = [one for one in self.seen.values() if not one.gone]
        for one in staying:
            one.dismissed = time.perf_counter()
        await self._send("DELETE", _PODS)
        await self.until(staying, lambda one: bool(one.gone), "are gone")

    async def until(self, pods: Sequence[Seen], holds: Callable[[Seen], bool], claim: str) -> None:
        """Returns when something holds for all of some pods."""
        assert self._watching is not None
        deadline = time.monotonic() + _PATIENCE
        while missing := [one for one in pods if not holds(one)]:
            if self._watching.done():
                self._watching.result()
            self._has_news.clear()
            left = deadline - time.monotonic()
            try:
                async with asyncio.timeout(left):
                    await self._has_news.wait()
            except TimeoutError:
                last = missing[0].pod
                raise Stalled(
                    f"{len(missing)} of {len(pods)} pods never {claim}; {last.metadata.name} was seen last as "
                    f"{last.status.phase or 'not created'}: {last.status.message} {last.last_words}"
                ) from None

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Makes an object; one that is there already is fine."""
        answer: dict[str, Any] = msgspec.json.decode(await self._send("POST", path, body))
        return answer

    async def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        encoded = None if body is None else msgspec.json.encode(body)
        answer = await self._transport.send(Request(method=method, path=path, body=encoded, timeout=60))
        if answer.status not in _ACCEPTED:
            raise Stalled(f"{method} {path} was answered with {answer.status}: {answer.body[:500]!r}")
        return answer.body

    async def _watch(self, version: str) -> None:
        query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "86400"}
        asked = Request(method="GET", path=_PODS, query=query)
        async with self._transport.stream(asked) as stream:
            if stream.status != 200:
                raise Stalled(f"the watch of pods was refused: {(await stream.read())[:500]!r}")
            rest = b""
            async for chunk in stream.chunks():
                now = time.perf_counter()
                *lines, rest = (rest + chunk).split(b"\n")
                for event in map(_EVENTS.decode, filter(None, lines)):
                    self._take(event, now)
        raise Stalled("the watch of pods was ended by the server")

    def _take(self, event: _Event, now: float) -> None:
        if event.type == "ERROR":
            raise Stalled("the watch of pods fell behind")
        seen = self.seen.get(event.object.metadata.name)
        if seen is None:
            return
        if event.type == "DELETED":
            seen.gone = now
        else:
            seen.see(event.object, now)
        self._has_news.set()
