from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from shoal.api.core import EVENTS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from shoal.api.storage import STORAGE_CLASSES
from shoal.cluster.controllers.volumes import PROVISIONER, add_volumes
from shoal.cluster.controllers.volumes.local_path import new_volume
from shoal.kube import Manager
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.faults import behind
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

RWO = "ReadWriteOnce"
Add = Callable[[Manager], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "volumes"


@pytest.fixture
def volumes(folder: Path) -> Add:
    return partial(add_volumes, folder=folder)


@pytest.fixture
def plain(folder: Path) -> Add:
    return partial(add_volumes, folder=folder, makes_default_class=False)


async def make_class(cluster: Cluster, name: str, **fields: Any) -> None:
    await cluster.make(STORAGE_CLASSES, {"metadata": {"name": name}, "provisioner": PROVISIONER, **fields})


async def make_claim(cluster: Cluster, name: str, size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    body = {"accessModes": [RWO], "resources": {"requests": {"storage": size}}, **spec}
    made = await cluster.make(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": name}, "spec": body})
    return made.content


async def make_volume(cluster: Cluster, name: str, size: str = "1Gi", **spec: Any) -> None:
    body = {
        "accessModes": [RWO],
        "capacity": {"storage": size},
        "hostPath": {"path": "/srv/x"},
        "persistentVolumeReclaimPolicy": "Retain",
        **spec,
    }
    await cluster.make(PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": body})


async def make_user(cluster: Cluster, name: str, claim: str, *, node: str = "") -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
    await cluster.make(PODS, pod_manifest(name, node=node, volumes=[volume]))


async def claim_is(cluster: Cluster, name: str, phase: str) -> Any:
    found = await cluster.read(PERSISTENT_VOLUME_CLAIMS, name)
    return found if found and found["status"].get("phase") == phase else None


async def volume_is(cluster: Cluster, name: str, phase: str) -> Any:
    found = await cluster.read(PERSISTENT_VOLUMES, name)
    return found if found and found["status"].get("phase") == phase else None


async def is_gone(cluster: Cluster, resource: Any, name: str) -> bool:
    return await cluster.read(resource, name) is None


async def is_told(cluster: Cluster, reason: str, message: str = "") -> bool:
    found = await cluster.all(EVENTS, "")
    return any(event["reason"] == reason and message in event["message"] for event in found)


async def test_the_first_start_makes_a_class_and_the_next_does_not(cluster: Cluster, volumes: Add) -> None:
    async with cluster.controllers(volumes):
        found = await until(partial(cluster.read, STORAGE_CLASSES, "local-path"))
        assert found["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
        assert found["provisioner"] == "shoal.dev/local-path"
        assert found["allowVolumeExpansion"] is True
        assert (found["volumeBindingMode"], found["reclaimPolicy"]) == ("Immediate", "Delete")
    await cluster.client.delete(STORAGE_CLASSES, "local-path")
    async with cluster.controllers(volumes) as manager:
        await at_rest(manager)
        assert await cluster.read(STORAGE_CLASSES, "local-path") is None


async def test_a_claim_gets_a_folder_that_goes_with_it(cluster: Cluster, volumes: Add, folder: Path) -> None:
    async with cluster.controllers(volumes):
        await until(partial(cluster.read, STORAGE_CLASSES, "local-path"))
        made = await make_claim(cluster, "c")
        claim = await until(partial(claim_is, cluster, "c", "Bound"))
        name = f"pvc-{made['metadata']['uid']}"
        assert claim["spec"]["volumeName"] == name
        assert claim["spec"]["storageClassName"] == "local-path"
        assert claim["metadata"]["annotations"] == {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
            "volume.kubernetes.io/storage-provisioner": PROVISIONER,
            "volume.beta.kubernetes.io/storage-provisioner": PROVISIONER,
        }
        assert claim["status"]["capacity"] == {"storage": "1Gi"}
        assert claim["status"]["accessModes"] == [RWO]
        volume = await until(partial(volume_is, cluster, name, "Bound"))
        assert volume["metadata"]["annotations"] == {
            "pv.kubernetes.io/bound-by-controller": "yes",
            "pv.kubernetes.io/provisioned-by": PROVISIONER,
        }
        assert volume["spec"]["hostPath"] == {"path": str(folder / name), "type": "DirectoryOrCreate"}
        assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
        assert volume["spec"]["claimRef"]["uid"] == made["metadata"]["uid"]
        told = f"Successfully provisioned volume {name} using {PROVISIONER}"
        await until(partial(is_told, cluster, "ProvisioningSucceeded", told))
        (folder / name).mkdir()
        (folder / name / "weights").write_text("…")
        await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, "c", "default")
        await until(partial(is_gone, cluster, PERSISTENT_VOLUMES, name))
        assert not (folder / name).exists()
        assert folder.exists()


async def test_a_controller_that_starts_on_a_settled_cluster_writes_nothing(cluster: Cluster, volumes: Add) -> None:
    async with cluster.controllers(volumes):
        await until(partial(cluster.read, STORAGE_CLASSES, "local-path"))
        await make_class(cluster, "later", volumeBindingMode="WaitForFirstConsumer")
        await make_class(cluster, "foreign", provisioner="example.com/elsewhere")
        await make_claim(cluster, "bound")
        await make_claim(cluster, "waits", storageClassName="later")
        await make_claim(cluster, "foreign", storageClassName="foreign")
        await make_claim(cluster, "none", storageClassName="")
        await make_volume(cluster, "free", storageClassName="other")
        await until(partial(claim_is, cluster, "bound", "Bound"))
        await until(partial(volume_is, cluster, "free", "Available"))
        await until(partial(is_told, cluster, "WaitForFirstConsumer"))
        await until(partial(is_told, cluster, "ExternalProvisioning", "'example.com/elsewhere'"))
        await until(partial(is_told, cluster, "FailedBinding", "no storage class is set"))
        # Events tell times to the second: what was made in this one is not old yet.
        await asyncio.sleep(1.1)
    async with cluster.controllers(volumes) as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0


async def test_volumes_that_are_there_are_bound_smallest_first(cluster: Cluster, plain: Add) -> None:
    async with cluster.controllers(plain):
        await make_volume(cluster, "large", "9Gi")
        await make_volume(cluster, "small", "2Gi")
        await until(partial(volume_is, cluster, "large", "Available"))
        await until(partial(volume_is, cluster, "small", "Available"))
        await make_claim(cluster, "c", storageClassName="")
        claim = await until(partial(claim_is, cluster, "c", "Bound"))
        assert claim["spec"]["volumeName"] == "small"
        assert claim["status"]["capacity"] == {"storage": "2Gi"}
        volume = await until(partial(volume_is, cluster, "small", "Bound"))
        assert volume["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
        reference = volume["spec"]["claimRef"]
        assert (reference["kind"], reference["namespace"], reference["name"]) == (
            "PersistentVolumeClaim",
            "default",
            "c",
        )
        await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, "c", "default")
        released = await until(partial(volume_is, cluster, "small", "Released"))
        assert released["spec"]["claimRef"]["name"] == "c"


async def test_a_claim_that_waits_gets_a_volume_when_one_appears(cluster: Cluster, plain: Add) -> None:
    async with cluster.controllers(plain):
        await make_claim(cluster, "c", storageClassName="")
        await until(partial(is_told, cluster, "FailedBinding"))
        await make_volume(cluster, "v")
        await until(partial(claim_is, cluster, "c", "Bound"))


async def test_many_claims_share_out_the_volumes_without_one_too_many(cluster: Cluster, plain: Add) -> None:
    for number in range(8):
        await make_volume(cluster, f"v{number}")
        await make_claim(cluster, f"c{number}", storageClassName="")
    async with cluster.controllers(plain):

        async def all_bound() -> Any:
            claims = await cluster.all(PERSISTENT_VOLUME_CLAIMS)
            bound = [claim["spec"]["volumeName"] for claim in claims if claim["status"].get("phase") == "Bound"]
            return bound if len(bound) == 8 else None

        assert len(set(await until(all_bound))) == 8


async def test_a_reserved_volume_is_for_its_claim_alone(cluster: Cluster, plain: Add) -> None:
    async with cluster.controllers(plain):
        await make_volume(cluster, "v", claimRef={"namespace": "default", "name": "mine"})
        await until(partial(volume_is, cluster, "v", "Available"))
        await make_claim(cluster, "other", storageClassName="")
        await until(partial(is_told, cluster, "FailedBinding"))
        await make_claim(cluster, "mine", storageClassName="")
        await until(partial(claim_is, cluster, "mine", "Bound"))
        volume = await until(partial(volume_is, cluster, "v", "Bound"))
        assert "annotations" not in volume["metadata"]
        assert volume["spec"]["claimRef"]["uid"]


async def test_a_claim_can_name_its_volume(cluster: Cluster, plain: Add) -> None:
    async with cluster.controllers(plain):
        await make_claim(cluster, "c", "5Gi", storageClassName="", volumeName="v")
        await make_volume(cluster, "v", "2Gi")
        told = 'Cannot bind to requested volume "v": requested PV is too small'
        await until(partial(is_told, cluster, "VolumeMismatch", told))
        await make_claim(cluster, "d", "1Gi", storageClassName="", volumeName="v")
        claim = await until(partial(claim_is, cluster, "d", "Bound"))
        assert claim["metadata"]["annotations"] == {"pv.kubernetes.io/bind-completed": "yes"}
        await make_claim(cluster, "e", "1Gi", storageClassName="", volumeName="v")
        await until(partial(is_told, cluster, "FailedBinding", 'volume "v" already bound to a different claim.'))


async def test_a_claim_whose_volume_is_gone_is_lost(cluster: Cluster, plain: Add) -> None:
    async with cluster.controllers(plain):
        await make_volume(cluster, "v")
        await make_claim(cluster, "c", storageClassName="")
        await until(partial(claim_is, cluster, "c", "Bound"))
        await cluster.client.delete(PERSISTENT_VOLUMES, "v")
        assert not await is_gone(cluster, PERSISTENT_VOLUMES, "v")  # a bound volume is kept
        patch = {"metadata": {"finalizers": None}}
        await cluster.client.merge_patch(PERSISTENT_VOLUMES.documents(), "v", patch)
        claim = await until(partial(claim_is, cluster, "c", "Lost"))
        assert "capacity" not in claim["status"]
        await until(partial(is_told, cluster, "ClaimLost", "Bound claim has lost its PersistentVolume."))


async def test_a_claim_waits_for_the_node_of_its_first_user(cluster: Cluster, plain: Add) -> None:
    await make_class(cluster, "later", volumeBindingMode="WaitForFirstConsumer")
    await cluster.make(NODES, {"metadata": {"name": "n"}})
    async with cluster.controllers(plain):
        await make_claim(cluster, "c", storageClassName="later")
        await until(partial(is_told, cluster, "WaitForFirstConsumer", "waiting for first consumer to be created"))
        await make_user(cluster, "p", "c")
        await until(partial(is_told, cluster, "WaitForPodScheduled", "waiting for pod p to be scheduled"))
        assert await claim_is(cluster, "c", "Pending")
        await make_user(cluster, "q", "c", node="n")
        await until(partial(claim_is, cluster, "c", "Bound"))
        await make_claim(cluster, "chosen", storageClassName="later")
        mark = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}}
        await cluster.client.merge_patch(PERSISTENT_VOLUME_CLAIMS.documents(), "chosen", mark, "default")
        await until(partial(claim_is, cluster, "chosen", "Bound"))


async def test_a_claim_without_a_class_gets_the_default_one_later(cluster: Cluster, plain: Add) -> None:
    async with cluster.controllers(plain):
        await make_claim(cluster, "c")
        await until(partial(is_told, cluster, "FailedBinding"))
        body = {
            "metadata": {"name": "late", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": PROVISIONER,
        }
        await cluster.make(STORAGE_CLASSES, body)
        claim = await until(partial(claim_is, cluster, "c", "Bound"))
        assert claim["spec"]["storageClassName"] == "late"


async def test_a_missing_class_is_told(cluster: Cluster, plain: Add) -> None:
    async with cluster.controllers(plain):
        await make_claim(cluster, "c", storageClassName="gone")
        await until(partial(is_told, cluster, "ProvisioningFailed", 'storageclass.storage.k8s.io "gone" not found'))
        await make_class(cluster, "gone")
        await until(partial(claim_is, cluster, "c", "Bound"))


async def test_a_claim_grows_with_its_request(cluster: Cluster, volumes: Add) -> None:
    async with cluster.controllers(volumes):
        await until(partial(cluster.read, STORAGE_CLASSES, "local-path"))
        await make_claim(cluster, "c")
        bound = await until(partial(claim_is, cluster, "c", "Bound"))
        grown = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
        await cluster.client.merge_patch(PERSISTENT_VOLUME_CLAIMS.documents(), "c", grown, "default")

        async def has_grown() -> bool:
            claim = await cluster.read(PERSISTENT_VOLUME_CLAIMS, "c") or {}
            return bool(claim["status"]["capacity"] == {"storage": "3Gi"})

        await until(has_grown)
        volume = await cluster.read(PERSISTENT_VOLUMES, bound["spec"]["volumeName"]) or {}
        assert volume["spec"]["capacity"] == {"storage": "3Gi"}


async def test_a_claim_is_kept_while_a_pod_on_a_node_uses_it(cluster: Cluster, volumes: Add) -> None:
    await cluster.make(NODES, {"metadata": {"name": "n"}})
    async with cluster.controllers(volumes) as manager:
        await until(partial(cluster.read, STORAGE_CLASSES, "local-path"))
        await make_claim(cluster, "c")
        bound = await until(partial(claim_is, cluster, "c", "Bound"))
        await make_user(cluster, "p", "c", node="n")
        await at_rest(manager)
        await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, "c", "default")
        await at_rest(manager)
        assert not await is_gone(cluster, PERSISTENT_VOLUME_CLAIMS, "c")
        await cluster.client.delete(PODS, "p", "default", grace_seconds=0)
        await until(partial(is_gone, cluster, PERSISTENT_VOLUME_CLAIMS, "c"))
        await until(partial(is_gone, cluster, PERSISTENT_VOLUMES, bound["spec"]["volumeName"]))


async def test_a_claim_is_kept_for_a_pod_that_is_not_seen_yet(cluster: Cluster, volumes: Add) -> None:
    async with cluster.controllers(volumes) as manager:
        await until(partial(cluster.read, STORAGE_CLASSES, "local-path"))
        for name in ("used", "unused"):
            await make_claim(cluster, name)
            await until(partial(claim_is, cluster, name, "Bound"))
        with behind(manager.cache.informer(PODS)):
            await make_user(cluster, "pod", "used", node="n1")
            for name in ("used", "unused"):
                await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, name, "default")
            await until(partial(is_gone, cluster, PERSISTENT_VOLUME_CLAIMS, "unused"))
            await asyncio.sleep(0.1)
            assert await claim_is(cluster, "used", "Bound")
        await cluster.client.delete(PODS, "pod", "default", grace_seconds=0)
        await until(partial(is_gone, cluster, PERSISTENT_VOLUME_CLAIMS, "used"))


async def test_a_pod_brings_its_claims_with_it(cluster: Cluster, volumes: Add) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"accessModes": [RWO], "resources": {"requests": {"storage": "1Gi"}}},
    }
    scratch = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    async with cluster.controllers(volumes):
        await until(partial(cluster.read, STORAGE_CLASSES, "local-path"))
        pod = await cluster.make(PODS, pod_manifest("p", volumes=scratch))
        claim = await until(partial(claim_is, cluster, "p-scratch", "Bound"))
        assert claim["metadata"]["labels"] == {"a": "b"}
        (owner,) = claim["metadata"]["ownerReferences"]
        assert owner == {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": pod.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, "p-scratch", "default")

        async def is_made_again() -> bool:
            found = await cluster.read(PERSISTENT_VOLUME_CLAIMS, "p-scratch")
            return found is not None and found["metadata"]["uid"] != claim["metadata"]["uid"]

        await until(is_made_again)
        await make_claim(cluster, "q-scratch")
        await cluster.make(PODS, pod_manifest("q", volumes=scratch))
        told = "ephemeral volume scratch: PVC default/q-scratch was not created for pod default/q (pod is not owner)"
        await until(partial(is_told, cluster, "FailedBinding", told))


async def test_a_volume_that_was_not_made_here_is_never_removed(
    cluster: Cluster, plain: Add, tmp_path: Path, folder: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    async with cluster.controllers(plain):
        policy = {"persistentVolumeReclaimPolicy": "Delete"}
        await make_volume(cluster, "v", hostPath={"path": str(precious)}, **policy)
        forged = {
            "metadata": {"name": "f", "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
            "spec": {
                "accessModes": [RWO],
                "capacity": {"storage": "2Gi"},
                "hostPath": {"path": str(precious)},
                **policy,
            },
        }
        await cluster.make(PERSISTENT_VOLUMES, forged)
        await make_claim(cluster, "c", storageClassName="", volumeName="v")
        await make_claim(cluster, "d", storageClassName="", volumeName="f")
        await until(partial(claim_is, cluster, "c", "Bound"))
        await until(partial(claim_is, cluster, "d", "Bound"))
        for name in "cd":
            await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, name, "default")
        await until(partial(volume_is, cluster, "v", "Failed"))
        failed = await until(partial(volume_is, cluster, "f", "Failed"))
        assert str(folder) in failed["status"]["message"]
        assert precious.exists()
        await until(partial(is_told, cluster, "VolumeFailedDelete"))
        keep = {"spec": {"persistentVolumeReclaimPolicy": "Retain"}}
        await cluster.client.merge_patch(PERSISTENT_VOLUMES, "f", keep)
        await cluster.client.delete(PERSISTENT_VOLUMES, "f")
        await until(partial(is_gone, cluster, PERSISTENT_VOLUMES, "f"))
        assert precious.exists()


async def test_a_volume_that_was_made_before_a_crash_is_bound(cluster: Cluster, plain: Add, folder: Path) -> None:
    await make_class(cluster, "local")
    made = await make_claim(cluster, "c", storageClassName="local")
    claim = await cluster.client.get(PERSISTENT_VOLUME_CLAIMS, "c", "default")
    storage_class = await cluster.client.get(STORAGE_CLASSES, "local")
    await cluster.make(PERSISTENT_VOLUMES, new_volume(claim, storage_class, folder))
    async with cluster.controllers(plain):
        bound = await until(partial(claim_is, cluster, "c", "Bound"))
        assert bound["spec"]["volumeName"] == f"pvc-{made['metadata']['uid']}"
        assert len(await cluster.all(PERSISTENT_VOLUMES)) == 1


async def test_what_was_released_while_nobody_looked_is_removed(cluster: Cluster, plain: Add, folder: Path) -> None:
    await make_class(cluster, "local")
    async with cluster.controllers(plain):
        await make_claim(cluster, "c", storageClassName="local")
        bound = await until(partial(claim_is, cluster, "c", "Bound"))
    name = bound["spec"]["volumeName"]
    (folder / name).mkdir(parents=True)
    patch = {"metadata": {"finalizers": None}}
    await cluster.client.merge_patch(PERSISTENT_VOLUME_CLAIMS.documents(), "c", patch, "default")
    await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, "c", "default")
    async with cluster.controllers(plain):
        await until(partial(is_gone, cluster, PERSISTENT_VOLUMES, name))
        assert not (folder / name).exists()


async def test_a_volume_of_a_claim_that_has_another_is_free_again(cluster: Cluster, plain: Add) -> None:
    async with cluster.controllers(plain):
        await make_volume(cluster, "v")
        claim = await make_claim(cluster, "c", storageClassName="")
        await until(partial(claim_is, cluster, "c", "Bound"))
        reference = {"namespace": "default", "name": "c", "uid": claim["metadata"]["uid"]}
        spec = {"accessModes": [RWO], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/srv"}}
        mark = {"pv.kubernetes.io/bound-by-controller": "yes"}
        ours = {"metadata": {"name": "w", "annotations": mark}, "spec": {**spec, "claimRef": reference}}
        theirs = {"metadata": {"name": "x"}, "spec": {**spec, "claimRef": reference}}
        await cluster.make(PERSISTENT_VOLUMES, ours)
        await cluster.make(PERSISTENT_VOLUMES, theirs)
        freed = await until(partial(volume_is, cluster, "w", "Available"))
        assert "claimRef" not in freed["spec"]
        reserved = await until(partial(volume_is, cluster, "x", "Available"))
        assert reserved["spec"]["claimRef"] == {"namespace": "default", "name": "c"}


async def test_a_volume_that_is_to_be_kept_outlives_its_claim(cluster: Cluster, plain: Add, folder: Path) -> None:
    await make_class(cluster, "local", reclaimPolicy="Retain")
    async with cluster.controllers(plain):
        await make_claim(cluster, "c", storageClassName="local")
        bound = await until(partial(claim_is, cluster, "c", "Bound"))
        name = bound["spec"]["volumeName"]
        (folder / name).mkdir(parents=True)
        await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, "c", "default")
        released = await until(partial(volume_is, cluster, name, "Released"))
        assert released["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
        await cluster.client.delete(PERSISTENT_VOLUMES, name)
        await until(partial(is_gone, cluster, PERSISTENT_VOLUMES, name))
        assert (folder / name).exists()


async def test_content_is_kept_once_somebody_asks_for_that_though_it_is_not_seen_yet(
    cluster: Cluster, plain: Add, folder: Path
) -> None:
    await make_class(cluster, "local")
    async with cluster.controllers(plain) as manager:
        made = await make_claim(cluster, "c", storageClassName="local")
        name = f"pvc-{made['metadata']['uid']}"
        await until(partial(claim_is, cluster, "c", "Bound"))
        folder.mkdir()
        (folder / name).touch()  # cannot be removed as a folder
        await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, "c", "default")
        await until(partial(volume_is, cluster, name, "Failed"))
        with behind(manager.cache.informer(PERSISTENT_VOLUMES)):
            keep = {"spec": {"persistentVolumeReclaimPolicy": "Retain"}}
            await cluster.client.merge_patch(PERSISTENT_VOLUMES, name, keep)
            (folder / name).unlink()
            (folder / name).mkdir()
            (folder / name / "model").write_text("weights")
            await asyncio.sleep(0.5)  # it is tried again and again
            assert (folder / name / "model").read_text() == "weights"
