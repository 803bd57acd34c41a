"""What a server serves, as controllers of all kinds ask for it."""

from __future__ import annotations

from typing import Any

from shoal.api.core import PODS
from shoal.api.meta import PartialObject
from shoal.cluster.controllers.discovery import Discovered, discover
from shoal.kube import Client
from shoal.kube.transport import Request
from tests.support.clusters.in_process import Cluster
from tests.support.network.scripted import Answer, ScriptedTransport


def a_version(name: str, *resources: str, **more: Any) -> dict[str, Any]:
    kinds = [
        {
            "resource": resource,
            "responseKind": {"group": "", "version": "", "kind": resource.title()},
            "scope": "Cluster",
            "verbs": ["get"],
        }
        for resource in resources
    ]
    return {"version": name, "resources": kinds, **more}


async def found_in(*versions: dict[str, Any]) -> Discovered:
    async def script(request: Request) -> Answer:
        items = [{"metadata": {"name": "example.com"}, "versions": versions}] if request.path == "/apis" else []
        return Answer({"items": items})

    return await discover(Client(ScriptedTransport(script)))


async def test_the_server_tells_its_kinds_and_their_verbs(cluster: Cluster) -> None:
    found = await discover(cluster.client)
    [pods] = [one for one in found.preferred() if one.resource.full_name == "pods"]
    assert pods.resource == PODS.view(PartialObject)
    assert pods.can("delete", "deletecollection", "list", "watch")
    assert not pods.can("list", "fly")
    assert (found.failures, found.problem) == ({}, "")


async def test_each_kind_is_preferred_in_the_first_version_that_has_it() -> None:
    found = await found_in(a_version("v2", "new"), a_version("v1", "new", "old"))
    assert [str(one.resource) for one in found.preferred()] == ["new.v2.example.com", "old.v1.example.com"]
    assert len(found.kinds) == 3


async def test_a_version_that_is_stale_is_told_and_not_believed() -> None:
    found = await found_in(a_version("v2", "new", freshness="Stale"), a_version("v1", "old", freshness="Current"))
    assert [str(one.resource) for one in found.kinds] == ["old.v1.example.com"]
    assert found.problem == (
        "unable to retrieve the complete list of server APIs: "
        "example.com/v2: stale GroupVersion discovery: example.com/v2"
    )


async def test_what_has_no_kind_is_no_kind() -> None:
    version = a_version("v1", "things")
    version["resources"][0]["responseKind"] = None
    assert (await found_in(version)).kinds == ()
