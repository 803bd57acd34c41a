"""The generated CRDs on the embedded API server, which serves them from the moment it is ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from shoal.api.apiextensions import DEFINITIONS
from shoal.api.crd import CustomResource
from shoal.api.definitions import ALL, DIALECTS
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES
from shoal.cli.processes.api import define
from shoal.kube import Invalid
from tests.gangs.builders import a_bare_clique, a_bare_set
from tests.support.clusters.in_process import Cluster


@pytest.fixture
def kinds() -> Sequence[CustomResource]:
    """Every kind that Shoal defines."""
    return (*ALL, *DIALECTS)


def a_set_with_a_port(**template: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "c", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": 1}}}]}
    return a_bare_set("s", a_bare_clique("a", podSpec=pod), **template)


async def test_every_kind_is_served_as_it_is_stated(cluster: Cluster) -> None:
    found = {found["metadata"]["name"]: found for found in await cluster.all(DEFINITIONS)}
    assert found.keys() == {definition.name for definition in (*ALL, *DIALECTS)}
    for definition in (*ALL, *DIALECTS):
        schemas = [
            [each["schema"] for each in crd["spec"]["versions"]]
            for crd in (found[definition.name], definition.manifest())
        ]
        assert schemas[0] == schemas[1]


async def test_to_define_them_again_changes_nothing(cluster: Cluster) -> None:
    before = await cluster.all(DEFINITIONS)
    await define(cluster.client, (*ALL, *DIALECTS))
    assert await cluster.all(DEFINITIONS) == before


async def test_pods_in_a_set_get_their_defaults(cluster: Cluster) -> None:
    made = await cluster.make(POD_CLIQUE_SETS, a_set_with_a_port())
    [clique] = made.content["spec"]["template"]["cliques"]
    [container] = clique["spec"]["podSpec"]["containers"]
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert container["resources"] == {"limits": {"cpu": 1}}


async def test_a_set_by_the_superseded_constraint_is_not_made_anew(cluster: Cluster) -> None:
    with pytest.raises(Invalid, match=r"set pack\.required instead") as refused:
        await cluster.make(POD_CLIQUE_SETS, a_set_with_a_port(topologyConstraint={"packDomain": "rack"}))
    assert [cause.field for cause in refused.value.causes] == ["spec.template.topologyConstraint.packDomain"]


async def test_two_writers_share_a_pods_containers_and_ports(cluster: Cluster) -> None:
    def spec(*ports: int, **pod: Any) -> dict[str, Any]:
        container = {"name": "c", "ports": [{"containerPort": port} for port in ports]}
        return {"metadata": {"name": "a"}, "spec": {"replicas": 1, "podSpec": {"containers": [container], **pod}}}

    for manager, body in (("one", spec(80)), ("two", spec(90, hostNetwork=True))):
        await cluster.client.apply(POD_CLIQUES.documents(), body, "default", name="a", field_manager=manager)
    kept = await cluster.read(POD_CLIQUES, "a")
    assert kept is not None
    assert kept["spec"]["podSpec"]["hostNetwork"] is True
    [container] = kept["spec"]["podSpec"]["containers"]
    assert [port["containerPort"] for port in container["ports"]] == [80, 90]
