"""The webhooks as API servers call them: by URL on loopback, trusted by the injected bundle alone."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace as with_fields
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from shoal.api.meta.objects import Document
from shoal.api.meta.resource import Resource
from shoal.kube.admission import (
    AdmissionServer,
    Change,
    Denied,
    Finding,
    Injector,
    MemoryStore,
    Policy,
    SecretStore,
    SelfMade,
    Serving,
    UrlEndpoint,
    Warn,
    Webhooks,
    conversion_section,
    immutable,
    invalid,
    mutating_configuration,
    required,
    validating_configuration,
)
from shoal.kube.admission.configuration import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_CONFIGURATIONS,
    VALIDATING_CONFIGURATIONS,
)
from shoal.kube.admission.stores import SECRETS
from shoal.kube.backoff import Backoff
from shoal.kube.certificates import leaf_of, separate
from shoal.kube.client import Client
from shoal.kube.errors import ApiError, Forbidden, Invalid, NotFound
from shoal.kube.manager import Manager, running
from shoal.kube.transport import Request
from tests.support.builders.reviews import QUEUES, Queue
from tests.support.clusters.client import client_to, install, transport_to, until
from tests.support.clusters.engines import Engine, on_the_real_one_alone
from tests.support.waiting import eventually

LOOPBACK = Policy(names=("127.0.0.1",))


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[Client]:
    async with client_to(engine.kubeconfig) as client:
        yield client


@pytest.fixture
async def queues(client: Client) -> Resource[Queue]:
    """The kind under review; it stays, since API servers hold back the first objects of a new kind for two seconds."""
    await install(client, a_definition(QUEUES, "v2"))
    return QUEUES


def a_definition(resource: Resource[Any], *versions: str) -> dict[str, Any]:
    """A definition that lets everything through, and stores the last of its versions."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": resource.full_name},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()},
            "versions": [
                {"name": version, "served": True, "storage": version == versions[-1], "schema": schema}
                for version in versions
            ],
        },
    }


def rules(queues: Resource[Queue], namespace: str) -> Webhooks:
    """Webhooks that are called for one namespace, so that no other test meets them."""
    webhooks = Webhooks()
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}

    @webhooks.defaulting(queues, namespace_selector=here)
    def default_priority(queue: Queue) -> Queue:
        return replace(
            queue, spec=replace(queue.spec, priority=50 if queue.spec.priority is None else queue.spec.priority)
        )

    @webhooks.validating(queues, namespace_selector=here, operations=["CREATE", "UPDATE", "DELETE"])
    def sound(change: Change[Queue]) -> Iterable[Finding]:
        if change.operation == "DELETE":
            if change.object.spec.weight > 1:
                yield Denied("it weighs too much to be deleted")
            return
        if change.object.spec.weight == 7:
            yield Warn("seven is unlucky")
        if (change.object.spec.priority or 0) < 0:
            yield invalid("spec.priority", change.object.spec.priority, "must be at least 0")
        if not change.object.spec.parent:
            yield required("spec.parent")
        if change.old is not None and change.old.spec.parent != change.object.spec.parent:
            yield immutable("spec.parent", change.object.spec.parent)

    return webhooks


@asynccontextmanager
async def registered(
    client: Client,
    webhooks: Webhooks,
    server: AdmissionServer,
    source: Any,
    probe: Resource[Queue],
    namespace: str,
) -> AsyncIterator[Injector]:
    """The server runs, the API server knows of it, and has begun to call it."""
    name = f"shoal-test-{secrets.token_hex(4)}"
    injector = Injector(client, mutating=[name], validating=[name])
    quick = Backoff(initial=0.02, cap=0.2)
    task = asyncio.create_task(server.run(source, inject=injector.inject, backoff=quick))
    try:
        await eventually(lambda: task.done() or not server.check())
        at = UrlEndpoint(f"https://127.0.0.1:{server.port}")
        await client.create(MUTATING_CONFIGURATIONS, mutating_configuration(name, webhooks, at))
        await client.create(VALIDATING_CONFIGURATIONS, validating_configuration(name, webhooks, at))
        try:

            async def is_called() -> bool:
                try:
                    made = await client.create(probe, a_new_queue("probe", parent="root"), namespace, dry_run=True)
                except ApiError as error:
                    if error.code != 500:
                        raise
                    return False
                return made.spec.priority == 50

            await until(is_called)
            yield injector
        finally:
            await client.delete(MUTATING_CONFIGURATIONS, name)
            await client.delete(VALIDATING_CONFIGURATIONS, name)
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), task.exception()


@pytest.fixture
async def hooked(client: Client, queues: Resource[Queue], namespace: str) -> AsyncIterator[AdmissionServer]:
    webhooks = rules(queues, namespace)
    server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
    source = SelfMade(MemoryStore(), LOOPBACK, interval=0.2)
    async with registered(client, webhooks, server, source, queues, namespace):
        yield server


def a_new_queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


@pytest.mark.usefixtures("hooked")
class TestRules:
    async def test_defaults_are_stored_and_unknown_fields_are_kept(
        self, client: Client, queues: Resource[Queue], namespace: str
    ) -> None:
        await client.create(queues, a_new_queue("a", parent="root", colour={"r": 1}), namespace)
        stored = await client.get(queues.documents(), "a", namespace)
        assert stored.content["spec"] == {"parent": "root", "colour": {"r": 1}, "priority": 50}

    async def test_a_refusal_names_every_field_in_kubernetes_words(
        self, client: Client, queues: Resource[Queue], namespace: str
    ) -> None:
        with pytest.raises(Invalid) as refused:
            await client.create(queues, a_new_queue("a", priority=-1), namespace)
        assert refused.value.message == (
            f'admission webhook "validate.queue.v2.{queues.group}" denied the request: Queue.{queues.group} "a" is '
            "invalid: [spec.priority: Invalid value: -1: must be at least 0, spec.parent: Required value]"
        )
        assert [(cause.field, cause.reason) for cause in refused.value.causes] == [
            ("spec.priority", "FieldValueInvalid"),
            ("spec.parent", "FieldValueRequired"),
        ]

    async def test_an_update_is_compared_with_what_is_stored(
        self, client: Client, queues: Resource[Queue], namespace: str
    ) -> None:
        await client.create(queues, a_new_queue("a", parent="root"), namespace)
        with pytest.raises(Invalid, match="field is immutable"):
            await client.merge_patch(queues, "a", {"spec": {"parent": "other"}}, namespace)
        await client.merge_patch(queues, "a", {"spec": {"colour": "blue"}}, namespace)

    async def test_a_deletion_can_be_refused(self, client: Client, queues: Resource[Queue], namespace: str) -> None:
        await client.create(queues, a_new_queue("a", parent="root", weight=2), namespace)
        with pytest.raises(Forbidden, match="weighs too much"):
            await client.delete(queues, "a", namespace)
        await client.merge_patch(queues, "a", {"spec": {"weight": 1}}, namespace)
        await client.delete(queues, "a", namespace)

    async def test_a_warning_reaches_the_one_who_asked(
        self, client: Client, queues: Resource[Queue], namespace: str
    ) -> None:
        body = {"apiVersion": queues.api_version, "kind": "Queue"} | a_new_queue("a", parent="root", weight=7)
        request = Request(method="POST", path=queues.path(namespace), body=msgspec.json.encode(body))
        answer = await client.transport.send(request)
        assert answer.status == 201
        assert answer.headers["Warning"] == '299 - "seven is unlucky"'

    async def test_a_wrong_type_is_refused_with_its_field(
        self, client: Client, queues: Resource[Queue], namespace: str
    ) -> None:
        with pytest.raises(Invalid, match=r"spec\.weight: Invalid value: Expected `int`, got `str`"):
            await client.create(queues, a_new_queue("a", parent="root", weight="heavy"), namespace)


async def test_a_rule_that_came_later_does_not_keep_a_dying_object_alive(
    client: Client, queues: Resource[Queue], namespace: str
) -> None:
    broken = a_new_queue("a")
    broken["metadata"]["finalizers"] = ["shoal.test/cleanup"]
    await client.create(queues, broken, namespace)
    webhooks = rules(queues, namespace)
    server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
    source = SelfMade(MemoryStore(), LOOPBACK, interval=0.2)
    async with registered(client, webhooks, server, source, queues, namespace):
        with pytest.raises(Invalid):
            await client.merge_patch(queues, "a", {"spec": {"colour": "blue"}}, namespace)
        await client.delete(queues, "a", namespace)
        await client.merge_patch(queues, "a", {"metadata": {"finalizers": None}}, namespace)
        with pytest.raises(NotFound):
            await client.get(queues, "a", namespace)


class TestCertificates:
    async def test_replicas_that_start_at_once_share_one_secret(self, client: Client, namespace: str) -> None:
        sources = [SelfMade(SecretStore(client, namespace=namespace), LOOPBACK) for _ in range(5)]
        first, *others = await asyncio.gather(*(source.current() for source in sources))
        assert all(other == first for other in others)
        secret = await client.get(SECRETS, "shoal-webhook-cert", namespace)
        assert secret.content["type"] == "kubernetes.io/tls"
        assert sorted(secret.content["data"]) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]

    async def test_a_missing_namespace_is_said_and_not_tried_for_ever(self, client: Client) -> None:
        source = SelfMade(SecretStore(client, namespace="no-such-namespace"), LOOPBACK)
        with pytest.raises(NotFound, match="no-such-namespace"):
            await asyncio.wait_for(source.current(), 10)

    async def test_no_request_fails_while_authority_and_certificate_are_exchanged(
        self, client: Client, queues: Resource[Queue], namespace: str
    ) -> None:
        # The certificates must hold for the API server's clock, so ours comes from the past and ends in the present.
        policy = Policy(
            names=LOOPBACK.names,
            authority_lifetime=timedelta(days=90),
            serving_lifetime=timedelta(days=80),
            settle=timedelta(hours=1),
        )
        now = datetime.now(UTC)
        clock = [now - timedelta(days=61)]
        store = SecretStore(client, namespace=namespace)
        source = SelfMade(store, policy, interval=0.05, clock=lambda: clock[0])
        webhooks = rules(queues, namespace)
        server = WatchedServer(webhooks, host="127.0.0.1", port=0)
        done, at_once = 0, asyncio.Semaphore(1)

        async with registered(client, webhooks, server, source, queues, namespace) as injector:
            assert len(set(server.shown)) == 1

            async def one(number: int) -> None:
                nonlocal done
                async with at_once:
                    made = await client.create(queues, a_new_queue(f"q{number}", parent="root"), namespace)
                    assert made.spec.priority == 50
                    done += 1

            async def step(clock_at: datetime, requests: int, authorities: int) -> Serving:
                """Lets time pass while requests stream; more at once each time, which takes new handshakes."""
                clock[0] = clock_at
                at_once.release()
                first = done
                await asyncio.gather(*(one(first + number) for number in range(requests)))

                async def is_settled() -> bool:
                    serving = await source.current()
                    return await injector.inject(serving.authorities) == 0

                await until(is_settled)
                serving = await source.current()
                assert len(separate(serving.authorities)) == authorities
                first = done
                await asyncio.gather(*(one(first + number) for number in range(requests)))
                return serving

            joined = await step(now - timedelta(hours=2), 20, authorities=2)
            served = await step(now - timedelta(hours=1), 20, authorities=2)
            assert served.pair != joined.pair
            left = await step(now, 20, authorities=1)
            assert left.pair == served.pair
            assert done == 120
            assert set(server.shown) == {leaf_of(each.pair.certificate).serial_number for each in (joined, served)}

    async def test_a_bundle_that_is_removed_and_a_secret_that_is_renewed_are_noticed_at_once(
        self, engine: Engine, client: Client, queues: Resource[Queue], namespace: str
    ) -> None:
        """The whole as a manager runs it; nothing is asked for in intervals here."""
        name = f"shoal-test-{secrets.token_hex(4)}"
        webhooks = rules(queues, namespace)
        async with transport_to(engine.kubeconfig) as transport:
            manager = Manager(transport, name="webhooks")
            server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
            store = SecretStore(manager.client, namespace=namespace)
            injector = Injector(manager.client, validating=[name])
            source = SelfMade(store, LOOPBACK, interval=3600)
            injector.follow(manager.cache, server.look_again)
            store.follow(manager.cache, server.look_again)
            manager.add_service(partial(server.run, source, inject=injector.inject))
            manager.probes.add_ready("admission", server.check)
            async with running(manager):
                await eventually(lambda: not server.check())
                at = UrlEndpoint(f"https://127.0.0.1:{server.port}")
                configurations = VALIDATING_CONFIGURATIONS
                await client.create(configurations, validating_configuration(name, webhooks, at))

                async def bundle() -> str:
                    found = await client.get(configurations, name)
                    return str(found.content["webhooks"][0]["clientConfig"].get("caBundle", ""))

                first = await until(bundle)
                remove = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
                await client.json_patch(configurations, name, remove)
                assert await until(bundle) == first
                await client.delete(SECRETS, "shoal-webhook-cert", namespace)

                async def is_another() -> bool:
                    return await bundle() not in ("", first)

                await until(is_another)
                await client.delete(configurations, name)

    async def test_a_patch_whose_test_fails_is_refused_as_the_injector_expects(
        self, client: Client, queues: Resource[Queue]
    ) -> None:
        operations = [{"op": "test", "path": "/spec/group", "value": "another"}]
        with pytest.raises(Invalid):
            await client.json_patch(CUSTOM_RESOURCE_DEFINITIONS, queues.full_name, operations)


class WatchedServer(AdmissionServer):
    """Notes the serial number of the certificate that each handshake is shown."""

    def __init__(self, webhooks: Webhooks, **more: Any) -> None:
        super().__init__(webhooks, **more)
        self.shown: list[int] = []

    def _choose_context(self, handshake: ssl.SSLObject, name: str | None, listening: ssl.SSLContext) -> None:
        super()._choose_context(handshake, name, listening)
        assert self._pair is not None
        self.shown.append(leaf_of(self._pair.certificate).serial_number)


@on_the_real_one_alone
async def test_objects_are_read_and_written_in_either_version(client: Client, namespace: str) -> None:
    old: Resource[Document] = with_fields(QUEUES.documents(), group=f"q{secrets.token_hex(4)}.shoal.test", version="v1")
    new = with_fields(old, version="v2")
    webhooks = Webhooks()

    @webhooks.converting(old, to=new)
    def forwards(queue: dict[str, Any]) -> dict[str, Any]:
        queue["spec"]["priority"] = queue["spec"].pop("prio")
        return queue

    @webhooks.converting(new, to=old)
    def backwards(queue: dict[str, Any]) -> dict[str, Any]:
        queue["spec"]["prio"] = queue["spec"].pop("priority")
        return queue

    server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
    source = SelfMade(MemoryStore(), LOOPBACK)
    serving = await source.current()
    server.use(serving.pair)
    await server.start()
    try:
        definition = a_definition(new, "v1", "v2")
        definition["spec"]["conversion"] = conversion_section(UrlEndpoint(f"https://127.0.0.1:{server.port}"))
        await install(client, definition)
        injector = Injector(client, definitions=[new.full_name])
        assert await injector.inject(serving.authorities) == 1
        assert await injector.inject(serving.authorities) == 0

        async def made() -> bool:
            try:
                await client.create(old, a_new_queue("a", prio=3), namespace)
            except ApiError as error:
                if error.code not in {404, 500}:  # the kind, or its authority, is not known yet
                    raise
                return False
            return True

        await until(made)
        assert (await client.get(new, "a", namespace)).content["spec"] == {"priority": 3}
        assert (await client.get(old, "a", namespace)).content["spec"] == {"prio": 3}
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, new.full_name)
    finally:
        await server.stop()
