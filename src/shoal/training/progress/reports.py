"""A report of a training program, and what is answered where it cannot be taken: both as plain values."""

from __future__ import annotations

from typing import Any, Final

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
    """How far training is, as a report says; None where it says nothing. Raises Refusal where it is no report."""
    try:
        report = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refusal(422, "Invalid", "Invalid payload") from error
    status = report.get("trainerStatus") if isinstance(report, dict) else report
    if status is None and isinstance(report, dict):
        return None
    if not isinstance(status, dict):
        raise Refusal(422, "Invalid", "Invalid payload")
    return status


def bearer_token(authorization: str) -> str:
    """The token of a request. Raises Refusal where there is none."""
    scheme, _, token = authorization.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise forbidden()
    return token.strip()
