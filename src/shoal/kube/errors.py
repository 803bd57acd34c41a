"""What an API server answers when it refuses, as one small tree of exceptions with fields.

A caller catches the class it can answer (``NotFound``, ``Conflict``); ``is_retryable`` separates what may pass by
itself from what will not.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One field that the server refused, and why."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What a Status says of the object it is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[Cause] = []
    retryAfterSeconds: float = 0  # noqa: N815 - the wire's own name


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The server's own error object."""

    status: str = "Failure"
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails = StatusDetails()


class ApiError(Exception):
    """The API server refused a request."""

    def __init__(self, status: Status, *, request: str = "", retry_after: float | None = None) -> None:
        self.status = status
        self.code = status.code
        self.reason = status.reason
        self.message = status.message
        self.causes = status.details.causes
        self.request = request
        self.retry_after = retry_after
        super().__init__(f"{self.message or self.reason} ({self.code} {self.reason or 'Unknown'}, {request})")

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed later with nothing changed: overload and server faults."""
        return self.code == 429 or self.code >= 500

    def has_cause(self, reason: str) -> bool:
        """Whether the server names this among its reasons, such as ``NamespaceTerminating``."""
        return any(cause.reason == reason for cause in self.causes)


class BadRequest(ApiError):
    """400: the request itself is malformed."""


class Unauthorized(ApiError):
    """401: the credentials are missing, wrong or expired."""


class Forbidden(ApiError):
    """403: these credentials may not do this."""


class NotFound(ApiError):
    """404: no such object, or no such kind."""


class Conflict(ApiError):
    """409: the object changed since it was read, or fields belong to another manager."""


class AlreadyExists(Conflict):
    """409 AlreadyExists: an object of that name is there."""


class Expired(ApiError):
    """410: the resource version asked for is too old: list again."""


class TooLarge(ApiError):
    """413: the body is larger than the server takes."""


class Invalid(ApiError):
    """422: the object breaks its schema or a rule; ``causes`` name the fields."""


class TooManyRequests(ApiError):
    """429: slow down; ``retry_after`` says for how long."""


class ServerTimeout(ApiError):
    """504, or 500 with a Timeout reason: the server gave up waiting."""


_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    413: TooLarge,
    422: Invalid,
    429: TooManyRequests,
    504: ServerTimeout,
}
_BY_REASON: dict[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "Expired": Expired,
    "Gone": Expired,
    "ServerTimeout": ServerTimeout,
    "Timeout": ServerTimeout,
}


def error_from_status(status: Status, *, request: str = "", retry_after: float | None = None) -> ApiError:
    """The exception that a Status means: by its reason where that is finer than the code."""
    chosen = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code, ApiError)
    if retry_after is None and status.details.retryAfterSeconds:
        retry_after = status.details.retryAfterSeconds
    return chosen(status, request=request, retry_after=retry_after)


def error_from_response(code: int, body: bytes, *, request: str = "", retry_after: float | None = None) -> ApiError:
    """The exception for an HTTP answer of 400 and above, whether or not its body is a Status."""
    try:
        status: Any = msgspec.json.decode(body, type=Status)
    except msgspec.MsgspecError:
        status = Status(message=body[:200].decode(errors="replace").strip())
    if status.code != code:
        status = msgspec.structs.replace(status, code=code)
    return error_from_status(status, request=request, retry_after=retry_after)


class ConnectionFault(Exception):
    """No answer came: the connection was refused, reset, or timed out.

    ``sent`` is False only where the request surely never reached the server (no connection could be made), so that
    even a create may be tried again. ``lasting`` is True where trying again soon cannot help: a certificate that is not
    trusted, credentials that cannot be had.
    """

    def __init__(self, message: str, *, sent: bool = True, lasting: bool = False) -> None:
        self.sent = sent
        self.lasting = lasting
        super().__init__(message)


class ReconcileError(Exception):
    """What keeps a reconcile from its goal, in one sentence; it is logged without a stack, and tried again later."""


class NotLeading(Exception):
    """This process does not hold the lease (any more), so it must not write."""
