"""The client's verbs against a real API server and the embedded one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from shoal.api.core import CONFIG_MAPS, NAMESPACES, PODS
from shoal.api.meta import Document, Resource
from shoal.kube import (
    AlreadyExists,
    Client,
    Conflict,
    EventType,
    Forbidden,
    HttpTransport,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthorized,
    load_connection,
    retry_on_conflict,
)
from tests.support.clusters.client import client_to, requests, until
from tests.support.clusters.engines import Engine

MAPS = CONFIG_MAPS.documents()
NODES = Resource(type=Document, group="", version="v1", kind="Node", plural="nodes", namespaced=False)
DEPLOYMENTS = Resource(type=Document, group="apps", version="v1", kind="Deployment", plural="deployments")
REPLICA_SETS = Resource(type=Document, group="apps", version="v1", kind="ReplicaSet", plural="replicasets")
BUDGETS = Resource(
    type=Document, group="policy", version="v1", kind="PodDisruptionBudget", plural="poddisruptionbudgets"
)
POD = {"metadata": {"name": "pod", "labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[Client]:
    async with client_to(engine.kubeconfig) as client:
        yield client


async def make(client: Client, namespace: str, *names: str, **labels: str) -> None:
    for name in names:
        await client.create(CONFIG_MAPS, {"metadata": {"name": name, "labels": labels}}, namespace)


async def test_a_large_list_is_read_in_pages_at_one_version(client: Client, namespace: str) -> None:
    await make(client, namespace, *(f"m{number}" for number in range(25)), team="red")
    await make(client, namespace, "other", team="blue")
    before = requests(client.metrics)
    listing = await client.list(CONFIG_MAPS, namespace, label_selector="team=red", page=10)
    assert sorted(found.metadata.name for found in listing.items) == sorted(f"m{number}" for number in range(25))
    assert requests(client.metrics) - before == 3
    named = await client.list(CONFIG_MAPS, namespace, field_selector="metadata.name=other")
    assert [found.metadata.name for found in named.items] == ["other"]


async def test_a_watch_shows_what_happens_after_a_version(client: Client, namespace: str) -> None:
    version = (await client.list(CONFIG_MAPS, namespace)).resource_version

    async def act() -> None:
        await make(client, namespace, "a")
        await client.merge_patch(CONFIG_MAPS, "a", {"data": {"x": "1"}}, namespace)
        await client.delete(CONFIG_MAPS, "a", namespace)

    acting = asyncio.create_task(act())
    seen = []
    async for event in client.watch(CONFIG_MAPS, namespace, resource_version=version, timeout_seconds=20):
        if event.object is not None and event.object.metadata.name == "a":
            seen.append((event.type, event.object.data))
        if event.type is EventType.DELETED:
            break
    await acting
    assert seen == [(EventType.ADDED, {}), (EventType.MODIFIED, {"x": "1"}), (EventType.DELETED, {"x": "1"})]


async def test_optimistic_concurrency_refuses_the_slower_writer(client: Client, namespace: str) -> None:
    await make(client, namespace, "a")
    first = await client.get(MAPS, "a", namespace)
    await client.update(MAPS, {**first.content, "data": {"by": "one"}}, namespace, name="a")
    with pytest.raises(Conflict):
        await client.update(MAPS, {**first.content, "data": {"by": "two"}}, namespace, name="a")

    async def attempt() -> Document:
        now = await client.get(MAPS, "a", namespace)
        return await client.update(MAPS, {**now.content, "data": {"by": "two"}}, namespace, name="a")

    assert (await retry_on_conflict(attempt)).content["data"] == {"by": "two"}


async def test_applying_over_another_manager_conflicts_unless_forced(client: Client, namespace: str) -> None:
    def body(value: str) -> dict[str, object]:
        return {"metadata": {"name": "a"}, "data": {"x": value}}

    await client.apply(CONFIG_MAPS, body("1"), namespace, name="a", field_manager="one")
    with pytest.raises(Conflict) as refused:
        await client.apply(CONFIG_MAPS, body("2"), namespace, name="a", field_manager="two")
    assert [cause.field for cause in refused.value.causes] == [".data.x"]
    forced = await client.apply(CONFIG_MAPS, body("2"), namespace, name="a", field_manager="two", force=True)
    assert forced.data == {"x": "2"}


async def test_a_json_patch_with_a_test_acts_only_on_what_was_read(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}}, namespace)
    steps = [{"op": "test", "path": "/data/x", "value": "1"}, {"op": "replace", "path": "/data/x", "value": "2"}]
    assert (await client.json_patch(CONFIG_MAPS, "a", steps, namespace)).data == {"x": "2"}
    with pytest.raises(Invalid):
        await client.json_patch(CONFIG_MAPS, "a", steps, namespace)


async def test_a_dry_run_changes_nothing(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace, dry_run=True)
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAPS, "a", namespace)


async def test_generated_names_and_taken_names(client: Client, namespace: str) -> None:
    made = [await client.create(CONFIG_MAPS, {"metadata": {"generateName": "g-"}}, namespace) for _ in range(2)]
    assert made[0].metadata.name != made[1].metadata.name
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAPS, {"metadata": {"name": made[0].metadata.name}}, namespace)


async def test_a_delete_with_a_uid_spares_another_object_of_the_name(client: Client, namespace: str) -> None:
    await make(client, namespace, "a")
    with pytest.raises(Conflict):
        await client.delete(CONFIG_MAPS, "a", namespace, uid="00000000-0000-0000-0000-000000000000")
    await client.get(CONFIG_MAPS, "a", namespace)
    await make(client, namespace, "b", "c", team="red")
    await client.delete_collection(CONFIG_MAPS, namespace, label_selector="team=red")
    listing = await client.list(CONFIG_MAPS, namespace, field_selector="metadata.name!=kube-root-ca.crt")
    assert [found.metadata.name for found in listing.items] == ["a"]


@pytest.mark.parametrize("propagation", ["Orphan", "Background", "Foreground"])
async def test_a_deletion_takes_children_along_as_asked(client: Client, namespace: str, propagation: str) -> None:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": POD["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    await client.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec}, namespace)

    async def children() -> list[Document]:
        return (await client.list(REPLICA_SETS, namespace)).items

    await until(children)
    await client.delete(DEPLOYMENTS, "d", namespace, propagation=propagation)  # type: ignore[arg-type]

    async def gone() -> bool:
        try:
            await client.get(DEPLOYMENTS, "d", namespace)
        except NotFound:
            return True
        return False

    await until(gone)
    if propagation == "Orphan":
        [child] = await children()
        assert not child.metadata.is_deleting
    else:

        async def none_left() -> bool:
            return not await children()

        await until(none_left)


async def test_scale_is_read_and_set(client: Client, namespace: str) -> None:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": POD["spec"]}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    await client.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec}, namespace)
    await client.scale(DEPLOYMENTS, "d", 2, namespace)
    assert await client.replicas(DEPLOYMENTS, "d", namespace) == 2


async def test_a_pod_is_bound_once_and_its_status_is_written_apart(client: Client, namespace: str) -> None:
    node = f"node-{namespace}"[:60].rstrip("-")
    await client.create(NODES, {"metadata": {"name": node}})
    pod = await client.create(PODS, POD, namespace)
    await client.bind(PODS, "pod", namespace, node=node, uid=pod.metadata.uid)
    assert (await client.get(PODS, "pod", namespace)).spec.node_name == node
    with pytest.raises(Conflict):
        await client.bind(PODS, "pod", namespace, node="elsewhere")
    patch = {"status": {"phase": "Running"}, "metadata": {"labels": {"ignored": "here"}}}
    await client.strategic_patch(PODS, "pod", patch, namespace, subresource="status")
    assert (await client.get(PODS, "pod", namespace)).status.phase == "Running"
    await client.delete(PODS, "pod", namespace, grace_seconds=0)
    await client.delete(NODES, node)


async def test_an_eviction_asks_the_disruption_budget(client: Client, namespace: str) -> None:
    await client.create(PODS, POD, namespace)
    node = f"node-{namespace}"[:60].rstrip("-")
    await client.create(NODES, {"metadata": {"name": node}})
    await client.bind(PODS, "pod", namespace, node=node)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await client.strategic_patch(PODS, "pod", {"status": ready}, namespace, subresource="status")
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    await client.create(BUDGETS, {"metadata": {"name": "b"}, "spec": budget}, namespace)

    async def counted() -> bool:
        budget = await client.get(BUDGETS, "b", namespace)
        return bool(budget.content.get("status", {}).get("currentHealthy") == 1)

    await until(counted)
    with pytest.raises(TooManyRequests):
        await client.evict(PODS, "pod", namespace)
    await client.delete(BUDGETS, "b", namespace)
    await client.evict(PODS, "pod", namespace, grace_seconds=0)
    await client.delete(NODES, node)


async def test_wrong_and_weak_credentials_are_told_apart(
    engine: Engine, client: Client, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("users")
    stranger = folder / "stranger"
    stranger.write_text(engine.kubeconfig_for("stranger"))
    async with client_to(stranger) as weak:
        with pytest.raises(Forbidden, match="stranger"):
            await weak.list(CONFIG_MAPS, namespace)
    wrong = folder / "wrong"
    wrong.write_text(engine.kubeconfig.read_text().replace(engine.admin_token, "not-a-token"))
    transport = HttpTransport(load_connection(wrong))
    with pytest.raises(Unauthorized):
        await Client(transport).get(NAMESPACES, namespace)
    await transport.close()


async def test_any_path_can_be_read(client: Client) -> None:
    assert b"gitVersion" in await client.read_path("/version")
    assert b"readyz check passed" in await client.read_path("/readyz", {"verbose": ""})
