"""A definition of what Kubernetes has already changes nothing, neither while it is there nor when it goes."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from shoal.cluster.apiserver.core import Core
from tests.cluster.apiserver.conftest import Ask
from tests.cluster.apiserver.upkeep.test_definitions import BOAT, CRDS, until

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def definition(plural: str, kind: str) -> dict[str, Any]:
    made = copy.deepcopy(BOAT)
    group = "coordination.k8s.io"
    approval = "https://github.com/kubernetes/kubernetes/pull/1"
    made["metadata"] = {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": approval}}
    made["spec"] |= {"group": group, "names": {"plural": plural, "kind": kind}}
    return made


@pytest.mark.parametrize(("plural", "kind"), [("leases", "Rent"), ("rents", "Lease")], ids=["resource", "kind"])
async def test_a_definition_does_not_take_the_place_of_a_builtin_kind(
    ask: Ask, core: Core, plural: str, kind: str
) -> None:
    registry = core.state.registry
    before = registry.find("coordination.k8s.io", "v1", "leases")
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "one"}, "spec": {}}
    assert (await ask("POST", LEASES, lease))[0] == 201
    made = definition(plural, kind)
    path = f"{CRDS}/{made['metadata']['name']}"
    assert (await ask("POST", CRDS, made))[0] == 201
    async with asyncio.timeout(5):
        while "status" not in (await ask("GET", path))[1]:
            await asyncio.sleep(0)
    assert (await ask("DELETE", path))[0] == 200
    await until(ask, path, 404)
    assert registry.find("coordination.k8s.io", "v1", "leases") is before
    assert registry.of_kind("coordination.k8s.io", "v1", "Lease") is before
    assert registry.stored("leases.coordination.k8s.io") is before
    assert (await ask("GET", f"{LEASES}/one"))[0] == 200
