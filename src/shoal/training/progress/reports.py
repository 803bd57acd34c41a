"""A report of a training program, and what is answered where it cannot be taken: both as plain values."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

LIMIT: Final = 64 * 1024
"""The largest report, in bytes."""


class Refusal(Exception):
    """Why a report is not taken, as the API server would say it."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        self.code = code
        self.reason = reason
        self.message = message
        super().__init__(message)

    @property
    def body(self) -> dict[str, Any]:
        """The answer."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }


def forbidden() -> Refusal:
    """Whoever asks does not say who he is, or is not one who may; which of the two is nobody's business."""
    return Refusal(403, "Forbidden", "Forbidden")


def too_large() -> Refusal:
    """The report is longer than reports may be."""
    return Refusal(413, "RequestEntityTooLarge", f"Payload too large: a report has at most {LIMIT} bytes")


def not_found(message: str) -> Refusal:
    """There is no such TrainJob, or nothing at all at that place."""
    return Refusal(404, "NotFound", message)


def trainer_status(body: bytes) -> dict[str, Any] | None:
    """How far training is, as a report says; None where it says nothing. Raises Refusal where it is no report.

    Fields that nobody knows are passed over, as Trainer does, so that programs newer than this server can report. Where
    there are no others, somebody has misnamed them, and hears of it.
    """
    try:
        said = msgspec.json.decode(body)
        status = msgspec.convert(said, _Report).trainer_status
    except msgspec.ValidationError as error:
        raise _invalid(_place_first(str(error))) from error
    except RecursionError as error:
        raise _invalid("it is nested too deeply") from error
    except ValueError as error:  # no JSON, or no UTF-8
        raise _invalid(str(error)) from error
    if status is None:
        return None
    unknown = said["trainerStatus"].keys() - _FIELDS
    if unknown and status == _TrainerStatus(last_updated_time=status.last_updated_time):
        raise _invalid(f"trainerStatus.{min(unknown)}: there is no such field: there are {', '.join(_FIELDS)}")
    taken: dict[str, Any] = msgspec.to_builtins(status)
    return taken


def bearer_token(authorization: str) -> str:
    """The token of a request. Raises Refusal where there is none."""
    scheme, _, token = authorization.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise forbidden()
    return token.strip()


_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]


class _Metric(msgspec.Struct, frozen=True):
    """A figure, which is text: programs say how many digits it has."""

    name: str
    value: str


class _TrainerStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Types alone: bounds, and what a time looks like, are for the API server to judge."""

    progress_percentage: _Int32 | None = None
    estimated_remaining_seconds: _Int32 | None = None
    metrics: list[_Metric] | None = None
    last_updated_time: str | None = None


class _Report(msgspec.Struct, frozen=True, rename="camel"):
    trainer_status: _TrainerStatus | None = None


_FIELDS: Final = _TrainerStatus.__struct_encode_fields__


def _invalid(problem: str) -> Refusal:
    return Refusal(422, "Invalid", f"Invalid payload: {problem}")


def _place_first(problem: str) -> str:
    """A problem as msgspec words it, in the order in which the API server says such things."""
    what, _, place = problem.replace(" | null", "").partition(" - at `$.")
    return f"{place.rstrip('`')}: {what}" if place else what
