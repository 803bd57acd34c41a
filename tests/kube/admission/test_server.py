"""The server over real HTTPS, called as an API server calls it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvloop
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509 import CertificateBuilder, random_serial_number
from msgspec.structs import replace

from shoal.kube.admission import (
    AdmissionServer,
    Change,
    FieldProblem,
    Finding,
    FromFiles,
    MemoryStore,
    Policy,
    SelfMade,
    Serving,
    Warn,
    Webhooks,
    invalid,
)
from shoal.kube.admission.endpoint import seconds_allowed
from shoal.kube.backoff import Backoff
from shoal.kube.certificates import (
    CertificateError,
    KeyPair,
    bundle,
    leaf_of,
    load_into,
    make_authority,
    make_client,
    make_serving,
)
from shoal.kube.errors import ConnectionFault
from tests.support.builders.reviews import QUEUES, Queue, a_review, a_reviewed_queue
from tests.support.waiting import eventually

MUTATE = "/mutate-shoal-test-v2-queue"
VALIDATE = "/validate-shoal-test-v2-queue"
DAY = timedelta(days=1)


def an_authority() -> KeyPair:
    return make_authority("test", now=datetime.now(UTC), lifetime=30 * DAY)


def a_pair(authority: KeyPair) -> KeyPair:
    return make_serving(authority, ["localhost", "127.0.0.1"], now=datetime.now(UTC), lifetime=DAY)


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return an_authority()


@pytest.fixture(scope="module")
def pair(authority: KeyPair) -> KeyPair:
    return a_pair(authority)


@pytest.fixture
def webhooks() -> Webhooks:
    webhooks = Webhooks()

    @webhooks.defaulting(QUEUES)
    def default_priority(queue: Queue) -> Queue:
        return replace(queue, spec=replace(queue.spec, priority=queue.spec.priority or 50))

    @webhooks.validating(QUEUES)
    def priority_in_range(change: Change[Queue]) -> Iterable[Finding]:
        yield Warn("priorities will go")
        if (change.object.spec.priority or 0) < 0:
            yield invalid("spec.priority", change.object.spec.priority, "must be at least 0")

    @webhooks.validating(QUEUES, path="/faulty")
    def faulty(change: Change[Queue]) -> list[FieldProblem]:
        raise LookupError("the tree is gone")

    @webhooks.validating(QUEUES, path="/slow")
    async def slow(change: Change[Queue]) -> list[FieldProblem]:
        await asyncio.Event().wait()
        return []

    @webhooks.converting(QUEUES, to=QUEUES.view(Queue))
    def unchanged(queue: dict[str, Any]) -> dict[str, Any]:
        return queue

    return webhooks


@asynccontextmanager
async def serving(server: AdmissionServer, pair: KeyPair) -> AsyncIterator[AdmissionServer]:
    server.use(pair)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@pytest.fixture
async def server(webhooks: Webhooks, pair: KeyPair) -> AsyncIterator[AdmissionServer]:
    async with serving(AdmissionServer(webhooks, host="127.0.0.1", port=0, body_limit=100_000), pair) as server:
        yield server


class Caller:
    """Calls the server as an API server does, trusting these authorities alone."""

    def __init__(self, server: AdmissionServer, authorities: bytes) -> None:
        self._base = f"https://127.0.0.1:{server.port}"
        self.trust = ssl.create_default_context(cadata=authorities.decode())
        self._session = aiohttp.ClientSession()

    async def __aenter__(self) -> Caller:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def review(self, path: str, review: dict[str, Any]) -> dict[str, Any]:
        async with self._session.post(f"{self._base}{path}", json=review, ssl=self.trust) as answer:
            assert answer.status == 200, await answer.text()
            body: dict[str, Any] = await answer.json()
            assert (body["apiVersion"], body["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
            assert body["response"]["uid"] == review["request"]["uid"]
            response: dict[str, Any] = body["response"]
            return response

    async def send(self, path: str, body: bytes, *, content_type: str = "application/json") -> tuple[int, str]:
        headers = {"Content-Type": content_type}
        async with self._session.post(f"{self._base}{path}", data=body, headers=headers, ssl=self.trust) as answer:
            return answer.status, await answer.text()

    async def get(self, path: str) -> int:
        async with self._session.get(f"{self._base}{path}", ssl=self.trust) as answer:
            return answer.status

    async def certificate(self) -> bytes:
        """The certificate that a new connection is shown, as DER."""
        _, writer = await asyncio.open_connection(
            "127.0.0.1", int(self._base.rpartition(":")[2]), ssl=self.trust, server_hostname="127.0.0.1"
        )
        shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
        return shown


@pytest.fixture
async def caller(server: AdmissionServer, authority: KeyPair) -> AsyncIterator[Caller]:
    async with Caller(server, authority.certificate) as caller:
        yield caller


def der(pair: KeyPair) -> bytes:
    return leaf_of(pair.certificate).public_bytes(serialization.Encoding.DER)


class TestReviews:
    async def test_a_default_comes_back_as_a_patch(self, caller: Caller) -> None:
        response = await caller.review(MUTATE, a_review(a_reviewed_queue(colour="blue")))
        assert response["allowed"] is True
        assert response["patchType"] == "JSONPatch"

    async def test_a_problem_comes_back_as_a_status_with_causes_and_warnings(self, caller: Caller) -> None:
        response = await caller.review(VALIDATE, a_review(a_reviewed_queue(priority=-1)))
        assert response["allowed"] is False
        assert response["warnings"] == ["priorities will go"]
        status = response["status"]
        assert (status["code"], status["reason"]) == (422, "Invalid")
        assert status["details"]["causes"] == [
            {
                "field": "spec.priority",
                "reason": "FieldValueInvalid",
                "message": "Invalid value: -1: must be at least 0",
            }
        ]

    async def test_a_rule_that_raises_refuses_is_counted_and_harms_no_other(
        self, caller: Caller, server: AdmissionServer
    ) -> None:
        response = await caller.review("/faulty", a_review(a_reviewed_queue()))
        assert response["allowed"] is False
        assert response["status"]["code"] == 500
        assert "LookupError: the tree is gone" in response["status"]["message"]
        assert sample(server, "controller_runtime_webhook_panics_total") == 1
        assert (await caller.review(VALIDATE, a_review(a_reviewed_queue())))["allowed"] is True

    async def test_a_rule_is_given_no_more_time_than_the_api_server_has(self, caller: Caller) -> None:
        response = await caller.review("/slow?timeout=50ms", a_review(a_reviewed_queue()))
        assert response["allowed"] is False
        assert response["status"]["code"] == 504
        assert "within 0.05 s" in response["status"]["message"]

    async def test_reviews_are_answered_at_the_same_time(self, caller: Caller, server: AdmissionServer) -> None:
        waiting = asyncio.create_task(caller.review("/slow?timeout=5s", a_review(a_reviewed_queue())))
        await eventually(lambda: sample(server, "controller_runtime_webhook_requests_in_flight", webhook="/slow") == 1)
        answers = await asyncio.gather(
            *(caller.review(VALIDATE, a_review(a_reviewed_queue(), uid=str(n))) for n in range(50))
        )
        assert all(answer["allowed"] for answer in answers)
        waiting.cancel()

    async def test_conversions_are_answered(self, caller: Caller) -> None:
        request = {"uid": "1", "desiredAPIVersion": "shoal.test/v2", "objects": [a_reviewed_queue()]}
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "request": request,
            # As a real API server sends it.
            "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
        }
        async with caller._session.post(f"{caller._base}/convert", json=body, ssl=caller.trust) as answer:
            response = (await answer.json())["response"]
        assert response == {
            "uid": "1",
            "convertedObjects": [a_reviewed_queue()],
            "result": {"status": "Success", "message": ""},
        }


class TestBadInput:
    @pytest.mark.parametrize(
        ("body", "problem"),
        [
            pytest.param(b"", "no AdmissionReview", id="empty"),
            pytest.param(b"{", "no AdmissionReview", id="cut off"),
            pytest.param(b"[]", "no AdmissionReview", id="a list"),
            pytest.param(b'{"kind":"Pod","apiVersion":"v1"}', "expected AdmissionReview", id="another kind"),
            pytest.param(
                b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"}', "v1beta1", id="another version"
            ),
            pytest.param(
                b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', "no request", id="no request"
            ),
            pytest.param(
                b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"operation":"MELT"}}',
                "no AdmissionReview",
                id="unknown operation",
            ),
        ],
    )
    async def test_what_is_no_review_is_a_bad_request(
        self, caller: Caller, server: AdmissionServer, body: bytes, problem: str
    ) -> None:
        status, text = await caller.send(VALIDATE, body)
        assert status == 400
        assert problem in text
        assert sample(server, "controller_runtime_webhook_requests_total", webhook=VALIDATE, code="400") == 1

    @pytest.mark.parametrize("body", [b"{", b"{}"], ids=["cut off", "no review"])
    async def test_what_is_no_conversion_is_a_bad_request(self, caller: Caller, body: bytes) -> None:
        assert (await caller.send("/convert", body))[0] == 400

    async def test_only_json_is_read(self, caller: Caller) -> None:
        assert (await caller.send(VALIDATE, b"{}", content_type="text/plain"))[0] == 415
        assert (await caller.send(VALIDATE, b"{}", content_type="application/json; charset=utf-8"))[0] == 400

    async def test_a_body_past_the_limit_is_refused(self, caller: Caller) -> None:
        status, text = await caller.send(VALIDATE, b" " * 100_001)
        assert status == 413
        assert "100000" in text

    async def test_other_paths_and_methods_are_not_served(self, caller: Caller) -> None:
        assert (await caller.send("/elsewhere", b"{}"))[0] == 404
        assert await caller.get(VALIDATE) == 405

    async def test_an_http_request_without_tls_harms_nothing(self, caller: Caller, server: AdmissionServer) -> None:
        with pytest.raises(aiohttp.ClientError):
            await caller._session.get(f"http://127.0.0.1:{server.port}/healthz")
        assert await caller.get("/healthz") == 200

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            pytest.param("10s", 10.0, id="seconds"),
            pytest.param("9.5s", 9.5, id="a fraction"),
            pytest.param("250ms", 0.25, id="milliseconds"),
            pytest.param("", 30.0, id="nothing said"),
            pytest.param("soon", 30.0, id="nonsense"),
            pytest.param("99s", 30.0, id="more than there is"),
        ],
    )
    def test_the_time_allowed_is_read_off_the_query(self, text: str, seconds: float) -> None:
        assert seconds_allowed(text) == seconds


class TestMetricsAndProbes:
    async def test_requests_are_counted_under_controller_runtimes_names(
        self, caller: Caller, server: AdmissionServer
    ) -> None:
        assert sample(server, "controller_runtime_webhook_requests_total", webhook=MUTATE, code="200") == 0
        await caller.review(MUTATE, a_review(a_reviewed_queue()))
        await caller.review(VALIDATE, a_review(a_reviewed_queue(priority=-1)))
        for path in (MUTATE, VALIDATE):
            assert sample(server, "controller_runtime_webhook_requests_total", webhook=path, code="200") == 1
            assert sample(server, "controller_runtime_webhook_latency_seconds_count", webhook=path) == 1
            assert sample(server, "controller_runtime_webhook_requests_in_flight", webhook=path) == 0

    async def test_probes_are_answered(self, caller: Caller) -> None:
        assert await caller.get("/healthz") == 200
        assert await caller.get("/readyz") == 200

    async def test_it_is_ready_once_it_listens(self, webhooks: Webhooks, pair: KeyPair) -> None:
        server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
        assert "waits for its certificate" in server.check()
        async with serving(server, pair):
            assert server.check() == ""

    async def test_it_does_not_start_without_a_certificate(self, webhooks: Webhooks) -> None:
        with pytest.raises(CertificateError, match="without a certificate"):
            await AdmissionServer(webhooks).start()


class TestCertificates:
    async def test_a_client_that_trusts_another_authority_is_not_fooled(self, server: AdmissionServer) -> None:
        async with Caller(server, an_authority().certificate) as stranger:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await stranger.review(VALIDATE, a_review(a_reviewed_queue()))

    async def test_a_new_handshake_sees_the_new_certificate_and_an_old_connection_goes_on(
        self, server: AdmissionServer, caller: Caller, authority: KeyPair, pair: KeyPair
    ) -> None:
        assert await caller.certificate() == der(pair)
        await caller.review(VALIDATE, a_review(a_reviewed_queue()))
        (connection,) = open_connections(caller)
        renewed = a_pair(authority)
        server.use(renewed)
        await caller.review(VALIDATE, a_review(a_reviewed_queue()))
        assert open_connections(caller) == [connection], "the connection was dropped"
        assert await caller.certificate() == der(renewed)

    @pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
    def test_a_client_with_both_authorities_never_fails_while_they_are_exchanged(
        self, webhooks: Webhooks, run: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        old, new = an_authority(), an_authority()

        async def exchange() -> None:
            server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
            both = bundle(old.certificate, new.certificate)
            seen = set()
            async with serving(server, a_pair(old)), Caller(server, both) as caller:

                async def call_anew(number: int) -> None:
                    if number % 10 == 5:
                        server.use(a_pair(new if number > 50 else old))
                    seen.add(await caller.certificate())
                    assert (await caller.review(VALIDATE, a_review(a_reviewed_queue(), uid=str(number))))["allowed"]

                for start in range(0, 100, 4):
                    await asyncio.gather(*(call_anew(number) for number in range(start, start + 4)))
            assert len(seen) == 11

        run(exchange())

    async def test_an_ecdsa_certificate_does_not_linger_beside_an_rsa_one(
        self, server: AdmissionServer, pair: KeyPair, authority: KeyPair
    ) -> None:
        as_rsa = with_rsa_key(pair, authority)
        server.use(as_rsa)
        async with Caller(server, authority.certificate) as caller:
            assert await caller.certificate() == der(as_rsa)

    async def test_a_certificate_that_does_not_load_leaves_the_old_one_serving(
        self, server: AdmissionServer, caller: Caller, pair: KeyPair
    ) -> None:
        with pytest.raises(CertificateError):
            server.use(KeyPair(pair.certificate, an_authority().key))
        assert await caller.certificate() == der(pair)

    async def test_only_known_clients_are_let_in_where_that_is_asked_for(
        self, webhooks: Webhooks, authority: KeyPair, pair: KeyPair
    ) -> None:
        clients = an_authority()
        server = AdmissionServer(webhooks, host="127.0.0.1", port=0, client_authorities=clients.certificate)
        async with serving(server, pair), Caller(server, authority.certificate) as caller:
            with pytest.raises(aiohttp.ClientError):
                await caller.get("/healthz")
            load_into(caller.trust, make_client(clients, "kube-apiserver", now=datetime.now(UTC), lifetime=DAY))
            assert await caller.get("/healthz") == 200


QUICK = Backoff(initial=0.005, cap=0.01)


class TestRunning:
    async def test_it_serves_and_injects_what_its_source_says_until_cancelled(self, webhooks: Webhooks) -> None:
        injected: list[bytes] = []

        async def inject(authorities: bytes) -> None:
            injected.append(authorities)

        server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
        source = SelfMade(MemoryStore(), Policy(names=("127.0.0.1",)), interval=0.01)
        async with running(server, source, inject=inject):
            await eventually(lambda: len(injected) > 2)
            async with Caller(server, injected[0]) as caller:
                assert (await caller.review(VALIDATE, a_review(a_reviewed_queue())))["allowed"]
            assert len(set(injected)) == 1
            assert sample(server, "certwatcher_read_certificate_total") > 2
        assert server.check() != ""

    async def test_a_swapped_directory_is_served_without_a_restart(self, webhooks: Webhooks, tmp_path: Path) -> None:
        old, new = an_authority(), an_authority()
        lay(tmp_path, a_pair(old))
        server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
        async with running(server, FromFiles(tmp_path, interval=0.01)):
            async with Caller(server, old.certificate) as caller:
                assert await caller.get("/healthz") == 200
            renewed = a_pair(new)
            (tmp_path / "tls.crt").write_bytes(renewed.certificate)
            await eventually(lambda: sample(server, "certwatcher_read_certificate_errors_total") > 0)
            (tmp_path / "tls.key").write_bytes(renewed.key)
            reads = sample(server, "certwatcher_read_certificate_total")
            await eventually(lambda: sample(server, "certwatcher_read_certificate_total") > reads)
            async with Caller(server, new.certificate) as caller:
                assert await caller.certificate() == der(renewed)

    async def test_it_waits_for_a_certificate_and_for_an_api_server_that_is_away(
        self, webhooks: Webhooks, pair: KeyPair
    ) -> None:
        faults: list[Exception] = [ConnectionFault("refused"), CertificateError("not yet")]
        attempts = 0

        class Late:
            interval = 0.01

            async def current(self) -> Serving:
                if faults:
                    raise faults.pop(0)
                return Serving(pair=pair, authorities=b"bundle")

        async def inject(authorities: bytes) -> None:
            nonlocal attempts
            attempts += 1
            if attempts < 3:
                raise ConnectionFault("refused")

        server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
        async with running(server, Late(), inject=inject):
            await eventually(lambda: attempts > 3)
            assert server.check() == ""
            assert sample(server, "certwatcher_read_certificate_errors_total") == 2

    async def test_a_port_that_is_taken_ends_it_at_once(
        self, server: AdmissionServer, webhooks: Webhooks, pair: KeyPair
    ) -> None:
        second = AdmissionServer(webhooks, host="127.0.0.1", port=server.port)
        with pytest.raises(OSError, match="in use"):
            await second.run(SelfMade(MemoryStore(), Policy(names=("a",))))
        assert second.check() != ""

    async def test_stopping_lets_a_review_finish(self, authority: KeyPair, pair: KeyPair) -> None:
        webhooks, entered, finish = Webhooks(), asyncio.Event(), asyncio.Event()

        @webhooks.validating(QUEUES)
        async def patient(change: Change[Queue]) -> None:
            entered.set()
            await finish.wait()

        server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
        async with serving(server, pair), Caller(server, authority.certificate) as caller:
            review = asyncio.create_task(caller.review(VALIDATE, a_review(a_reviewed_queue())))
            await entered.wait()
            stopping = asyncio.create_task(server.stop())
            await asyncio.sleep(0)
            finish.set()
            assert (await review)["allowed"]
            await stopping


@asynccontextmanager
async def running(server: AdmissionServer, source: Any, **more: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(server.run(source, backoff=QUICK, **more))
    try:
        await eventually(lambda: task.done() or not server.check())
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), task.exception()


def sample(server: AdmissionServer, name: str, **labels: str) -> float:
    value = server.metrics.registry.get_sample_value(name, labels)
    assert value is not None, f"there is no {name} {labels}"
    return value


def open_connections(caller: Caller) -> list[Any]:
    connector = caller._session.connector
    assert connector is not None
    return [protocol for waiting in connector._conns.values() for protocol, _ in waiting]


def lay(directory: Path, pair: KeyPair) -> None:
    (directory / "tls.crt").write_bytes(pair.certificate)
    (directory / "tls.key").write_bytes(pair.key)


def with_rsa_key(pair: KeyPair, authority: KeyPair) -> KeyPair:
    """A certificate like the given one, for an RSA key, as other issuers make them."""
    model, issuer = leaf_of(pair.certificate), leaf_of(authority.certificate)
    key = rsa.generate_private_key(65537, 2048)
    builder = CertificateBuilder(
        issuer_name=issuer.subject,
        subject_name=model.subject,
        public_key=key.public_key(),
        serial_number=random_serial_number(),
        not_valid_before=model.not_valid_before_utc,
        not_valid_after=model.not_valid_after_utc,
        extensions=[each for each in model.extensions if each.oid.dotted_string != "2.5.29.14"],
    )
    signer = serialization.load_pem_private_key(authority.key, None)
    certificate = builder.sign(signer, hashes.SHA256())  # type: ignore[arg-type]
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
