from __future__ import annotations

import json

import pytest

from shoal.cluster.apiserver.calls import Call
from shoal.cluster.apiserver.discovery import openapi_v2

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def test_the_document_describes_nothing() -> None:
    answer = openapi_v2(Call(method="GET", path="/openapi/v2"))
    assert isinstance(answer.body, bytes)
    document = json.loads(answer.body)
    assert (document["swagger"], document["paths"]) == ("2.0", {})


@pytest.mark.parametrize("accept", [PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"])
def test_kubectl_gets_it_as_protobuf(accept: str) -> None:
    answer = openapi_v2(Call(method="GET", path="/openapi/v2", headers={"accept": accept}))
    assert answer.content_type == PROTOBUF
    assert isinstance(answer.body, bytes)
    assert answer.body.startswith(b"\x0a\x032.0")
