"""Evictions of pods that change while they are evicted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.state import State
from tests.cluster.apiserver.conftest import Ask

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
async def pod(ask: Ask) -> Any:
    """A pod that runs, under a budget that lets one go."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    await ask("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    spec = {"containers": [{"name": "a", "image": "b"}], "nodeName": "n"}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"app": "x"}}, "spec": spec}
    _, made = await ask("POST", PODS, made)
    made["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    _, made = await ask("PUT", f"{PODS}/p/status", made)
    budget: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    _, budget = await ask("POST", BUDGETS, {**budget, "spec": {"selector": {"matchLabels": {"app": "x"}}}})
    counts = {"currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2, "disruptionsAllowed": 1}
    budget["status"] = {**counts, "observedGeneration": 1}
    status, _ = await ask("PUT", f"{BUDGETS}/b/status", budget)
    assert status == 200
    return made


def eviction(**preconditions: str) -> dict[str, Any]:
    options = {"gracePeriodSeconds": 0, **({"preconditions": preconditions} if preconditions else {})}
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, "deleteOptions": options}


@pytest.mark.usefixtures("pod")
async def test_a_pod_that_changes_while_it_is_counted_is_counted_once(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = State.update

    async def update_late(
        state: State, storage: str, namespace: str, name: str, change: Callable[[Object], Object | None]
    ) -> Object | None:
        patch = {"metadata": {"labels": {"changed": "meanwhile"}}}
        await ask("PATCH", f"{PODS}/p", patch, kind="application/merge-patch+json")
        return await update(state, storage, namespace, name, change)

    monkeypatch.setattr(State, "update", update_late)
    status, answer = await ask("POST", f"{PODS}/p/eviction", eviction())
    assert (status, answer["status"]) == (201, "Success")
    assert (await ask("GET", f"{PODS}/p"))[0] == 404
    assert (await ask("GET", f"{BUDGETS}/b"))[1]["status"]["disruptionsAllowed"] == 0


async def test_an_eviction_may_be_of_one_version_alone(ask: Ask, pod: Any) -> None:
    version = pod["metadata"]["resourceVersion"]
    status, _ = await ask("POST", f"{PODS}/p/eviction", eviction(resourceVersion=version))
    assert status == 201
    assert (await ask("GET", f"{PODS}/p"))[0] == 404


@pytest.mark.usefixtures("pod")
async def test_an_eviction_of_another_version_counts_nothing(ask: Ask) -> None:
    status, _ = await ask("POST", f"{PODS}/p/eviction", eviction(resourceVersion="1"))
    assert status == 409
    assert (await ask("GET", f"{BUDGETS}/b"))[1]["status"]["disruptionsAllowed"] == 1
