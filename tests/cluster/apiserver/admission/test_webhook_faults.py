"""What becomes of a request when a webhook cannot be reached, or answers nonsense."""

from __future__ import annotations

import asyncio
import base64
import socket
import struct
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from shoal.cluster.apiserver.admission import Chain
from shoal.kube.admission import (
    Allowed,
    Patched,
    Webhooks,
)
from shoal.kube.certificates import KeyPair
from tests.cluster.apiserver.admission.memory import (
    CONFIG_MAP,
    Memory,
    a_namespace,
    creating,
    deleting,
    refusal_of,
)
from tests.cluster.apiserver.admission.webhook_serving import (
    QUEUE,
    Serving,
    a_rule,
    answering,
    raise_weight,
)
from tests.support.builders.reviews import a_reviewed_queue


class Backends:
    """Services that all lead to one place on this machine."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.asked: list[tuple[str, str, int]] = []

    def connector(self) -> aiohttp.BaseConnector:
        return aiohttp.TCPConnector()

    def backend(self, namespace: str, name: str, port: int) -> str:
        self.asked.append((namespace, name, port))
        return self.place


async def test_a_service_is_found_and_its_name_expected(
    webhooks: Webhooks, serving: Serving, authority: KeyPair
) -> None:
    seen = a_rule(webhooks, "validating", lambda _: Allowed())
    bundle = base64.b64encode(authority.certificate).decode()
    service = {"namespace": "team", "name": "hooks", "path": "/x"}
    await serving.configure(clientConfig={"service": service, "caBundle": bundle})
    backends = Backends(serving.place)
    serving.chain = Chain(serving.state, backends=backends)
    await serving.admit(a_reviewed_queue())
    await serving.chain.close()
    assert (len(seen), backends.asked) == (1, [("team", "hooks", 443)])
    await serving.configure(clientConfig={"service": service | {"name": "others"}, "caBundle": bundle})
    refused = await refusal_of(serving.admit(a_reviewed_queue()))
    assert "tls: failed to verify certificate: x509: " in refused.message


async def test_a_service_that_is_not_there_is_told(webhooks: Webhooks, serving: Serving) -> None:
    a_rule(webhooks, "validating", lambda _: Allowed())
    await serving.configure(clientConfig={"service": {"namespace": "team", "name": "s", "path": "/x"}})
    refused = await refusal_of(serving.admit(a_reviewed_queue()))
    assert (refused.code, refused.reason) == (500, "InternalError")
    failure = (
        'failed calling webhook "x.shoal.test": failed to call webhook: '
        'Post "https://s.team.svc:443/x?timeout=10s": service "s" not found'
    )
    assert refused.message == f"Internal error occurred: {failure}"
    assert [cause.message for cause in refused.details.causes] == [failure]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize("kind", ["mutating", "validating"])
async def test_a_webhook_that_cannot_be_reached_fails_the_request_or_is_done_without(
    webhooks: Webhooks, serving: Serving, kind: str, policy: str
) -> None:
    a_rule(webhooks, kind, lambda _: Allowed())
    port = free_port()
    await serving.configure(clientConfig={"url": f"https://127.0.0.1:{port}/x"}, failurePolicy=policy, timeoutSeconds=3)
    doing = serving.admit(a_reviewed_queue())
    if policy == "Ignore":
        await doing
        return
    refused = await refusal_of(doing)
    assert (refused.code, refused.reason) == (500, "InternalError")
    assert refused.message == (
        'Internal error occurred: failed calling webhook "x.shoal.test": failed to call webhook: '
        f'Post "https://127.0.0.1:{port}/x?timeout=3s": dial tcp 127.0.0.1:{port}: connect: connection refused'
    )


async def test_a_webhook_that_nobody_vouches_for_is_not_believed(webhooks: Webhooks, serving: Serving) -> None:
    seen = a_rule(webhooks, "validating", lambda _: Allowed())
    await serving.configure()
    await serving.configure(clientConfig={"url": f"https://{serving.place}/x"})
    refused = await refusal_of(serving.admit(a_reviewed_queue()))
    assert refused.message.endswith("tls: failed to verify certificate: x509: certificate signed by unknown authority")
    assert not seen


async def test_a_webhook_with_side_effects_is_not_asked_in_a_dry_run(webhooks: Webhooks, serving: Serving) -> None:
    seen = a_rule(webhooks, "validating", lambda _: Allowed())
    await serving.configure(sideEffects="Some")
    refused = await refusal_of(serving.admit(a_reviewed_queue(), dry_run=True))
    assert (refused.code, refused.message) == (400, 'admission webhook "x.shoal.test" does not support dry run')
    for harmless in ("None", "NoneOnDryRun"):
        await serving.configure(sideEffects=harmless)
        await serving.admit(a_reviewed_queue(), dry_run=True)
    assert [each.dry_run for each in seen] == [True, True]


async def test_a_patch_that_does_not_fit_fails_the_request_whatever_the_policy(
    webhooks: Webhooks, serving: Serving
) -> None:
    a_rule(webhooks, "mutating", lambda _: Patched([{"op": "add", "path": "/nope/x", "value": 1}]))
    await serving.configure(failurePolicy="Ignore")
    refused = await refusal_of(serving.admit(a_reviewed_queue()))
    assert refused.message == (
        'Internal error occurred: add operation does not apply: doc is missing path: "/nope/x": missing value'
    )


async def test_a_deletion_cannot_be_patched(webhooks: Webhooks, serving: Serving) -> None:
    a_rule(webhooks, "mutating", raise_weight, operations=["DELETE"])
    await serving.configure()
    refused = await refusal_of(serving.chain.mutate(deleting(QUEUE, a_reviewed_queue())))
    assert refused.message == (
        'Internal error occurred: admission webhook "x.shoal.test" attempted to modify the object, '
        "which is not supported for this operation"
    )


async def test_without_webhooks_nothing_is_asked() -> None:
    chain = Chain(Memory(a_namespace()))
    request = creating(CONFIG_MAP, {"metadata": {"name": "m", "namespace": "team"}})
    await chain.mutate(request)
    await chain.validate(request)
    assert request.object == {"metadata": {"name": "m", "namespace": "team"}}


PATCH = base64.b64encode(b'[{"op":"add","path":"/spec/weight","value":5}]').decode()


@pytest.mark.parametrize(
    ("kind", "response", "problem"),
    [
        pytest.param("validating", None, "webhook response was absent", id="no response"),
        pytest.param(
            "validating", {"uid": "z", "allowed": True}, 'expected response.uid="UID", got "z"', id="other uid"
        ),
        pytest.param(
            "validating",
            {"allowed": True, "patch": PATCH},
            "validating webhook may not return response.patch",
            id="patch",
        ),
        pytest.param(
            "validating",
            {"allowed": True, "patchType": "JSONPatch"},
            "validating webhook may not return response.patchType",
            id="patch type",
        ),
        pytest.param(
            "mutating",
            {"allowed": True, "patch": PATCH},
            "webhook returned response.patch but not response.patchType",
            id="patch without its type",
        ),
        pytest.param(
            "mutating",
            {"allowed": True, "patchType": "JSONPatch"},
            "webhook returned response.patchType but not response.patch",
            id="type without a patch",
        ),
    ],
)
async def test_an_answer_that_makes_no_sense_is_a_failure(
    pair: KeyPair, authority: KeyPair, kind: str, response: Any, problem: str
) -> None:
    uids = []

    async def handler(request: web.Request) -> web.Response:
        review = await request.json()
        uids.append(review["request"]["uid"])
        said = None if response is None else {"uid": uids[0]} | response
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": said})

    async with answering(handler, pair, authority, kind) as serving:
        refused = await refusal_of(serving.admit(a_reviewed_queue()))
    assert refused.message == (
        'Internal error occurred: failed calling webhook "x.shoal.test": received invalid webhook response: '
        + problem.replace("UID", uids[0])
    )


@pytest.mark.parametrize(
    ("code", "body", "problem"),
    [
        pytest.param(404, "nope", "the server could not find the requested resource", id="not found"),
        pytest.param(
            500, "ouch", 'an error on the server ("ouch") has prevented the request from succeeding', id="a fault"
        ),
        pytest.param(503, "", "the server is currently unable to handle the request", id="unavailable"),
        pytest.param(
            403, '{"kind":"Status","status":"Failure","message":"who are you"}', "who are you", id="a Status of its own"
        ),
    ],
)
async def test_an_http_error_is_a_failure(
    pair: KeyPair, authority: KeyPair, code: int, body: str, problem: str
) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=code, text=body)

    async with answering(handler, pair, authority, "validating") as serving:
        refused = await refusal_of(serving.admit(a_reviewed_queue()))
    assert refused.message == (
        f'Internal error occurred: failed calling webhook "x.shoal.test": failed to call webhook: {problem}'
    )


async def test_a_webhook_whose_process_ends_is_asked_again_over_a_new_connection(
    pair: KeyPair, authority: KeyPair
) -> None:
    asked: list[int] = []

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        asked.append(request.transport.get_extra_info("peername")[1])
        if len(asked) == 2:
            # As the end of a process does it: without a farewell, for a client that is waiting for an answer.
            request.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
            request.transport.abort()
        uid = (await request.json())["request"]["uid"]
        response = {"uid": uid, "allowed": True}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})

    async with answering(handler, pair, authority, "validating") as serving:
        await serving.admit(a_reviewed_queue())
        await serving.admit(a_reviewed_queue())
    first, cut, again = asked
    assert first == cut != again


async def test_a_webhook_that_always_hangs_up_is_told(pair: KeyPair, authority: KeyPair) -> None:
    asked: list[bool] = []

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        asked.append(True)
        request.transport.abort()
        return web.Response()

    async with answering(handler, pair, authority, "validating") as serving:
        refused = await refusal_of(serving.admit(a_reviewed_queue()))
    assert 'failed calling webhook "x.shoal.test": failed to call webhook: Post' in refused.message
    assert len(asked) == 2


async def test_a_webhook_has_so_long_to_answer(pair: KeyPair, authority: KeyPair) -> None:
    async def handler(request: web.Request) -> web.Response:
        assert request.query["timeout"] == "1s"
        await asyncio.Event().wait()
        raise AssertionError

    async with answering(handler, pair, authority, "validating") as serving:
        refused = await refusal_of(serving.admit(a_reviewed_queue()))
        assert refused.message.endswith('?timeout=1s": context deadline exceeded')


async def test_a_rejection_below_400_is_made_one(pair: KeyPair, authority: KeyPair) -> None:
    async def handler(request: web.Request) -> web.Response:
        uid = (await request.json())["request"]["uid"]
        response = {"uid": uid, "allowed": False, "status": {"code": 200, "status": "Success"}}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})

    async with answering(handler, pair, authority, "validating") as serving:
        refused = await refusal_of(serving.admit(a_reviewed_queue()))
    assert (refused.code, refused.status) == (400, "Failure")
    assert refused.message == 'admission webhook "x.shoal.test" denied the request without explanation'
