"""Secrets that hold an account's token."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from shoal.api.core import NAMESPACES, SECRETS, SERVICE_ACCOUNTS
from shoal.api.meta import Document, now
from shoal.cluster.apiserver.loopback import LoopbackTransport
from shoal.cluster.controllers.accounts import add_accounts, signer_of
from shoal.cluster.keyring import Keyring
from shoal.kube import Manager, running
from shoal.kube.transport import Request, Response
from tests.support.clusters.client import until
from tests.support.clusters.faults import FaultyTransport
from tests.support.clusters.in_process import Cluster, writes_of

Content = dict[str, Any]
NAME, UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
TYPE = "kubernetes.io/service-account-token"


@pytest.fixture
def keyring(cluster: Cluster, tmp_path: Any) -> Keyring:
    """The keys that the server has in its data dir."""
    return Keyring(tmp_path / "server" / "pki", now=now())


@pytest.fixture
def add(keyring: Keyring) -> Any:
    def add(manager: Manager) -> None:
        add_accounts(manager, authority=keyring.authority, signer=signer_of(keyring))

    return add


async def an_account(cluster: Cluster, name: str = "robot", **more: Any) -> Document:
    return await cluster.make(SERVICE_ACCOUNTS, {"metadata": {"name": name}, **more})


async def a_secret(cluster: Cluster, name: str = "token", *, account: str = "robot", uid: str = "") -> Document:
    annotations = {NAME: account} | ({UID: uid} if uid else {})
    return await cluster.make(SECRETS, {"metadata": {"name": name, "annotations": annotations}, "type": TYPE})


async def data_of(cluster: Cluster, name: str = "token") -> dict[str, str]:
    """What a Secret holds once it has a token."""

    async def filled() -> Content | None:
        data = (await cluster.read(SECRETS, name) or {}).get("data", {})
        return data if "token" in data else None

    found = await until(filled, within=10)
    return {key: base64.b64decode(value).decode() for key, value in found.items()}


async def is_gone(cluster: Cluster, name: str = "token") -> None:
    async def gone() -> bool:
        return await cluster.read(SECRETS, name) is None

    await until(gone, within=10)


async def who_is(cluster: Cluster, token: str) -> tuple[int, Content]:
    transport = LoopbackTransport(cluster.server.core.service, token=token)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = await transport.send(Request(method="POST", path=path, body=msgspec.json.encode(body)))
    return answer.status, msgspec.json.decode(answer.body)


async def test_the_server_takes_the_token_of_a_secret_while_both_are_there(
    cluster: Cluster, keyring: Keyring, add: Any
) -> None:
    async with cluster.controllers(add):
        account = await an_account(cluster)
        await a_secret(cluster)
        data = await data_of(cluster)
        assert data["namespace"] == "default"
        assert data["ca.crt"] == keyring.authority.decode()
        secret = await cluster.read(SECRETS, "token")
        assert secret is not None
        assert secret["metadata"]["annotations"] == {NAME: "robot", UID: account.metadata.uid}
        status, review = await who_is(cluster, data["token"])
        assert status == 201
        user = review["status"]["userInfo"]
        assert user["username"] == "system:serviceaccount:default:robot"
        assert user["uid"] == account.metadata.uid
        await cluster.client.delete(SECRETS, "token", "default")
        assert (await who_is(cluster, data["token"]))[0] == 401


async def test_the_secrets_of_an_account_go_with_it(cluster: Cluster, add: Any) -> None:
    async with cluster.controllers(add):
        await an_account(cluster)
        await an_account(cluster, "other")
        await a_secret(cluster)
        await a_secret(cluster, "kept", account="other")
        await cluster.make(SECRETS, {"metadata": {"name": "plain", "annotations": {NAME: "robot"}}})
        token = (await data_of(cluster))["token"]
        await data_of(cluster, "kept")
        await cluster.client.delete(SERVICE_ACCOUNTS, "robot", "default")
        await is_gone(cluster)
        assert (await who_is(cluster, token))[0] == 401
        assert await cluster.read(SECRETS, "kept") is not None
        assert await cluster.read(SECRETS, "plain") is not None


async def test_a_secret_of_an_account_that_never_was_or_is_another_now_is_removed(cluster: Cluster, add: Any) -> None:
    await an_account(cluster)
    await a_secret(cluster, "nobody", account="nobody")
    await a_secret(cluster, "former", uid="00000000-0000-0000-0000-000000000000")
    await a_secret(cluster)
    async with cluster.controllers(add):
        await is_gone(cluster, "nobody")
        await is_gone(cluster, "former")
        await data_of(cluster)


async def test_what_is_taken_out_of_a_secret_is_put_back(cluster: Cluster, keyring: Keyring, add: Any) -> None:
    async with cluster.controllers(add):
        await an_account(cluster)
        await a_secret(cluster)
        before = await data_of(cluster)
        forged = {"data": {"ca.crt": base64.b64encode(b"FORGED").decode(), "namespace": None}}
        await cluster.client.merge_patch(SECRETS, "token", forged, "default")

        async def is_mended() -> bool:
            return await data_of(cluster) == before

        await until(is_mended)


async def test_an_account_forgets_a_secret_that_is_gone(cluster: Cluster, add: Any) -> None:
    async with cluster.controllers(add):
        await an_account(cluster, secrets=[{"name": "other"}, {"name": "token"}])
        await a_secret(cluster)
        await data_of(cluster)
        await cluster.client.delete(SECRETS, "token", "default")

        async def is_forgotten() -> bool:
            return (await cluster.read(SERVICE_ACCOUNTS, "robot") or {}).get("secrets") == [{"name": "other"}]

        await until(is_forgotten)


async def test_a_secret_whose_removal_is_refused_is_removed_later(cluster: Cluster, add: Any) -> None:
    transport = FaultyTransport(cluster.server.transport())
    manager = Manager(transport, name="controllers")
    add(manager)

    def refuse_once(request: Request) -> Response | None:
        if request.method != "DELETE":
            return None
        transport.faults.clear()
        return Response(409, {}, b'{"kind": "Status", "reason": "Conflict", "code": 409}')

    transport.faults.append(refuse_once)
    async with running(manager):
        await an_account(cluster)
        await a_secret(cluster)
        await data_of(cluster)
        await cluster.client.delete(SERVICE_ACCOUNTS, "robot", "default")
        await is_gone(cluster)


async def test_a_secret_that_goes_while_its_account_is_written_is_forgotten_too(cluster: Cluster, add: Any) -> None:
    transport = FaultyTransport(cluster.server.transport())
    manager = Manager(transport, name="controllers")
    add(manager)
    names = ("first", "second")

    async def remove_the_second(request: Request) -> None:
        if request.method == "PATCH" and request.path.endswith("/serviceaccounts/robot"):
            transport.meanwhile = _nothing
            await cluster.client.delete(SECRETS, "second", "default")
            await until(lambda: _is_unseen(manager, "second"))

    async with running(manager):
        await an_account(cluster, secrets=[{"name": name} for name in names])
        for name in names:
            await a_secret(cluster, name)
            await data_of(cluster, name)
        transport.meanwhile = remove_the_second
        await cluster.client.delete(SECRETS, "first", "default")

        async def are_forgotten() -> bool:
            return not (await cluster.read(SERVICE_ACCOUNTS, "robot") or {}).get("secrets")

        await until(are_forgotten, within=5)


async def _nothing(request: Request) -> None:
    return


async def _is_unseen(manager: Manager, secret: str) -> bool:
    [secrets] = [one for one in manager.cache.informers if one.resource == SECRETS]
    return secrets.get(secret, "default") is None


async def test_at_rest_nothing_is_written(cluster: Cluster, add: Any) -> None:
    async with cluster.controllers(add):
        await cluster.make(NAMESPACES, {"metadata": {"name": "team"}})
        await an_account(cluster)
        await a_secret(cluster)
        await data_of(cluster)

        async def is_complete() -> bool:
            namespaces = [one["metadata"]["name"] for one in await cluster.all(NAMESPACES)]
            return all([await cluster.read(SERVICE_ACCOUNTS, "default", name) for name in namespaces])

        await until(is_complete)
    async with cluster.controllers(add) as manager:
        await a_secret(cluster, "second")
        await data_of(cluster, "second")
        assert writes_of(manager) == 1
