"""What an agent's refusal means to the one who asked us."""

from __future__ import annotations

import msgspec

from shoal.cluster.apiserver.refusals import Refused, refused
from shoal.kube.errors import ApiError, Status

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class _Typed(msgspec.Struct):
    kind: str


def passed_on(code: int, body: bytes) -> Refused | None:
    """The Status that a body is, under the code that came with it; None where it is something else."""
    try:
        if msgspec.json.decode(body, type=_Typed).kind != "Status":
            return None
        status = msgspec.json.decode(body, type=Status)
    except msgspec.MsgspecError:
        return None
    return Refused(msgspec.structs.replace(status, code=code))


def refusal_of(error: ApiError) -> Refused:
    """What an agent answered in place of an upgrade, with a reason by its code where it gave none."""
    status = error.status
    if status.code < 400:
        return refused(500, "", f"invalid upgrade response: status code {status.code}")
    if status.reason:
        return Refused(status)
    message = status.message or f"the agent of the node answered {status.code} and did not say why"
    return refused(status.code, _REASONS.get(status.code, ""), message)
