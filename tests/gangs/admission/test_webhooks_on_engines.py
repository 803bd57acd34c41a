"""The webhooks as API servers call them: posted manifests are filled in, checked and protected."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from shoal.api.core import PODS
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, TOPOLOGY_BINDINGS
from shoal.api.meta import Document, Resource
from shoal.gangs.admission import Lookups, gang_webhooks, webhook_configurations
from shoal.gangs.backends import Backends
from shoal.gangs.settings import Authorizing, GangSettings
from shoal.kube import Client, Forbidden, Invalid, NotFound
from shoal.kube.admission import AdmissionServer, MemoryStore, Policy, SelfMade, UrlEndpoint
from shoal.kube.admission.configuration import MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS
from shoal.kube.transport import Request, Response
from tests.gangs.builders import a_clique_template, a_pod_spec, a_set
from tests.gangs.manifests import TEST_DEFAULT, TEST_KAI
from tests.support.clusters.client import client_to, until
from tests.support.clusters.engines import Engine

OPERATOR, STRANGER = "gangs-operator", "gangs-stranger"
SETTINGS = GangSettings(has_topologies=True, authorizing=Authorizing(is_enabled=True, operator_user=OPERATOR))
SETS, CLIQUES, TOPOLOGIES = (kind.documents() for kind in (POD_CLIQUE_SETS, POD_CLIQUES, TOPOLOGY_BINDINGS))
RESOURCES = {resource.kind: resource for resource in (MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS)}


@dataclass
class Hooked:
    """A cluster that calls the webhooks, by the eyes of three people."""

    namespace: str
    admin: Client
    operator: Client
    stranger: Client

    async def post(self, body: dict[str, Any], *, by: Client | None = None) -> dict[str, Any]:
        """Creates a set, and gives it as it is stored."""
        found = await (by or self.admin).create(SETS, _unplaced(body), self.namespace)
        return found.content

    async def read(self, resource: Resource[Any], name: str) -> dict[str, Any]:
        return (await self.admin.get(resource.documents(), name, self.namespace)).content


def _unplaced(body: dict[str, Any]) -> dict[str, Any]:
    """A manifest that leaves it to the request where it goes."""
    metadata = {key: value for key, value in body["metadata"].items() if key != "namespace"}
    return {**body, "metadata": metadata}


@pytest.fixture
async def hooked(engine: Engine, namespace: str, tmp_path: Path) -> AsyncIterator[Hooked]:
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(client_to(engine.kubeconfig))
        people = []
        for user in (OPERATOR, STRANGER):
            file = tmp_path / user
            file.write_text(engine.kubeconfig_for(user, ["system:masters"]))
            people.append(await stack.enter_async_context(client_to(file)))
        found = Hooked(namespace, admin, *people)
        await stack.enter_async_context(_called(found))
        yield found


@asynccontextmanager
async def _called(cluster: Hooked) -> AsyncIterator[None]:
    """The API server calls the webhooks, for one namespace alone, so that no other test meets them."""
    webhooks = gang_webhooks(Lookups.live(cluster.admin), SETTINGS, Backends.load())
    server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
    source = SelfMade(MemoryStore(), Policy(names=("127.0.0.1",)))
    serving = await source.current()
    server.use(serving.pair)
    await server.start()
    registered: list[tuple[Resource[Document], str]] = []
    try:
        at = UrlEndpoint(f"https://127.0.0.1:{server.port}")
        for body in webhook_configurations(webhooks, at, authorities=serving.authorities):
            for webhook in body["webhooks"]:
                webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}}
            resource = RESOURCES[body["kind"]]
            await cluster.admin.create(resource, body)
            registered.append((resource, body["metadata"]["name"]))
        assert len(registered) == 4
        await until(lambda: _are_called(cluster))
        yield
    finally:
        await server.stop()
        for resource, name in registered:
            await cluster.admin.delete(resource, name)


async def _are_called(cluster: Hooked) -> bool:
    """Whether the API server has begun to call all of them: it fills in, checks, and protects."""
    unsaid = a_clique_template("a")
    del unsaid["spec"]["roleName"]
    made = await cluster.admin.create(SETS, _unplaced(a_set("probe", unsaid)), cluster.namespace, dry_run=True)
    if not made.content["spec"]["template"]["cliques"][0]["spec"].get("roleName"):
        return False
    wrong = _unplaced(a_set("probe", a_clique_template("a", 1, min_available=2)))
    if not await _is_refused(cluster.admin.create(SETS, wrong, cluster.namespace, dry_run=True)):
        return False
    if not await _is_refused(cluster.admin.create(TOPOLOGIES, a_topology("probe", "rack", "rack"), dry_run=True)):
        return False
    lost = a_managed_clique("probe", of="nobody")
    answer = await _answer(cluster.admin, CLIQUES, lost, cluster.namespace, dryRun="All")
    return "Warning" in answer.headers


async def _is_refused(asked: Awaitable[object]) -> bool:
    try:
        await asked
    except Invalid as error:
        return "webhooks.grove.io" in error.message
    return False


async def _answer(
    client: Client, resource: Resource[Any], body: dict[str, Any], namespace: str, **query: str
) -> Response:
    """The whole answer to a creation, with its warnings."""
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
    return await client.transport.send(
        Request(method="POST", path=resource.path(namespace), query=query, body=msgspec.json.encode(whole))
    )


def a_managed_clique(name: str, *, of: str = "web") -> dict[str, Any]:
    """A PodClique as the operator makes it."""
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": of}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"roleName": "a", "replicas": 1, "minAvailable": 1, "podSpec": a_pod_spec()},
    }


def a_topology(name: str, *domains: str) -> dict[str, Any]:
    levels = [{"domain": domain, "key": f"example.com/{index}"} for index, domain in enumerate(domains)]
    return {"metadata": {"name": name}, "spec": {"levels": levels}}


class TestSets:
    async def test_what_the_examples_leave_out_is_filled_in(self, hooked: Hooked) -> None:
        for manifest in (TEST_KAI, TEST_DEFAULT):
            body = yaml.safe_load(manifest)
            stored = await hooked.post(body)
            assert stored["metadata"]["namespace"] == hooked.namespace
            template = stored["spec"]["template"]
            assert template["terminationDelay"] == "4h"
            assert template["headlessServiceConfig"] == {"publishNotReadyAddresses": True}
            assert template["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"
            [clique] = template["cliques"]
            written = body["spec"]["template"]["cliques"][0]["spec"]
            assert clique["spec"] == {
                **written,
                "roleName": "workers",
                "minAvailable": 2,
                "podSpec": {**written["podSpec"], "restartPolicy": "Always", "terminationGracePeriodSeconds": 30},
            }

    async def test_a_refusal_names_every_field(self, hooked: Hooked) -> None:
        clique = a_clique_template("front", 2, min_available=3, starts_after=["side"])
        with pytest.raises(Invalid) as refused:
            await hooked.post(a_set("web", clique, cliqueStartupType="CliqueStartupTypeExplicit"))
        place = "spec.template.cliques[0].spec"
        assert refused.value.message == (
            'admission webhook "pcs.validating.webhooks.grove.io" denied the request: PodCliqueSet.grove.io "web" is '
            f"invalid: [{place}.minAvailable: Invalid value: 3: must not be greater than replicas, which is 2, "
            f'{place}.startsAfter[0]: Not found: "side": name a clique of this set]'
        )
        assert [(cause.field, cause.reason) for cause in refused.value.causes] == [
            (f"{place}.minAvailable", "FieldValueInvalid"),
            (f"{place}.startsAfter[0]", "FieldValueNotFound"),
        ]

    async def test_gangs_stay_as_they_were_made(self, hooked: Hooked) -> None:
        await hooked.post(a_set("web"))
        role = [{"op": "replace", "path": "/spec/template/cliques/0/spec/roleName", "value": "leader"}]
        with pytest.raises(Invalid, match='roleName: Invalid value: "leader": field is immutable: keep "workers"'):
            await hooked.admin.json_patch(SETS, "web", role, hooked.namespace)
        image = [{"op": "replace", "path": "/spec/template/cliques/0/spec/podSpec/containers/0/image", "value": "b"}]
        await hooked.admin.json_patch(SETS, "web", image, hooked.namespace)
        await hooked.admin.scale(SETS, "web", 3, hooked.namespace)
        assert (await hooked.read(POD_CLIQUE_SETS, "web"))["spec"]["replicas"] == 3

    async def test_nulls_are_as_good_as_nothing(self, hooked: Hooked) -> None:
        """As Go programs write them."""
        clique = a_clique_template("front", labels=None, topologyConstraint=None, resourceSharing=None)
        clique["spec"] |= {"startsAfter": None, "autoScalingConfig": None, "minAvailable": None}
        body = a_set("web", clique, podCliqueScalingGroups=None, metadata={"creationTimestamp": None})
        stored = await hooked.post(body)
        assert stored["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] == 2

    async def test_a_topology_counts_from_the_moment_it_is_made(self, hooked: Hooked) -> None:
        name = f"racks-{hooked.namespace[-8:]}"
        wanted = a_set("web", topologyConstraint={"topologyName": name, "pack": {"required": "rack"}})
        with pytest.raises(Invalid, match=f'topologyName: Not found: "{name}": no ClusterTopologyBinding of this name'):
            await hooked.post(wanted)
        await hooked.admin.create(TOPOLOGIES, a_topology(name, "block", "rack"))
        try:
            await hooked.post(wanted)
            change = {"spec": a_topology(name, "block", "block")["spec"]}
            with pytest.raises(Invalid, match=r'spec\.levels\[1\]\.domain: Duplicate value: "block"'):
                await hooked.admin.merge_patch(TOPOLOGIES, name, change)
        finally:
            await hooked.admin.delete(TOPOLOGIES, name)


class TestProtection:
    async def test_a_stranger_may_not_touch_what_a_set_has_made_but_its_pods(self, hooked: Hooked) -> None:
        await hooked.post(a_set("web"))
        clique = a_managed_clique("web-0-workers")
        await hooked.operator.create(CLIQUES, clique, hooked.namespace)
        pod = {"metadata": {**clique["metadata"], "name": "web-0-workers-x"}, "spec": a_pod_spec()}
        await hooked.operator.create(PODS.documents(), pod, hooked.namespace)

        with pytest.raises(Forbidden) as refused:
            await hooked.stranger.merge_patch(CLIQUES, "web-0-workers", {"spec": {"replicas": 5}}, hooked.namespace)
        assert refused.value.message == (
            f'admission webhook "authorizer.webhooks.grove.io" denied the request: user "{STRANGER}" may not update '
            'PodClique "web-0-workers", which is managed by PodCliqueSet "web": change the set instead, or set its '
            'annotation grove.io/disable-managed-resource-protection to "true"'
        )
        labels = {"metadata": {"labels": {"app.kubernetes.io/managed-by": None, "app.kubernetes.io/part-of": None}}}
        with pytest.raises(Forbidden, match="may not update"):
            await hooked.stranger.merge_patch(CLIQUES, "web-0-workers", labels, hooked.namespace)
        with pytest.raises(Forbidden, match="may not delete"):
            await hooked.stranger.delete(CLIQUES, "web-0-workers", hooked.namespace)
        with pytest.raises(Forbidden, match="may not create"):
            await hooked.stranger.create(CLIQUES, a_managed_clique("web-0-mine"), hooked.namespace)
        with pytest.raises(Forbidden, match="may not update"):
            await hooked.stranger.merge_patch(PODS, "web-0-workers-x", labels, hooked.namespace)

        await hooked.stranger.delete(PODS, "web-0-workers-x", hooked.namespace)
        with pytest.raises(NotFound):
            await hooked.read(PODS, "web-0-workers-x")
        await hooked.operator.merge_patch(CLIQUES, "web-0-workers", {"spec": {"replicas": 5}}, hooked.namespace)

    async def test_a_set_can_open_what_it_has_made(self, hooked: Hooked) -> None:
        await hooked.post(a_set("web"))
        await hooked.operator.create(CLIQUES, a_managed_clique("web-0-workers"), hooked.namespace)
        opened = {"metadata": {"annotations": {"grove.io/disable-managed-resource-protection": "true"}}}
        await hooked.admin.merge_patch(SETS, "web", opened, hooked.namespace)
        await hooked.stranger.merge_patch(CLIQUES, "web-0-workers", {"spec": {"replicas": 5}}, hooked.namespace)
        await hooked.stranger.delete(CLIQUES, "web-0-workers", hooked.namespace)

    async def test_what_a_set_left_behind_is_free_and_that_is_told(self, hooked: Hooked) -> None:
        answer = await _answer(hooked.stranger, CLIQUES, a_managed_clique("left"), hooked.namespace)
        assert answer.status == 201
        assert 'part of PodCliqueSet \\"web\\", which is gone' in answer.headers["Warning"]
