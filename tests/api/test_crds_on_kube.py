"""The generated CRDs on a real API server: accepted as they are, and enforced as they say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from shoal.api.definitions import ALL, DIALECTS
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, TOPOLOGY_BINDINGS
from shoal.api.kai_scheduler import TOPOLOGIES
from shoal.api.meta import Resource
from shoal.api.resource_nvidia_com import COMPUTE_DOMAINS
from shoal.api.scheduling_run_ai import BIND_REQUESTS, POD_GROUPS, QUEUES
from shoal.cluster.kubernetes import RealKubernetes
from shoal.kube import Client, Invalid
from shoal.kube.admission.configuration import CUSTOM_RESOURCE_DEFINITIONS
from tests.support.clusters.client import client_to
from tests.support.programs.kubectl import Kubectl


@pytest.fixture(scope="module")
def defined(kube: RealKubernetes) -> RealKubernetes:
    """With our kinds over what others may have defined before, as an upstream project's own of the same kind."""
    kube.admin.define([definition.manifest() for definition in (*ALL, *DIALECTS)])
    return kube


@pytest.fixture
async def client(defined: RealKubernetes) -> AsyncIterator[Client]:
    async with client_to(defined.kubeconfig) as client:
        yield client


@pytest.mark.parametrize("definition", [*ALL, *DIALECTS], ids=lambda definition: definition.name)
async def test_a_crd_is_accepted_as_structural_and_served(client: Client, definition: Any) -> None:
    manifest = definition.manifest()
    live = await client.get(CUSTOM_RESOURCE_DEFINITIONS, manifest["metadata"]["name"])
    conditions = {condition["type"]: condition for condition in live.content["status"]["conditions"]}
    assert conditions["Established"]["status"] == "True"
    assert conditions["NamesAccepted"]["status"] == "True"
    assert conditions.get("NonStructuralSchema", {"status": "False"})["status"] == "False"
    assert schemas(live.content) == schemas(manifest), "the server dropped or changed a part of the schema"


def schemas(crd: dict[str, Any]) -> list[Any]:
    return [version["schema"] for version in crd["spec"]["versions"]]


@pytest.mark.parametrize(
    ("resource", "spec", "field"),
    [
        pytest.param(POD_GROUPS, {"minMember": -1}, "spec.minMember", id="below the minimum"),
        pytest.param(POD_GROUPS, {"preemptibility": "maybe"}, "spec.preemptibility", id="not of the enum"),
        pytest.param(
            POD_GROUPS, {"subGroups": [{"minMember": 1}]}, "spec.subGroups[0].name", id="required field missing"
        ),
        pytest.param(POD_GROUPS, {"subGroups": [{"name": "A b"}]}, "spec.subGroups[0].name", id="against the pattern"),
        pytest.param(QUEUES, {"priority": "high"}, "spec.priority", id="of another type"),
        pytest.param(TOPOLOGIES, {"levels": []}, "spec.levels", id="too few items"),
        pytest.param(
            TOPOLOGIES, {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "rack"}]}, "spec.levels", id="a CEL rule"
        ),
        pytest.param(BIND_REQUESTS, {"backoffLimit": 1.5}, "spec.backoffLimit", id="not an integer"),
        pytest.param(POD_CLIQUES, {"replicas": 1, "podSpec": {}}, "spec.podSpec.containers", id="a pod of nothing"),
        pytest.param(
            POD_CLIQUES,
            {"replicas": 1, "podSpec": {"containers": [{"name": "a", "ports": [{"containerPort": 1}] * 2}]}},
            "spec.podSpec.containers[0].ports[1]",
            id="a port of a pod twice",
        ),
        pytest.param(
            POD_CLIQUE_SETS,
            {"template": {"cliques": [], "topologyConstraint": {"packDomain": "rack"}}},
            "spec.template.topologyConstraint.packDomain",
            id="a superseded field in a new object",
        ),
        pytest.param(
            TOPOLOGY_BINDINGS, {"levels": [{"domain": "Rack", "key": "a"}]}, "spec.levels[0].domain", id="a name"
        ),
        pytest.param(COMPUTE_DOMAINS, {"numNodes": 0}, "spec.channel", id="of another's kind"),
    ],
)
async def test_a_wrong_object_is_refused_with_the_field_named(
    client: Client, namespace: str, resource: Resource[Any], spec: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await client.create(resource.documents(), {"metadata": {"name": "wrong"}, "spec": spec}, namespace)
    assert field in [cause.field for cause in refused.value.causes]


async def test_a_rule_on_changes_is_enforced(client: Client, namespace: str) -> None:
    name = f"topology-{namespace}"[:60].rstrip("-")
    levels = [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}]
    await client.create(TOPOLOGIES, {"metadata": {"name": name}, "spec": {"levels": levels}})
    aliased = [{"nodeLabel": "zone", "alias": "z"}, {"nodeLabel": "rack"}]
    await client.merge_patch(TOPOLOGIES, name, {"spec": {"levels": aliased}})
    with pytest.raises(Invalid, match="cannot change"):
        await client.merge_patch(TOPOLOGIES, name, {"spec": {"levels": list(reversed(levels))}})
    await client.delete(TOPOLOGIES, name)


async def test_objects_round_trip_through_server_and_types(client: Client, namespace: str) -> None:
    queue = f"queue-{namespace}"[:60].rstrip("-")
    resources = {"gpu": {"quota": 2.5, "limit": -1, "overQuotaWeight": 1}}
    body = {"metadata": {"name": queue}, "spec": {"parentQueue": "root", "priority": 7, "resources": resources}}
    made = await client.create(QUEUES, body)
    assert made.spec.priority == 7
    assert made.spec.resources is not None
    assert made.spec.resources.gpu is not None
    assert made.spec.resources.gpu.quota == 2.5
    group = {"minMember": 2, "queue": queue, "subGroups": [{"name": "workers", "minMember": 2}]}
    pod_group = await client.create(POD_GROUPS, {"metadata": {"name": "gang"}, "spec": group}, namespace)
    assert [sub.name for sub in pod_group.spec.sub_groups] == ["workers"]
    await client.delete(QUEUES, queue)


async def test_kubectl_shows_the_columns_and_knows_the_short_name(
    client: Client, namespace: str, kubectl: Kubectl
) -> None:
    queue = f"shown-{namespace}"[:60].rstrip("-")
    spec = {"parentQueue": "root", "priority": 7, "displayName": "Team A"}
    await client.create(QUEUES, {"metadata": {"name": queue}, "spec": spec})
    await client.create(POD_GROUPS, {"metadata": {"name": "gang"}, "spec": {"minMember": 2}}, namespace)
    header, row = kubectl("get", "queues.scheduling.run.ai", queue).splitlines()
    assert header.split() == ["NAME", "PRIORITY", "PARENT", "CHILDREN", "DISPLAYNAME"]
    assert row.split() == [queue, "7", "root", "Team", "A"]
    assert "gang" in kubectl("get", "podgroups.scheduling.run.ai", "--namespace", namespace)
    clique = {"replicas": 3, "minAvailable": 2, "podSpec": {"containers": [{"name": "a"}]}}
    await client.create(POD_CLIQUES.documents(), {"metadata": {"name": "worker"}, "spec": clique}, namespace)
    header, row = kubectl("get", "pclq", "--namespace", namespace).splitlines()
    assert header.split() == ["NAME", "MINAVAIL", "REPLICAS", "READY", "SCHEDULED", "UPDATED", "AGE"]
    assert row.split()[:3] == ["worker", "2", "3"]
    assert "minMember" in kubectl("explain", "podgroups.spec", "--api-version=scheduling.run.ai/v2alpha2")
    await client.delete(QUEUES, queue)
