"""What the server does by itself outlives its faults, and the server outlives it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from shoal.cluster.apiserver.core import Core
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import forbidden
from shoal.cluster.apiserver.state import State
from shoal.cluster.apiserver.storage import StorageFailed
from shoal.cluster.apiserver.upkeep import definitions, lasting
from shoal.cluster.apiserver.verbs import deleting
from tests.cluster.apiserver.conftest import Ask
from tests.cluster.apiserver.upkeep.test_definitions import BOAT, BOATS, CRDS, WITHIN, until

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
FISHING = {"apiGroups": ["sea.example"], "resources": ["fish"], "verbs": ["get"]}


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((lasting, "PAUSE"), (definitions, "PAUSE"), (definitions, "_REFUSED_PAUSE")):
        monkeypatch.setattr(module, name, 0.0)


def fail_once(monkeypatch: pytest.MonkeyPatch, storage: str) -> None:
    """The next write that the server makes by itself to a kind meets a full disk."""
    update = State.update
    failures = [StorageFailed("the disk is full")]

    async def failing(
        self: State, kind: str, namespace: str, name: str, change: Callable[[Object], Object | None]
    ) -> Object | None:
        if kind == storage and failures:
            raise failures.pop()
        return await update(self, kind, namespace, name, change)

    monkeypatch.setattr(State, "update", failing)


async def test_roles_are_aggregated_after_a_write_has_failed(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_once(monkeypatch, "clusterroles.rbac.authorization.k8s.io")
    role: dict[str, Any] = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "fish", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [FISHING],
    }
    assert (await ask("POST", ROLES, role))[0] == 201
    async with asyncio.timeout(WITHIN):
        while FISHING not in (await ask("GET", f"{ROLES}/view"))[1]["rules"]:
            await asyncio.sleep(0.001)


async def test_a_definition_ends_after_a_write_has_failed(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    await ask("POST", CRDS, BOAT)
    await until(ask, BOATS, 200)
    fail_once(monkeypatch, "customresourcedefinitions.apiextensions.k8s.io")
    assert (await ask("DELETE", f"{CRDS}/boats.sea.example"))[0] == 200
    await until(ask, f"{CRDS}/boats.sea.example", 404)
    await until(ask, BOATS, 404)


async def test_objects_that_somebody_refuses_to_delete_are_tried_again(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask("POST", CRDS, BOAT)
    await until(ask, BOATS, 200)
    boat = {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"name": "a"}}
    assert (await ask("POST", BOATS, boat))[0] == 201
    refusals = [forbidden("boats", "sea.example", "a", "not today")]
    mark = deleting._mark

    def marked(*parts: Any) -> bool:
        if parts[0].resource == "boats" and refusals:
            raise refusals.pop()
        return mark(*parts)

    monkeypatch.setattr(deleting, "_mark", marked)
    assert (await ask("DELETE", f"{CRDS}/boats.sea.example"))[0] == 200
    await until(ask, f"{CRDS}/boats.sea.example", 404)


async def test_nothing_is_created_of_a_kind_that_went_meanwhile(ask: Ask, core: Core) -> None:
    await ask("POST", CRDS, BOAT)
    await until(ask, BOATS, 200)
    kind = core.state.registry.find("sea.example", "v1", "boats")
    await ask("DELETE", f"{CRDS}/boats.sea.example")
    await until(ask, BOATS, 404)
    assert kind is not None
    # A request that was in a webhook's hands all the while still has the kind in its own.
    core.state.registry._by_resource["sea.example", "v1", "boats"] = kind
    boat = {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"name": "a"}}
    assert (await ask("POST", BOATS, boat))[0] == 403
    assert core.state.store.latest("boats.sea.example", "default", "a") is None
