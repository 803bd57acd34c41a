"""A request and its answer, whatever carried them: HTTP over TLS, a Unix socket, or a call in the same process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import msgspec

from shoal.cluster.apiserver.refusals import Refused
from shoal.cluster.upgraded import ByteStream
from shoal.kube.errors import Status

JSON = "application/json"

# Refusals of these sorts have details even where there is nothing to tell.
_WITH_DETAILS = ("Forbidden", "NotFound", "MethodNotAllowed")


@dataclass(kw_only=True, slots=True)
class Call:
    """One request as it came in. Header names are in lower case; ``query`` holds decoded values in their order."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    impersonation: Sequence[tuple[str, str]] = ()
    """The Impersonate-* headers, which may come several times."""
    body: bytes = b""
    certificate: bytes | None = None
    """The client's certificate (DER), verified."""
    is_trusted: bool = False
    """Whether the way it came is open to the owner alone, so that it needs no credentials."""
    load: Callable[[], Awaitable[bytes]] | None = None
    """Reads the body, which is done only for those who may do what they ask for; None where it is here already."""
    body_size: int = 0
    """The most bytes that the body can have."""
    is_authenticated: bool = False
    """Whether the server found out who the user is."""

    def value(self, name: str) -> str:
        """The first value of a query parameter, or nothing."""
        values = self.query.get(name)
        return values[0] if values else ""


@dataclass(kw_only=True, slots=True)
class Answer:
    """A whole answer; a long body comes in pieces, so that it can be sent piece by piece."""

    status: int = 200
    body: bytes | Sequence[bytes] = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    """What the client shall show to its user, each as a header of its own."""


@dataclass(kw_only=True, slots=True)
class Streaming:
    """An answer that goes on: a watch, or a followed log."""

    chunks: AsyncIterator[bytes]
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    patience: float | None = 30.0
    """For how many seconds a client may read nothing before it is cut off; None: as long as it likes."""


class Socket(Protocol):
    """One end of a WebSocket."""

    async def send(self, data: bytes) -> None:
        """Sends a binary message."""
        ...

    def messages(self) -> AsyncIterator[bytes]:
        """The messages of the other end, until it closes."""
        ...


@dataclass(kw_only=True, slots=True)
class Upgrade:
    """An answer that goes on as a WebSocket: exec, attach and port-forward."""

    protocol: str
    """The subprotocol that was agreed upon."""
    serve: Callable[[Socket], Awaitable[None]]
    """Talks until either side has had enough; the socket is closed after it."""
    status: int = 101


@dataclass(kw_only=True, slots=True)
class Tunnel:
    """An answer that goes on in a protocol of others, whatever the client and a proxied server agreed upon."""

    headers: Mapping[str, str]
    """What the server answered, the name of the protocol included."""
    serve: Callable[[ByteStream], Awaitable[None]]
    """Carries bytes until either side has closed; the connection is closed after it."""
    status: int = 101


Reply: TypeAlias = Answer | Streaming | Upgrade | Tunnel
"""Whatever a request is answered with."""


def json_answer(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """A value as JSON."""
    return Answer(status=status, body=msgspec.json.encode(value), headers=headers or {})


def text_answer(text: str, *, status: int = 200) -> Answer:
    """A plain text."""
    return Answer(status=status, body=text.encode(), content_type="text/plain; charset=utf-8")


def no_such_path() -> Answer:
    """404: nothing is served there, in any group."""
    return text_answer("404 page not found\n", status=404)


def refusal_answer(refusal: Refused) -> Answer:
    """A refusal as the client reads it."""
    status = refusal.status
    headers = {}
    if status.details.retryAfterSeconds:
        headers["Retry-After"] = str(int(status.details.retryAfterSeconds))
    value = status_value(status, has_details=refusal.has_details)
    if refusal.continues:
        value["metadata"] = {"continue": refusal.continues}
    answer = json_answer(value, status=status.code, headers=headers)
    answer.warnings = refusal.warnings
    return answer


def status_value(status: Status, *, has_details: bool = False) -> dict[str, Any]:
    """A Status as Kubernetes writes it: what is empty is left out."""
    details = status.details
    causes = [_without_empty(reason=c.reason, message=c.message, field=c.field) for c in details.causes]
    shown = _without_empty(
        name=details.name,
        group=details.group,
        kind=details.kind,
        uid=details.uid,
        causes=causes,
        retryAfterSeconds=int(details.retryAfterSeconds),
    )
    told = _without_empty(message=status.message, reason=status.reason)
    if shown or has_details or status.reason in _WITH_DETAILS:
        told["details"] = shown
    head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": status.status}
    return head | told | {"code": status.code}


def _without_empty(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
