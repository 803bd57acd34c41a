"""``kubectl rollout`` works with these controllers as it does with Kubernetes' own."""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shoal.api.core import NAMESPACES, SERVICE_ACCOUNTS
from shoal.cluster.controllers.deployments import add_deployments
from shoal.cluster.controllers.replica_sets import add_replica_sets
from shoal.kube import Manager, Settings, running
from tests.support.clusters.client import transport_to
from tests.support.clusters.embedded import Embedded
from tests.support.clusters.ready_pods import add_ready_pods
from tests.support.clusters.real import kubectl_for
from tests.support.programs.kubectl import Kubectl

pytestmark = pytest.mark.kube


class Rollout:
    """kubectl on one Deployment, without holding up the controllers that share the test's loop."""

    def __init__(self, kubectl: Kubectl, namespace: str) -> None:
        self._kubectl = kubectl
        self._namespace = namespace

    async def __call__(self, *arguments: str) -> str:
        run = functools.partial(self._kubectl, *arguments, namespace=self._namespace)
        return await asyncio.to_thread(run)

    async def image(self) -> str:
        return await self("get", "deployment/web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")


@pytest.fixture
async def kubectl(embedded: Embedded, tmp_path: Path) -> AsyncIterator[Rollout]:
    """kubectl on a namespace of its own, whose Deployments are looked after."""
    namespace = f"rollout-{secrets.token_hex(4)}"
    async with transport_to(embedded.kubeconfig) as transport:
        manager = Manager(transport, name="controllers", settings=Settings(namespace=namespace))
        for add in (add_replica_sets, add_deployments, add_ready_pods):
            add(manager)
        body: dict[str, Any] = {"metadata": {"name": namespace}}
        await manager.client.create(NAMESPACES.documents(), body)
        await manager.client.create(SERVICE_ACCOUNTS.documents(), {"metadata": {"name": "default"}}, namespace)
        async with running(manager):
            yield Rollout(kubectl_for(embedded.kubeconfig, tmp_path), namespace)


async def test_a_rollout_is_followed_paused_undone_and_restarted(kubectl: Rollout) -> None:
    await kubectl("create", "deployment", "web", "--image=a", "--replicas=3")
    said = await kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    assert 'deployment "web" successfully rolled out' in said

    await kubectl("set", "image", "deployment/web", "a=b")
    await kubectl("annotate", "deployment/web", "kubernetes.io/change-cause=the second")
    await kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    history = await kubectl("rollout", "history", "deployment/web")
    assert [line.split() for line in history.splitlines()[2:] if line] == [["1", "<none>"], ["2", "the", "second"]]
    assert "Image:\ta" in await kubectl("rollout", "history", "deployment/web", "--revision=1")

    await kubectl("rollout", "undo", "deployment/web")
    await kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    assert await kubectl.image() == "a"
    history = await kubectl("rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["2", "3"]

    await kubectl("rollout", "undo", "deployment/web", "--to-revision=2")
    await kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    assert await kubectl.image() == "b"

    before = await kubectl("get", "pods", "-o", "name")
    await kubectl("rollout", "restart", "deployment/web")
    await kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    after = await kubectl("get", "pods", "-o", "name")
    assert len(after.split()) == 3
    assert not set(before.split()) & set(after.split())

    await kubectl("rollout", "pause", "deployment/web")
    await kubectl("set", "image", "deployment/web", "a=c")
    await kubectl("scale", "deployment/web", "--replicas=5")
    await kubectl("wait", "deployment/web", "--for=jsonpath={.status.availableReplicas}=5", "--timeout=20s")
    images = await kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}")
    assert images.split() == ["b"] * 5
    await kubectl("rollout", "resume", "deployment/web")
    await kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    images = await kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}")
    assert images.split() == ["c"] * 5
    await kubectl("wait", "deployment/web", "--for=condition=Available", "--timeout=5s")
