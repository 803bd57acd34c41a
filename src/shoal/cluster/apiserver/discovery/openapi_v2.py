"""OpenAPI v2, which says nothing: all kinds are described in v3, where today's clients look.

kubectl falls back to it for what v3 does not describe, such as a ``List`` or a kind that nobody serves. A document
without definitions tells it that there is nothing to check there; none at all would be an error.
"""

from __future__ import annotations

from shoal.cluster.apiserver.calls import Answer, Call, json_answer

_TITLE, _VERSION = "Kubernetes", "v1.36+shoal"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_ACCEPTED = (_PROTOBUF, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")


def openapi_v2(call: Call) -> Answer:
    """The document, in the form that is asked for."""
    if any(accepted in call.headers.get("accept", "") for accepted in _ACCEPTED):
        return Answer(body=_DOCUMENT, content_type=_ACCEPTED[1])
    return json_answer({"swagger": "2.0", "info": {"title": _TITLE, "version": _VERSION}, "paths": {}})


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


_INFO = _field(1, _TITLE.encode()) + _field(2, _VERSION.encode())
_DOCUMENT = _field(1, b"2.0") + _field(2, _INFO) + _field(8, b"")
