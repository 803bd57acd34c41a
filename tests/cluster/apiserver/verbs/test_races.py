"""Writes that meet: each has waited in admission while another one was carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from shoal.cluster.apiserver.admission import Chain
from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.calls import Call
from shoal.cluster.apiserver.core import Core
from tests.cluster.apiserver.conftest import Ask

MAPS = "/api/v1/namespaces/default/configmaps"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"


def config(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Gate:
    """Holds the first write of one manager in admission until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_reached = asyncio.Event()
        self.is_open = asyncio.Event()
        self.manager = "slow"
        validate = Chain.validate

        async def held(chain: Chain, request: Attributes) -> None:
            await validate(chain, request)
            if request.options.get("fieldManager") == self.manager and not self.is_reached.is_set():
                self.is_reached.set()
                await self.is_open.wait()

        monkeypatch.setattr(Chain, "validate", held)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


async def overtaken(gate: Gate, slow: Any, quick: Callable[[], Any]) -> tuple[int, Any]:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        task = tasks.create_task(slow)
        await gate.is_reached.wait()
        status, _ = await quick()
        assert status == 200
        gate.is_open.set()
    return task.result()  # type: ignore[no-any-return]


async def test_an_update_that_asks_for_no_version_is_made_again_from_its_body(ask: Ask, gate: Gate) -> None:
    await ask("POST", MAPS, config("a", one="1"))
    merge = "application/merge-patch+json"
    status, new = await overtaken(
        gate,
        ask("PUT", f"{MAPS}/a?fieldManager=slow", config("a", two="2")),
        lambda: ask("PATCH", f"{MAPS}/a?fieldManager=quick", {"metadata": {"labels": {"x": "y"}}}, kind=merge),
    )
    assert (status, new["data"]) == (200, {"two": "2"})
    managers = {entry["manager"] for entry in new["metadata"]["managedFields"]}
    assert "slow" in managers
    assert "labels" not in new["metadata"]


async def test_an_update_that_asks_for_a_version_conflicts_where_another_came_first(ask: Ask, gate: Gate) -> None:
    _, made = await ask("POST", MAPS, config("a", one="1"))
    wanted = config("a", two="2")
    wanted["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    status, refusal = await overtaken(
        gate,
        ask("PUT", f"{MAPS}/a?fieldManager=slow", wanted),
        lambda: ask("PUT", f"{MAPS}/a?fieldManager=quick", config("a", three="3")),
    )
    assert (status, refusal["reason"]) == (409, "Conflict")


async def test_a_patch_is_made_again_as_it_came(ask: Ask, gate: Gate) -> None:
    await ask("POST", MAPS, config("a"))
    patch = [
        {"op": "add", "path": "/metadata/finalizers", "value": []},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.org/one"},
    ]
    status, new = await overtaken(
        gate,
        ask("PATCH", f"{MAPS}/a?fieldManager=slow", patch, kind="application/json-patch+json"),
        lambda: ask("PUT", f"{MAPS}/a?fieldManager=quick", config("a", three="3")),
    )
    assert (status, new["data"]) == (200, {"three": "3"})
    assert new["metadata"]["finalizers"] == ["example.org/one"]


async def used(ask: Ask) -> str:
    _, quota = await ask("GET", f"{QUOTAS}/q")
    return str(quota["status"]["used"]["configmaps"])


@pytest.fixture
async def quota(ask: Ask) -> None:
    hard = {"configmaps": "5"}
    made = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    await ask("POST", QUOTAS, made)
    _, made = await ask("GET", f"{QUOTAS}/q")
    made["status"] = {"hard": hard, "used": {"configmaps": "0"}}
    status, _ = await ask("PUT", f"{QUOTAS}/q/status", made)
    assert status == 200


@pytest.mark.usefixtures("quota")
async def test_a_charge_stays_where_the_client_leaves_a_write_that_is_under_way(ask: Ask, core: Core) -> None:
    store = core.state.store
    writing = asyncio.ensure_future(ask("POST", MAPS, config("a")))
    while store.latest("configmaps", "default", "a") is None:
        await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    async with asyncio.timeout(5):
        while (await ask("GET", f"{MAPS}/a"))[0] != 200:
            await asyncio.sleep(0)
    assert await used(ask) == "1"


@pytest.mark.usefixtures("quota")
async def test_a_charge_is_given_back_where_the_client_leaves_while_it_is_made(ask: Ask, core: Core) -> None:
    store = core.state.store
    before = store.latest("resourcequotas", "default", "q")
    writing = asyncio.ensure_future(ask("POST", MAPS, config("a")))
    while store.latest("resourcequotas", "default", "q") is before:
        await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert (await ask("GET", f"{MAPS}/a"))[0] == 404
    charged = store.latest("resourcequotas", "default", "q")
    assert charged is not None
    assert await store.reached(charged.revision, 5)
    assert await used(ask) == "0"


async def as_user(core: Core, method: str, path: str, body: Any, *, kind: str = "application/json") -> tuple[int, Any]:
    path, _, manager = path.partition("?fieldManager=")
    call = Call(
        method=method,
        path=path,
        query={"fieldManager": [manager]} if manager else {},
        headers={"content-type": kind, "authorization": f"Bearer {core.credentials.user_tokens.token('ann')}"},
        body=msgspec.json.encode(body),
    )
    answer = await core.service.answer(call)
    return answer.status, msgspec.json.decode(answer.body)  # type: ignore[arg-type, union-attr]


LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "one"}, "spec": {}}


@pytest.mark.parametrize(
    ("method", "kind"), [("PUT", "application/json"), ("PATCH", "application/apply-patch+yaml")], ids=["put", "apply"]
)
@pytest.mark.parametrize("may_create", [False, True])
async def test_whoever_may_only_change_creates_nothing_by_changing_it(
    ask: Ask, core: Core, method: str, kind: str, may_create: bool
) -> None:
    verbs = ["update", "patch", *(["create"] if may_create else [])]
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": {"name": "changer"}}
    rules = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}]
    await ask("POST", f"/apis/{group}/v1/namespaces/default/roles", {**role, "rules": rules})
    binding = {
        **role,
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "changer"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "ann"}],
    }
    assert (await ask("POST", f"/apis/{group}/v1/namespaces/default/rolebindings", binding))[0] == 201
    status, answer = await as_user(core, method, f"{LEASES}/one?fieldManager=ann", LEASE, kind=kind)
    if may_create:
        assert status == 201
    else:
        assert (status, answer["message"]) == (
            403,
            'leases.coordination.k8s.io "one" is forbidden: User "ann" cannot create resource "leases" in API group '
            '"coordination.k8s.io" in the namespace "default"',
        )


async def test_the_largest_limit_is_none(ask: Ask) -> None:
    status, listed = await ask("GET", f"{MAPS}?limit={2**63 - 1}")
    assert (status, "continue" in listed["metadata"]) == (200, False)


async def test_nothing_comes_into_a_namespace_that_went_meanwhile(ask: Ask, gate: Gate, core: Core) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "brief"}}
    await ask("POST", "/api/v1/namespaces", space)

    async def end() -> tuple[int, Any]:
        await ask("DELETE", "/api/v1/namespaces/brief")
        _, ending = await ask("GET", "/api/v1/namespaces/brief")
        ending["spec"] = {}
        return await ask("PUT", "/api/v1/namespaces/brief/finalize", ending)

    path = "/api/v1/namespaces/brief/configmaps"
    status, refusal = await overtaken(gate, ask("POST", f"{path}?fieldManager=slow", config("a")), end)
    assert (status, refusal["message"]) == (404, 'namespaces "brief" not found')
    assert core.state.store.latest("configmaps", "brief", "a") is None
