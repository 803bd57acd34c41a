"""What an agent is asked, and what it answers, without a word of HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from aiohttp import web

from shoal.api.meta import parse_time


class Refused(Exception):
    """The agent does not do what it was asked; the message is for the person who asked."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(message)


class Line(NamedTuple):
    """A line of a log, without its end."""

    at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Which part of a log is wanted."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: datetime | None = None
    tail: int | None = None
    limit_bytes: int | None = None

    @staticmethod
    def of(query: Mapping[str, str], *, now: datetime) -> LogOptions:
        """Reads the kubelet's query; raises Refused where it is wrong."""
        try:
            since = parse_time(query["sinceTime"]) if query.get("sinceTime") else None
            if query.get("sinceSeconds"):
                since = now - timedelta(seconds=int(query["sinceSeconds"]))
            tail = int(query["tailLines"]) if query.get("tailLines") else None
            limit = int(query["limitBytes"]) if query.get("limitBytes") else None
        except (ValueError, OverflowError) as error:
            raise Refused(400, f"the log options are not valid: {error}") from None
        return LogOptions(
            follow=_flag(query, "follow"),
            previous=_flag(query, "previous"),
            timestamps=_flag(query, "timestamps"),
            since=since,
            tail=tail,
            limit_bytes=limit,
        )

    def selected(self, lines: Sequence[Line]) -> Sequence[Line]:
        """Those of the lines written so far that are wanted."""
        if self.since is not None:
            lines = [line for line in lines if line.at >= self.since]
        if self.tail is not None:
            lines = lines[-self.tail :] if self.tail else []
        return lines


class ContainerUsage(NamedTuple):
    """How much a container has used until now, and uses now."""

    namespace: str
    pod: str
    uid: str
    container: str
    started: float
    cpu_seconds: float
    cpu_cores: float
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """How much a node has used until now, and uses now."""

    node: str
    started: float
    cpu_seconds: float
    cpu_cores: float
    memory_bytes: int
    memory_capacity: int
    containers: Sequence[ContainerUsage]


class Kubelet(Protocol):
    """What an agent offers. Each call may raise Refused."""

    def log(self, namespace: str, pod: str, container: str, options: LogOptions) -> AsyncIterator[Line | bytes]:
        """A container's log; where it is followed, until the container ends.

        An agent that has lines gives lines. One that has bytes gives those, with the times that were asked for, and
        they are passed on as they are: a log need not be text, nor end with a line's end. What it gives first, be it
        nothing, says that there is a log and that nothing is refused.
        """
        ...

    async def connect(
        self, request: web.Request, verb: str, namespace: str, pod: str, container: str
    ) -> web.StreamResponse:
        """Runs a command (``exec``, ``run``), joins a container (``attach``) or reaches ports of a pod.

        ``portForward`` is a kubelet's: any number of connections, made inside the pod. ``podConnect`` is ours: one
        connection to the pod's address, which carries nothing but its bytes.
        """
        ...

    def usage(self, node: str) -> NodeUsage:
        """How much a node and its containers use; empty means the only node there is."""
        ...

    def pods(self, node: str) -> list[dict[str, Any]]:
        """The pods of a node as far as they are known here; empty means those of all nodes."""
        ...


def _flag(query: Mapping[str, str], name: str) -> bool:
    value = query.get(name)
    return value is not None and value.lower() not in ("false", "0")
