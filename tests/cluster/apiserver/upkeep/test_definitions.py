from __future__ import annotations

import asyncio
import copy
from typing import Any

from shoal.cluster.apiserver.core import Core
from shoal.cluster.apiserver.kinds.kind import Object
from tests.cluster.apiserver.conftest import Ask

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOATS = "/apis/sea.example/v1/namespaces/default/boats"

BOAT: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.sea.example"},
    "spec": {
        "group": "sea.example",
        "scope": "Namespaced",
        "names": {"plural": "boats", "kind": "Boat", "shortNames": ["bo"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"crew": {"type": "integer", "default": 2, "minimum": 1}},
                            }
                        },
                    }
                },
            }
        ],
    },
}

WITHIN = 60.0
"""Seconds; schemas are compiled in a thread, beside whatever else the machine does."""


async def until(ask: Ask, path: str, status: int) -> Any:
    async with asyncio.timeout(WITHIN):
        while True:
            code, body = await ask("GET", path)
            if code == status:
                return body
            await asyncio.sleep(0.001)


async def test_a_kind_is_served_a_moment_after_its_definition(ask: Ask) -> None:
    status, _ = await ask("POST", CRDS, BOAT)
    assert status == 201
    await until(ask, BOATS, 200)
    boat = {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"name": "a"}, "spec": {}}
    status, made = await ask("POST", BOATS, boat)
    assert (status, made["spec"]) == (201, {"crew": 2})


async def test_a_definition_goes_after_the_last_of_its_objects(ask: Ask) -> None:
    await ask("POST", CRDS, BOAT)
    await until(ask, BOATS, 200)
    held = {
        "apiVersion": "sea.example/v1",
        "kind": "Boat",
        "metadata": {"name": "held", "finalizers": ["sea.example/anchor"]},
    }
    await ask("POST", BOATS, held)
    status, ending = await ask("DELETE", f"{CRDS}/boats.sea.example")
    assert status == 200
    assert ending["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    async with asyncio.timeout(WITHIN):
        while "deletionTimestamp" not in (await ask("GET", f"{BOATS}/held"))[1]["metadata"]:
            await asyncio.sleep(0.001)
    status, refusal = await ask("POST", BOATS, {**held, "metadata": {"name": "late"}})
    assert status == 403
    assert refusal["message"].endswith("create not allowed while custom resource definition is terminating")
    release = [{"op": "remove", "path": "/metadata/finalizers"}]
    status, _ = await ask("PATCH", f"{BOATS}/held", release, kind="application/json-patch+json")
    assert status == 200
    await until(ask, f"{CRDS}/boats.sea.example", 404)
    await until(ask, BOATS, 404)


async def test_a_definition_whose_last_step_a_kill_has_prevented_goes_after_all(ask: Ask, core: Core) -> None:
    await ask("POST", CRDS, BOAT)
    await until(ask, BOATS, 200)

    def freed(definition: Object) -> Object:
        """As it is in the store between the removal of its finalizer and its own."""
        kept = {key: value for key, value in definition["metadata"].items() if key != "finalizers"}
        return {**definition, "metadata": {**kept, "deletionTimestamp": "2026-01-01T00:00:00Z"}}

    await core.state.update("customresourcedefinitions.apiextensions.k8s.io", "", "boats.sea.example", freed)
    await until(ask, f"{CRDS}/boats.sea.example", 404)


async def test_two_definitions_cannot_have_the_same_names(ask: Ask) -> None:
    await ask("POST", CRDS, BOAT)
    await until(ask, BOATS, 200)
    rival = copy.deepcopy(BOAT)
    rival["metadata"]["name"] = "ships.sea.example"
    rival["spec"]["names"] = {"plural": "ships", "kind": "Boat"}
    await ask("POST", CRDS, rival)
    async with asyncio.timeout(WITHIN):
        while not (
            conditions := (await ask("GET", f"{CRDS}/ships.sea.example"))[1].get("status", {}).get("conditions")
        ):
            await asyncio.sleep(0.001)
    assert {one["type"]: one["status"] for one in conditions} == {"NamesAccepted": "False", "Established": "False"}
    await ask("DELETE", f"{CRDS}/boats.sea.example")
    await until(ask, "/apis/sea.example/v1/namespaces/default/ships", 200)


async def test_a_changed_schema_counts_at_once(ask: Ask) -> None:
    await ask("POST", CRDS, BOAT)
    await until(ask, BOATS, 200)
    _, current = await ask("GET", f"{CRDS}/boats.sea.example")
    schema = current["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["sail"] = {"type": "string", "default": "white"}
    assert (await ask("PUT", f"{CRDS}/boats.sea.example", current))[0] == 200
    boat = {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"generateName": "b-"}, "spec": {}}
    async with asyncio.timeout(WITHIN):
        while (await ask("POST", BOATS, boat))[1]["spec"].get("sail") != "white":
            await asyncio.sleep(0.001)
