"""The answers that refuse: one exception that carries the Status, and a function for each thing the server says no to.

Reasons, codes, causes and wording are Kubernetes' own, since clients read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.cluster.apiserver.access.wording import quoted
from shoal.kube.admission.fields import FieldProblem, invalid_status
from shoal.kube.errors import Cause, Status, StatusDetails

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class Refused(Exception):
    """A request is refused; the Status is what the client reads."""

    def __init__(self, status: Status, *, continues: str = "", has_details: bool = False) -> None:
        self.status = status
        self.continues = continues
        """A token with which a list can go on all the same."""
        self.has_details = has_details
        """Whether the Status has details even where there are none to tell."""
        self.warnings: list[str] = []
        """What the client is told besides, as it is of a request that succeeds."""
        super().__init__(status.message)


def qualified(resource: str, group: str) -> str:
    """A resource as messages name it: ``pods``, ``deployments.apps``."""
    return f"{resource}.{group}" if group else resource


def refused(
    code: int,
    reason: str,
    message: str,
    *,
    name: str = "",
    group: str = "",
    kind: str = "",
    uid: str = "",
    causes: Sequence[Cause] = (),
    retry_after: int = 0,
) -> Refused:
    """A refusal of any sort; those below are the usual ones."""
    details = StatusDetails(
        name=name, group=group, kind=kind, uid=uid, causes=list(causes), retryAfterSeconds=retry_after
    )
    return Refused(Status(code=code, reason=reason, message=message, details=details))


def bad_request(message: str) -> Refused:
    """400: the request cannot be understood."""
    return refused(400, "BadRequest", message)


class Unhandled(Refused):
    """400: an object that cannot be read as what it should be; ``problem`` is what is wrong with it."""

    def __init__(self, stated: str, version: str, kind: str, problem: str) -> None:
        self.problem = problem
        message = f'{stated} in version "{version}" cannot be handled as a {kind}: {problem}'
        super().__init__(Status(code=400, reason="BadRequest", message=message))


def unauthorized() -> Refused:
    """401: no credentials that are known here."""
    return refused(401, "Unauthorized", "Unauthorized")


def forbidden(resource: str, group: str, name: str, why: str) -> Refused:
    """403: this user may not, or a rule of admission says no."""
    shown = f'{qualified(resource, group)} "{name}"' if name else qualified(resource, group)
    message = f"{shown} is forbidden: {why}" if resource else f"forbidden: {why}"
    return refused(403, "Forbidden", message, name=name, group=group, kind=resource)


def not_found(resource: str, group: str, name: str) -> Refused:
    """404: no such object."""
    message = f"{qualified(resource, group)} {quoted(name)} not found"
    return refused(404, "NotFound", message, name=name, group=group, kind=resource)


def no_such_route() -> Refused:
    """404: no such resource, where a Status is asked for."""
    return refused(404, "NotFound", "the server could not find the requested resource")


def not_acceptable(accepted: Iterable[str]) -> Refused:
    """406: none of the media types that the client takes."""
    known = ", ".join(accepted)
    return refused(406, "NotAcceptable", f"only the following media types are accepted: {known}")


def not_producible(produced: Iterable[str]) -> Refused:
    """406: of what is there, nothing comes in a media type that the client takes."""
    known = ", ".join(produced)
    message = f"406: Not Acceptable\n\nAvailable representations: {known}"
    return Refused(Status(code=406, reason="NotAcceptable", message=message), has_details=True)


def not_consumable() -> Refused:
    """415: nothing there reads bodies of this media type."""
    message = "415: Unsupported Media Type"
    return Refused(Status(code=415, reason="UnsupportedMediaType", message=message), has_details=True)


def method_not_allowed() -> Refused:
    """405: there is something at this path, but it does not know the method."""
    message = "the server does not allow this method on the requested resource"
    return refused(405, "MethodNotAllowed", message)


def unsupported_media_type(accepted: Iterable[str]) -> Refused:
    """415: the body comes in a media type that is not read here."""
    known = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {known}"
    return refused(415, "UnsupportedMediaType", message)


def already_exists(resource: str, group: str, name: str) -> Refused:
    """409: the name is taken."""
    message = f'{qualified(resource, group)} "{name}" already exists'
    return refused(409, "AlreadyExists", message, name=name, group=group, kind=resource)


def conflict(resource: str, group: str, name: str, why: str = MODIFIED) -> Refused:
    """409: the object is not what the client thought it was."""
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return refused(409, "Conflict", message, name=name, group=group, kind=resource)


def apply_conflict(causes: Sequence[Cause], message: str) -> Refused:
    """409: fields that are applied belong to other managers."""
    return refused(409, "Conflict", message, causes=causes)


def expired(message: str, *, continues: str = "") -> Refused:
    """410: that version is no longer kept."""
    return Refused(Status(code=410, reason="Expired", message=message), continues=continues)


def too_large(message: str) -> Refused:
    """413: the body, or the object, is bigger than what is kept here."""
    return refused(413, "RequestEntityTooLarge", message)


def invalid(kind: str, group: str, name: str, problems: Iterable[FieldProblem]) -> Refused:
    """422: fields break rules; every one is named."""
    return Refused(invalid_status(group, kind, name, problems))


def unprocessable(message: str) -> Refused:
    """422: a patch that can be read and not be carried out."""
    return Refused(Status(code=422, reason="Invalid", message=message), has_details=True)


def too_many_requests(message: str, *, retry_after: int = 1, causes: Sequence[Cause] = ()) -> Refused:
    """429: not now; a disruption budget says so as well."""
    return refused(429, "TooManyRequests", message, retry_after=retry_after, causes=causes)


def internal_error(message: str) -> Refused:
    """500: a fault of ours, or of a webhook that had to answer."""
    cause = Cause(message=message)
    return refused(500, "InternalError", f"Internal error occurred: {message}", causes=[cause])


def unavailable(message: str) -> Refused:
    """503: a part that is needed is not there."""
    return refused(503, "ServiceUnavailable", message)


def timeout(message: str, *, retry_after: int = 1, causes: Sequence[Cause] = ()) -> Refused:
    """504: what was asked for has not come to pass in time."""
    return refused(504, "Timeout", message, retry_after=retry_after, causes=causes)
