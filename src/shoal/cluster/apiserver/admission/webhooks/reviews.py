"""AdmissionReview, version v1: the question that a webhook is asked, and how its answer is read."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.kube.admission.wire import ADMISSION_V1
from shoal.kube.errors import Cause, Status, StatusDetails


class BadAnswer(Exception):
    """An answer is none that can be followed; says why, as Kubernetes does."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a webhook decided."""

    allowed: bool
    status: Mapping[str, Any] | None = None
    patch: bytes = b""
    patch_type: str = ""
    warnings: list[str] = field(default_factory=list)


def request_fields(request: Attributes, wanted: Kind) -> dict[str, Any]:
    """The request as webhooks and conditions see it, without the objects."""
    user = request.user
    kind, resource = _names(wanted, request.subresource)
    asked_kind, asked_resource = _names(request.kind, request.subresource)
    fields: dict[str, Any] = {
        "kind": kind,
        "resource": resource,
        "requestKind": asked_kind,
        "requestResource": asked_resource,
        "operation": request.operation.value,
        "userInfo": {
            "username": user.name,
            **({"uid": user.uid} if user.uid else {}),
            **({"groups": list(user.groups)} if user.groups else {}),
            **({"extra": {key: list(values) for key, values in user.extra.items()}} if user.extra else {}),
        },
        "dryRun": request.dry_run,
        "options": dict(request.options) or None,
    }
    if request.subresource:
        fields["subResource"] = fields["requestSubResource"] = request.subresource
    if name := request.name or (_metadata(request.object).get("name")):
        fields["name"] = name
    if namespace := request.namespace or (name if request.kind.storage == "namespaces" else ""):
        fields["namespace"] = namespace
    return fields


def question(uid: str, request: Attributes, wanted: Kind, new: Object | None, old: Object | None) -> bytes:
    """The review that is sent; the objects are in the version that the webhook wants to see."""
    asked = {"uid": uid, **request_fields(request, wanted), "object": new, "oldObject": old}
    return msgspec.json.encode({"kind": "AdmissionReview", "apiVersion": ADMISSION_V1, "request": asked})


def answer(body: bytes, uid: str, *, mutates: bool) -> Verdict:
    """The verdict in a webhook's answer; raises BadAnswer."""
    try:
        review = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadAnswer(f"couldn't get version/kind; json parse error: {error}") from error
    response = review.get("response") if isinstance(review, dict) else None
    if not isinstance(response, dict):
        raise BadAnswer("webhook response was absent")
    if response.get("uid") != uid:
        raise BadAnswer(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    named = (review.get("apiVersion"), review.get("kind"))
    if named != (ADMISSION_V1, "AdmissionReview"):
        raise BadAnswer(
            f"expected webhook response of {ADMISSION_V1}, Kind=AdmissionReview, "
            f"got {named[0] or '/'}, Kind={named[1] or ''}"
        )
    status = response.get("status")
    return Verdict(
        allowed=response.get("allowed") is True,
        status=status if isinstance(status, dict) else None,
        patch=_patch(response, mutates=mutates),
        patch_type=response.get("patchType") or "",
        warnings=[str(each) for each in response.get("warnings") or ()],
    )


def denial(name: str, stated: Mapping[str, Any] | None) -> Status:
    """The Status of a request that a webhook refused: its own, with a message that names it."""
    stated = stated or {}
    details = stated.get("details") or {}
    said = stated.get("message") or stated.get("reason")
    told = f'admission webhook "{name}" denied the request'
    code = stated.get("code")
    return Status(
        status="Failure",
        message=f"{told}: {said}" if said else f"{told} without explanation",
        reason=stated.get("reason") or "",
        code=code if isinstance(code, int) and code >= 400 else 400,
        details=StatusDetails(
            name=details.get("name") or "",
            group=details.get("group") or "",
            kind=details.get("kind") or "",
            uid=details.get("uid") or "",
            causes=[
                Cause(reason=each.get("reason") or "", message=each.get("message") or "", field=each.get("field") or "")
                for each in details.get("causes") or ()
            ],
            retryAfterSeconds=details.get("retryAfterSeconds") or 0,
        ),
    )


def _patch(response: Mapping[str, Any], *, mutates: bool) -> bytes:
    patch, kind = response.get("patch"), response.get("patchType")
    if not mutates:
        if patch:
            raise BadAnswer("validating webhook may not return response.patch")
        if kind is not None:
            raise BadAnswer("validating webhook may not return response.patchType")
        return b""
    if patch and kind is None:
        raise BadAnswer("webhook returned response.patch but not response.patchType")
    if not patch and kind is not None:
        raise BadAnswer("webhook returned response.patchType but not response.patch")
    if kind == "":
        raise BadAnswer('webhook returned invalid response.patchType of ""')
    try:
        return base64.b64decode(patch or "", validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise BadAnswer(f"illegal base64 data: {error}") from error


def _names(kind: Kind, subresource: str) -> tuple[dict[str, str], dict[str, str]]:
    resource = {"group": kind.group, "version": kind.version, "resource": kind.resource}
    of = kind.subresources.get(subresource) if subresource else None
    shown = of if of is not None and of.schema is not None else kind
    return {"group": shown.group, "version": shown.version, "kind": shown.kind}, resource


def _metadata(of: Object | None) -> Mapping[str, Any]:
    return (of or {}).get("metadata") or {}
