"""Volumes of pods on a real (embedded) API server."""

from __future__ import annotations

import base64
import stat
from pathlib import Path
from typing import Any

import pytest

from shoal.api.core import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
)
from shoal.cluster.controllers.volumes import add_volumes
from shoal.cluster.node.process.contents import ConfigProblem, NodeFacts, VolumeProblem
from tests.cluster.node.process.contents.conftest import (
    ADDRESS,
    Node,
    change_config,
    contents_of,
    make_config,
    mounting,
    spec_of,
)
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster
from tests.support.programs.ordinary_user import is_root


async def test_volumes_of_every_kind_are_there_before_the_container_is(node: Node, tmp_path: Path) -> None:
    await node.cluster.make(
        CONFIG_MAPS,
        {"metadata": {"name": "c"}, "data": {"a": "1"}, "binaryData": {"b": base64.b64encode(b"\xff").decode()}},
    )
    await node.cluster.make(SECRETS, {"metadata": {"name": "s"}, "stringData": {"key": "secret"}})
    volumes: dict[str, dict[str, Any]] = {
        "config": {"configMap": {"name": "c"}},
        "secret": {"secret": {"secretName": "s", "defaultMode": 0o400}},
        "self": {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        "all": {"projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}]}},
        "empty": {"emptyDir": {}},
        "memory": {"emptyDir": {"medium": "Memory"}},
        "machine": {"hostPath": {"path": str(tmp_path / "made"), "type": "DirectoryOrCreate"}},
        "unused": {"configMap": {"name": "nobody-misses-it"}},
    }
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in volumes if name != "unused"]
    pod = await node.add_pod(
        volumes=[{"name": name, **source} for name, source in volumes.items()],
        containers=[{"name": "main", "image": "busybox", "volumeMounts": mounts}],
    )
    await node.contents.prepare(pod, address=ADDRESS)
    spec = await spec_of(node, pod)
    bound = {bind.target: bind for bind in spec.binds}
    assert Path(bound["/config"].source, "a").read_text() == "1"
    assert Path(bound["/config"].source, "b").read_bytes() == b"\xff"
    assert stat.S_IMODE(Path(bound["/secret"].source, "key").stat().st_mode) == 0o400
    assert Path(bound["/self"].source, "name").read_text() == "web"
    assert sorted(path.name for path in Path(bound["/all"].source).glob("[!.]*")) == ["a", "b", "key"]
    for name in ("empty", "memory"):
        assert stat.S_IMODE(Path(bound[f"/{name}"].source).stat().st_mode) == 0o777
    assert bound["/machine"].source == str(tmp_path / "made")
    assert {target for target, bind in bound.items() if bind.is_read_only} >= {"/config", "/secret", "/self", "/all"}
    assert not bound["/empty"].is_read_only


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ({"configMap": {"name": "none"}}, 'MountVolume.SetUp failed for volume "x" : configmap "none" not found'),
        ({"secret": {"secretName": "none"}}, 'MountVolume.SetUp failed for volume "x" : secret "none" not found'),
        (
            {"configMap": {"name": "there", "items": [{"key": "y", "path": "y"}]}},
            'MountVolume.SetUp failed for volume "x" : configmap references non-existent config key: y',
        ),
        (
            {"hostPath": {"path": "/dev/null", "type": "Directory"}},
            'MountVolume.SetUp failed for volume "x" : hostPath type check failed: /dev/null is not a directory',
        ),
        (
            {"persistentVolumeClaim": {"claimName": "none"}},
            "Unable to attach or mount volumes: unmounted volumes=[x], unattached volumes=[], failed to process "
            "volumes=[x]: error processing PVC default/none: failed to fetch PVC from API server: "
            'persistentvolumeclaims "none" not found',
        ),
        (
            {"persistentVolumeClaim": {"claimName": "waits"}},
            "Unable to attach or mount volumes: unmounted volumes=[x], unattached volumes=[], failed to process "
            "volumes=[x]: error processing PVC default/waits: PVC is not bound",
        ),
        (
            {"nfs": {"server": "s", "path": "/"}},
            'MountVolume.SetUp failed for volume "x" : volumes of this kind cannot be had on this node: use emptyDir, '
            "configMap, secret, downwardAPI, projected, hostPath, image or persistentVolumeClaim",
        ),
        (
            {"image": {"reference": "busybox"}},
            'MountVolume.SetUp failed for volume "x" : image "busybox" has no files of its own here: give it a rootfs',
        ),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_volume_that_cannot_be_had_is_told_in_a_kubelets_words(
    node: Node, source: dict[str, Any], sentence: str
) -> None:
    await make_config(node, "there", z="1")
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await node.cluster.make(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "waits"}, "spec": claim})
    pod = await node.add_pod(**mounting("x", source))
    with pytest.raises(VolumeProblem) as caught:
        await node.contents.prepare(pod, address=ADDRESS)
    assert caught.value.message.startswith(sentence)


async def test_a_config_map_that_comes_late_is_noticed_and_the_pod_goes_on(node: Node) -> None:
    pod = await node.add_pod(**mounting("x", {"configMap": {"name": "late"}}))
    told: list[str] = []
    node.contents.on_change(told.append)
    with pytest.raises(VolumeProblem):
        await node.contents.prepare(pod, address=ADDRESS)
    await make_config(node, "other", a="1")
    await make_config(node, "late", a="1")

    async def is_told() -> bool:
        return bool(told)

    await until(is_told, within=5)
    assert set(told) == {pod.metadata.uid}
    await node.contents.prepare(pod, address=ADDRESS)
    assert (node.volume(pod, "x") / "a").read_text() == "1"


async def test_a_change_is_written_and_no_change_is_not(node: Node) -> None:
    await make_config(node, "c", a="1", b="1")
    pod = await node.add_pod(**mounting("x", {"configMap": {"name": "c"}}))
    await node.contents.prepare(pod, address=ADDRESS)
    told: list[str] = []
    node.contents.on_change(told.append)
    folder = node.volume(pod, "x")
    before = (folder / "..data").readlink()
    await node.contents.refresh(pod)
    assert (folder / "..data").readlink() == before
    await change_config(node, "c", a="2")

    async def is_told() -> bool:
        return bool(told)

    await until(is_told, within=5)
    await node.contents.refresh(pod)
    assert (folder / "a").read_text() == "2"
    assert (folder / "..data").readlink() != before


async def test_labels_that_change_are_seen_in_files(node: Node) -> None:
    items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
    pod = await node.add_pod(metadata={"labels": {"a": "1"}}, **mounting("x", {"downwardAPI": {"items": items}}))
    await node.contents.prepare(pod, address=ADDRESS)
    await node.cluster.client.merge_patch(PODS, "web", {"metadata": {"labels": {"a": "2"}}}, "default")
    await node.contents.refresh(await node.pod())
    assert (node.volume(pod, "x") / "labels").read_text() == 'a="2"'


async def test_a_secret_that_goes_leaves_what_was_there_and_is_told(node: Node) -> None:
    await node.cluster.make(SECRETS, {"metadata": {"name": "s"}, "stringData": {"key": "1"}})
    pod = await node.add_pod(**mounting("x", {"secret": {"secretName": "s"}}))
    await node.contents.prepare(pod, address=ADDRESS)
    told: list[str] = []
    node.contents.on_change(told.append)
    await node.cluster.client.delete(SECRETS, "s", "default")

    async def is_told() -> bool:
        return bool(told)

    await until(is_told, within=5)
    with pytest.raises(VolumeProblem, match='secret "s" not found'):
        await node.contents.refresh(pod)
    assert (node.volume(pod, "x") / "key").read_text() == "1"


async def test_a_claim_of_the_local_class_is_a_folder_that_anybody_may_write(node: Node, tmp_path: Path) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"spec": claim}

    def add(manager: Any) -> None:
        add_volumes(manager, folder=tmp_path / "claims")

    async with node.cluster.controllers(add):
        await node.cluster.make(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "data"}, "spec": claim})
        pod = await node.add_pod(
            volumes=[
                {"name": "mine", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "frozen", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
                {"name": "own", "ephemeral": {"volumeClaimTemplate": template}},
            ],
            containers=[
                {
                    "name": "main",
                    "image": "busybox",
                    "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in ("mine", "frozen", "own")],
                }
            ],
            nodeName="local",
        )

        async def is_prepared() -> bool:
            try:
                await node.contents.prepare(pod, address=ADDRESS)
            except VolumeProblem:
                return False
            return True

        await until(is_prepared, within=10)
    bound = {bind.target: bind for bind in (await spec_of(node, pod)).binds}
    folder = Path(bound["/mine"].source)
    assert folder.parent == tmp_path / "claims"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777
    assert (bound["/frozen"].source, bound["/frozen"].is_read_only) == (str(folder), True)
    assert bound["/own"].source not in ("", str(folder))


async def test_an_ephemeral_claim_of_another_pod_is_not_taken(node: Node, tmp_path: Path) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "p"}
    made = await node.cluster.make(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "web-x"}, "spec": claim})
    await node.cluster.set_status(PERSISTENT_VOLUME_CLAIMS, "web-x", {"phase": "Bound"})
    volume = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "local": {"path": str(tmp_path)},
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["local"]}]}
                ]
            }
        },
        "claimRef": {"namespace": "default", "name": "web-x", "uid": made.metadata.uid},
        "storageClassName": "manual",
    }
    await node.cluster.make(PERSISTENT_VOLUMES, {"metadata": {"name": "p"}, "spec": volume})
    template = {"spec": {**claim, "volumeName": ""}}
    pod = await node.add_pod(**mounting("x", {"ephemeral": {"volumeClaimTemplate": template}}))
    with pytest.raises(VolumeProblem, match="PVC default/web-x was not created for pod default/web"):
        await node.contents.prepare(pod, address=ADDRESS)
    theirs = await node.add_pod("other", **mounting("x", {"persistentVolumeClaim": {"claimName": "web-x"}}))
    await node.contents.prepare(theirs, address=ADDRESS)
    spec = await spec_of(node, theirs)
    assert next(bind.source for bind in spec.binds if bind.target == "/v") == str(tmp_path)


async def test_parts_of_volumes_are_found_or_made_but_never_outside(node: Node) -> None:
    await make_config(node, "c", file="1")
    pod = await node.add_pod(
        volumes=[{"name": "c", "configMap": {"name": "c"}}, {"name": "e", "emptyDir": {}}],
        containers=[
            {
                "name": "main",
                "image": "busybox",
                "env": [{"name": "WHO", "value": "me"}],
                "volumeMounts": [
                    {"name": "c", "mountPath": "/one", "subPath": "file"},
                    {"name": "e", "mountPath": "/two", "subPathExpr": "logs/$(WHO)"},
                    {"name": "e", "mountPath": "/three", "subPath": "trap"},
                ],
            }
        ],
    )
    await node.contents.prepare(pod, address=ADDRESS)
    trap = node.volume(pod, "e") / "trap"
    trap.symlink_to("/etc")
    with pytest.raises(ConfigProblem) as caught:
        await spec_of(node, pod)
    assert caught.value.message == 'failed to prepare subPath for volumeMount "e" of container "main"'
    trap.unlink()
    binds = (await spec_of(node, pod)).binds
    assert not any(bind.follows_links for bind in binds if bind.target in ("/one", "/two", "/three"))
    bound = {bind.target: bind.source for bind in binds}
    assert Path(bound["/one"]).read_text() == "1"
    assert not Path(bound["/one"]).is_symlink()
    assert Path(bound["/two"]) == node.volume(pod, "e") / "logs" / "me"
    assert stat.S_IMODE(Path(bound["/two"]).stat().st_mode) == 0o777


async def test_places_for_volumes_within_read_only_ones_are_made(node: Node) -> None:
    await make_config(node, "c", file="1")
    mounts = [
        {"name": "c", "mountPath": "/etc/app"},
        {"name": "e", "mountPath": "/etc/app/cache"},
        {"name": "e", "mountPath": "/etc/app/cache/deeper"},
    ]
    pod = await node.add_pod(
        volumes=[{"name": "c", "configMap": {"name": "c"}}, {"name": "e", "emptyDir": {}}],
        containers=[{"name": "main", "image": "busybox", "volumeMounts": mounts}],
    )
    await node.contents.prepare(pod, address=ADDRESS)
    await node.contents.refresh(pod)
    assert [path.name for path in sorted(node.volume(pod, "c").glob("[!.]*"))] == ["cache", "file"]
    assert list((node.volume(pod, "c") / "cache").iterdir()) == []


@pytest.mark.skipif(not is_root(), reason="only root can give files away")
async def test_volumes_belong_to_the_pods_group_where_root_runs_the_node(cluster: Cluster, tmp_path: Path) -> None:
    async with contents_of(cluster, tmp_path / "data", NodeFacts(has_all_ids=True)) as node:
        await make_config(node, "c", a="1")
        pod = await node.add_pod(
            securityContext={"fsGroup": 4321, "runAsUser": 1234},
            volumes=[{"name": "c", "configMap": {"name": "c"}}, {"name": "e", "emptyDir": {}}],
            containers=[
                {
                    "name": "main",
                    "image": "busybox",
                    "volumeMounts": [{"name": "c", "mountPath": "/c"}, {"name": "e", "mountPath": "/e"}],
                }
            ],
        )
        await node.contents.prepare(pod, address=ADDRESS)
        empty = node.volume(pod, "e").stat()
        assert (empty.st_gid, stat.S_IMODE(empty.st_mode)) == (4321, 0o2777)
        assert (node.volume(pod, "c") / "a").stat().st_gid == 4321
        spec = await spec_of(node, pod)
        assert (spec.ids.user, spec.ids.groups) == (1234, [4321])
