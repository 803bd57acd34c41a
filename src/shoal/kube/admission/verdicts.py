"""What may be said of a change: that it passes, passes changed, or is refused; and what the user is told besides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from shoal.kube.admission.fields import FieldProblem
from shoal.kube.admission.jsonpatch import Operation
from shoal.kube.admission.wire import AdmissionRequest, AdmissionResponse, encoded_patch
from shoal.kube.errors import Status


@dataclass(frozen=True)
class Allowed:
    """Let it pass, as it is."""

    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Denied:
    """Refuse it. ``status`` says more than the message where there is more to say."""

    message: str
    code: int = 403
    reason: str = "Forbidden"
    warnings: tuple[str, ...] = ()
    status: Status | None = None


@dataclass(frozen=True)
class Patched:
    """Let it pass, changed."""

    operations: list[Operation]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Warn:
    """Something the user should be told although the change may pass; kubectl prints it, cut after 256 characters."""

    message: str


Verdict: TypeAlias = Allowed | Denied | Patched
Finding: TypeAlias = FieldProblem | Warn | Denied
Findings: TypeAlias = Iterable[Finding] | Finding | None


def response(verdict: Verdict, request: AdmissionRequest) -> AdmissionResponse:
    """A verdict as the API server wants to hear it."""
    warnings = list(verdict.warnings)
    match verdict:
        case Allowed():
            return AdmissionResponse(uid=request.uid, allowed=True, warnings=warnings)
        case Patched():
            return AdmissionResponse(
                uid=request.uid,
                allowed=True,
                patch=encoded_patch(verdict.operations),
                patch_type="JSONPatch",
                warnings=warnings,
            )
        case Denied():
            status = verdict.status or Status(message=verdict.message, reason=verdict.reason, code=verdict.code)
            return AdmissionResponse(uid=request.uid, allowed=False, status=status, warnings=warnings)
