"""Replicas written through the scale of an object: what the object is then, and who owns it."""

from __future__ import annotations

import copy
from typing import Any

from tests.cluster.apiserver.conftest import Ask
from tests.cluster.apiserver.upkeep.test_definitions import BOAT, BOATS, CRDS, until

SETS = "/apis/apps/v1/namespaces/default/statefulsets"
MERGE = "application/merge-patch+json"
SET: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "a"},
    "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a", "image": "x"}]}},
    },
}


def scale(kind: str = "Scale", **spec: int) -> dict[str, Any]:
    return {"apiVersion": "autoscaling/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}


async def test_a_scale_of_a_kind_that_there_is_none_of_is_refused(ask: Ask) -> None:
    await ask("POST", SETS, SET)
    status, refused = await ask("PUT", f"{SETS}/a/scale", scale("Scales", replicas=2))
    assert status == 400
    assert 'no kind "Scales" is registered for version "autoscaling/v1"' in refused["message"]


async def test_of_two_entries_of_one_owner_that_a_scale_leaves_the_later_counts(ask: Ask) -> None:
    await ask("POST", SETS, SET)
    entries = []
    for _ in range(3):
        await ask("PATCH", f"{SETS}/a/scale", {}, kind=MERGE)
        _, live = await ask("GET", f"{SETS}/a")
        entries.append(live["metadata"]["managedFields"])
    assert [len(some) for some in entries] == [2, 1, 1]
    assert entries[0][0]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in entries[1][0]["fieldsV1"]["f:spec"]


async def test_defaults_beside_the_replicas_of_a_custom_object_come_with_them(ask: Ask) -> None:
    definition = copy.deepcopy(BOAT)
    (version,) = definition["spec"]["versions"]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"] = {"type": "integer"}
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version["subresources"] = {"scale": paths}
    await ask("POST", CRDS, definition)
    await until(ask, BOATS, 200)
    await ask("POST", BOATS, {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"name": "a"}})
    _, forgotten = await ask("PATCH", f"{BOATS}/a", {"metadata": {"managedFields": [{}]}}, kind=MERGE)
    assert "spec" not in forgotten
    status, _ = await ask("PUT", f"{BOATS}/a/scale", scale(replicas=3))
    _, boat = await ask("GET", f"{BOATS}/a")
    assert (status, boat["spec"]) == (200, {"replicas": 3, "crew": 2})
