"""Pods whose claims are bound for the node that is chosen for them."""

from __future__ import annotations

from typing import Any

from shoal.api.core import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from shoal.api.storage import STORAGE_CLASSES
from shoal.cluster.controllers.binding import add_binding
from shoal.kube import ConnectionFault, Manager, running
from tests.cluster.controllers.binding.test_controller import make_node, make_pod, node_of, told
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of

SELECTED = "volume.kubernetes.io/selected-node"


async def make_class(cluster: Cluster) -> None:
    lazy = {"metadata": {"name": "lazy"}, "provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}
    await cluster.make(STORAGE_CLASSES, lazy)


async def make_claim(cluster: Cluster, name: str, *, selected: str = "") -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "lazy"}
    annotations = {SELECTED: selected} if selected else {}
    await cluster.make(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": name, "annotations": annotations}, "spec": spec})


async def make_user(cluster: Cluster, name: str, *claims: str, **chosen: Any) -> None:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    await make_pod(cluster, name, volumes=volumes, **chosen)


async def selected(cluster: Cluster, claim: str) -> str:
    found = await cluster.read(PERSISTENT_VOLUME_CLAIMS, claim)
    assert found is not None
    return str((found["metadata"].get("annotations") or {}).get(SELECTED, ""))


async def provide(cluster: Cluster, claim: str, node: str) -> None:
    """What a provisioner does: a volume that is on one node only, and the claim bound to it."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    volume = {
        "metadata": {"name": f"v-{claim}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "lazy",
            "local": {"path": "/x"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }
    await cluster.make(PERSISTENT_VOLUMES, volume)
    bound = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": f"v-{claim}"},
    }
    await cluster.client.merge_patch(PERSISTENT_VOLUME_CLAIMS, claim, bound, "default")


async def test_a_place_is_held_while_claims_are_bound_for_it(cluster: Cluster) -> None:
    await make_class(cluster)
    for name in ("a", "b"):
        await make_node(cluster, name, gpu="1")
        await make_claim(cluster, f"data-{name}")
    async with cluster.controllers(add_binding):
        for name in ("a", "b"):
            await make_user(cluster, f"p-{name}", f"data-{name}", requests={"gpu": "1"})
            await until(lambda name=name: selected(cluster, f"data-{name}"))  # type: ignore[misc]
        nodes = [await selected(cluster, f"data-{name}") for name in ("a", "b")]
        assert sorted(nodes) == ["a", "b"]
        await make_pod(cluster, "greedy", requests={"gpu": "1"})
        await until(lambda: told(cluster, "greedy"))
        for name, node in zip(("a", "b"), nodes, strict=True):
            await provide(cluster, f"data-{name}", node)
            assert await until(lambda name=name: node_of(cluster, f"p-{name}")) == node  # type: ignore[misc]
        assert await node_of(cluster, "greedy") == ""


async def test_a_class_that_comes_late_lets_a_pod_go_on(cluster: Cluster) -> None:
    await make_node(cluster, "a")
    await make_claim(cluster, "data")
    await make_user(cluster, "p", "data")
    async with cluster.controllers(add_binding):
        await until(lambda: told(cluster, "p"))
        await make_class(cluster)
        assert await until(lambda: selected(cluster, "data")) == "a"


async def test_all_claims_of_a_pod_are_for_one_node_whatever_came_between(cluster: Cluster) -> None:
    await make_class(cluster)
    await make_node(cluster, "a", cpu="64")
    await make_node(cluster, "b")
    await make_claim(cluster, "first", selected="b")
    await make_claim(cluster, "second")
    await make_user(cluster, "p", "first", "second")
    async with cluster.controllers(add_binding):
        assert await until(lambda: selected(cluster, "second")) == "b"
    async with cluster.controllers(add_binding) as manager:
        await provide(cluster, "first", "b")
        await provide(cluster, "second", "b")
        assert await until(lambda: node_of(cluster, "p")) == "b"
        assert writes_of(manager) <= 2  # the bind and its event


async def test_a_node_that_could_not_be_written_is_chosen_again(cluster: Cluster) -> None:
    await make_class(cluster)
    await make_node(cluster, "a", gpu="1")
    await make_claim(cluster, "data")
    manager = Manager(cluster.server.transport(), name="controllers")
    add_binding(manager)
    really, tries = manager.client.merge_patch, 0

    async def patch(*given: Any, **chosen: Any) -> Any:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ConnectionFault("the line is dead")
        return await really(*given, **chosen)

    manager.client.merge_patch = patch  # type: ignore[method-assign]
    async with running(manager):
        await make_user(cluster, "p", "data", requests={"gpu": "1"})
        assert await until(lambda: selected(cluster, "data")) == "a"


async def test_a_node_that_goes_or_is_refused_is_not_waited_for(cluster: Cluster) -> None:
    await make_class(cluster)
    await make_node(cluster, "a")
    await make_claim(cluster, "data")
    async with cluster.controllers(add_binding):
        await make_user(cluster, "p", "data")
        assert await until(lambda: selected(cluster, "data")) == "a"
        await cluster.client.delete(NODES, "a")
        await until(lambda: told(cluster, "p"))
        await make_node(cluster, "b")

        async def is_moved() -> bool:
            return await selected(cluster, "data") == "b"

        await until(is_moved)
        refused = {"metadata": {"annotations": {SELECTED: None}}}
        await cluster.client.merge_patch(PERSISTENT_VOLUME_CLAIMS, "data", refused, "default")
        await until(is_moved)
        await cluster.client.delete(PODS, "p", "default", grace_seconds=0)


async def test_pods_that_share_a_claim_go_to_the_same_node(cluster: Cluster) -> None:
    await make_class(cluster)
    await make_claim(cluster, "shared")
    for name in ("a", "b"):
        await make_node(cluster, name)
    for number in range(4):
        await make_user(cluster, f"p{number}", "shared", requests={"cpu": "500m"})
    async with cluster.controllers(add_binding):
        node = await until(lambda: selected(cluster, "shared"))
        await provide(cluster, "shared", node)
        for number in range(4):
            assert await until(lambda number=number: node_of(cluster, f"p{number}")) == node  # type: ignore[misc]
