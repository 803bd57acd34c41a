"""What a request must be allowed to do, seen from its URL."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.apiserver.calls import Answer, Call, Streaming
from shoal.cluster.apiserver.core import Core
from tests.cluster.apiserver.conftest import Ask

GROUP = "rbac.authorization.k8s.io"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def ann(ask: Ask) -> str:
    """A user who may read one object, by its name."""
    role: dict[str, Any] = {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": {"name": "reader"}}
    verbs = ["get", "list", "watch", "deletecollection"]
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": verbs}]
    await ask("POST", f"/apis/{GROUP}/v1/namespaces/default/roles", {**role, "rules": rules})
    binding = {
        **role,
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "ann"}],
    }
    await ask("POST", f"/apis/{GROUP}/v1/namespaces/default/rolebindings", binding)
    for name in ("mine", "other"):
        await ask("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    return "ann"


async def asked(core: Core, user: str, path: str, *, method: str = "GET", **query: str) -> Answer | Streaming:
    token = core.credentials.user_tokens.token(user)
    call = Call(
        method=method,
        path=path,
        query={name: [value] for name, value in query.items()},
        headers={"authorization": f"Bearer {token}"},
    )
    answer = await core.service.answer(call)
    assert isinstance(answer, Answer | Streaming)
    return answer


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        (MAPS, {"fieldSelector": "metadata.name=mine"}, 200),
        (MAPS, {"fieldSelector": "metadata.name==mine,metadata.namespace=default"}, 200),
        (MAPS, {"fieldSelector": "metadata.name=mine", "watch": "true", "timeoutSeconds": "1"}, 200),
        (MAPS, {"fieldSelector": "metadata.name=other"}, 403),
        (MAPS, {"fieldSelector": "metadata.name!=mine"}, 403),
        (MAPS, {"fieldSelector": "metadata.name="}, 403),
        (MAPS, {"fieldSelector": "metadata.name=mine\\"}, 403),
        (MAPS, {"labelSelector": "metadata.name=mine"}, 403),
        (MAPS, {}, 403),
        ("/api/v1/configmaps", {"fieldSelector": "metadata.name=mine"}, 403),
        ("/api/v1/watch/namespaces/default/configmaps", {"fieldSelector": "metadata.name=mine"}, 403),
    ],
)
async def test_who_may_read_an_object_may_list_it_alone(
    core: Core, ann: str, path: str, query: dict[str, str], status: int
) -> None:
    answer = await asked(core, ann, path, **query)
    assert answer.status == status
    if isinstance(answer, Answer) and status == 200:
        body = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        assert (b"mine" in body, b"other" in body) == (True, False)


async def test_names_say_nothing_of_the_deletion_of_many(core: Core, ann: str) -> None:
    answer = await asked(core, ann, MAPS, method="DELETE", fieldSelector="metadata.name=mine")
    assert answer.status == 403


async def test_namespaces_that_are_made_up_are_not_remembered_for_ever(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.cluster.apiserver.access.authorization._MOST_NAMESPACES", 10)
    for number in range(50):
        await asked(core, "nobody", f"/api/v1/namespaces/made-up-{number}/pods")
    assert len(core.service._authorizer._namespaces) <= 10
