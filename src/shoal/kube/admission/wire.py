"""What an API server sends to a webhook and what it expects back: AdmissionReview and ConversionReview, version v1.

The objects under review stay bytes (``msgspec.Raw``) until someone says what type they are to be read into.
"""

from __future__ import annotations

import base64
from enum import StrEnum
from typing import Any

import msgspec

from shoal.api.meta.objects import Wire
from shoal.kube.admission.jsonpatch import Operation as PatchOperation
from shoal.kube.errors import Status

ADMISSION_V1 = "admission.k8s.io/v1"
CONVERSION_V1 = "apiextensions.k8s.io/v1"
NOTHING = msgspec.Raw(b"")


class Operation(StrEnum):
    """What is being done to an object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class GroupVersionKind(Wire, frozen=True, kw_only=True):
    """A kind, as reviews name it."""

    group: str = ""
    version: str = ""
    kind: str = ""


class GroupVersionResource(Wire, frozen=True, kw_only=True):
    """A resource, as reviews name it."""

    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(Wire, frozen=True, kw_only=True):
    """Who asks."""

    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class AdmissionRequest(Wire, frozen=True, kw_only=True):
    """One change that the API server asks about.

    ``kind`` and ``resource`` say what the objects here are; ``request_kind`` and ``request_resource`` what the user
    sent, where the API server converted it to the version that the webhook asked for.
    """

    uid: str = ""
    kind: GroupVersionKind = GroupVersionKind()
    resource: GroupVersionResource = GroupVersionResource()
    sub_resource: str = ""
    request_kind: GroupVersionKind | None = None
    request_resource: GroupVersionResource | None = None
    request_sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: Operation = Operation.CREATE
    user_info: UserInfo = UserInfo()
    object: msgspec.Raw = NOTHING
    old_object: msgspec.Raw = NOTHING
    dry_run: bool | None = None
    options: dict[str, Any] | None = None


class AdmissionResponse(Wire, frozen=True, kw_only=True):
    """The answer to one AdmissionRequest."""

    uid: str
    allowed: bool
    status: Status | None = None
    patch: str | None = None
    patch_type: str | None = None
    warnings: list[str] = []


class AdmissionReview(Wire, frozen=True, kw_only=True):
    """The envelope of a request; what an API server writes into its response beforehand is of no interest."""

    api_version: str = ""
    kind: str = ""
    request: AdmissionRequest | None = None


class AnsweredAdmissionReview(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """The envelope of an answer."""

    api_version: str = ADMISSION_V1
    kind: str = "AdmissionReview"
    response: AdmissionResponse


class ConversionRequest(Wire, frozen=True, kw_only=True):
    """Objects that the API server wants in another version."""

    uid: str
    desired_api_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[dict[str, Any]] = []


class ConversionResult(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Whether a conversion succeeded."""

    status: str
    message: str = ""


class ConversionResponse(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """The objects in the version asked for, in the order asked, or why not."""

    uid: str
    converted_objects: list[dict[str, Any]]
    result: ConversionResult


class ConversionReview(Wire, frozen=True, kw_only=True):
    """The envelope of a request; API servers send an empty response along, with null where a list should be."""

    api_version: str = ""
    kind: str = ""
    request: ConversionRequest | None = None


class AnsweredConversionReview(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """The envelope of an answer."""

    api_version: str = CONVERSION_V1
    kind: str = "ConversionReview"
    response: ConversionResponse


class BadReview(Exception):
    """A request is no review that can be answered; says why."""


_ADMISSION = msgspec.json.Decoder(AdmissionReview)
_CONVERSION = msgspec.json.Decoder(ConversionReview)


def read_admission(body: bytes) -> AdmissionRequest:
    """The request in an AdmissionReview; raises BadReview where there is none."""
    try:
        review = _ADMISSION.decode(body)
    except msgspec.MsgspecError as error:
        raise BadReview(f"the body is no AdmissionReview: {error}") from error
    _check_envelope(review.api_version, review.kind, ADMISSION_V1, "AdmissionReview")
    if review.request is None or not review.request.uid:
        raise BadReview("the AdmissionReview has no request with a uid")
    return review.request


def read_conversion(body: bytes) -> ConversionRequest:
    """The request in a ConversionReview; raises BadReview where there is none."""
    try:
        review = _CONVERSION.decode(body)
    except msgspec.MsgspecError as error:
        raise BadReview(f"the body is no ConversionReview: {error}") from error
    _check_envelope(review.api_version, review.kind, CONVERSION_V1, "ConversionReview")
    if review.request is None or not review.request.uid:
        raise BadReview("the ConversionReview has no request with a uid")
    return review.request


def write_admission(response: AdmissionResponse) -> bytes:
    """The AdmissionReview that carries an answer."""
    return msgspec.json.encode(AnsweredAdmissionReview(response=response))


def write_conversion(response: ConversionResponse) -> bytes:
    """The ConversionReview that carries an answer."""
    return msgspec.json.encode(AnsweredConversionReview(response=response))


def encoded_patch(operations: list[PatchOperation]) -> str:
    """A JSON patch as a response carries it."""
    return base64.b64encode(msgspec.json.encode(operations)).decode()


def _check_envelope(api_version: str, kind: str, wanted_version: str, wanted_kind: str) -> None:
    if (api_version, kind) != (wanted_version, wanted_kind):
        raise BadReview(f"expected {wanted_kind} {wanted_version}, got {kind or 'no kind'} {api_version}".rstrip())
