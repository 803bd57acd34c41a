"""Contents on a real (embedded) API server: containers, their files, and the end of it all."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.api.core import (
    SECRETS,
    SERVICES,
)
from shoal.api.core.pod_details import ContainerDetails
from shoal.cluster.node.process.contents import ApiAddress, ConfigProblem, HostEntry, NodeFacts, VolumeProblem
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

# Containers


async def test_variables_come_from_the_cluster(node: Node) -> None:
    await make_config(node, "c", MODE="fast")
    await node.cluster.make(SECRETS, {"metadata": {"name": "s"}, "stringData": {"KEY": "k"}})
    await node.cluster.make(
        SERVICES,
        {"metadata": {"name": "db"}, "spec": {"clusterIP": "10.96.0.77", "ports": [{"port": 5432}]}},
    )
    env = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    pod = await node.add_pod(
        containers=[
            {
                "name": "main",
                "image": "busybox",
                "env": env,
                "envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}],
            }
        ]
    )
    await node.contents.prepare(pod, address=ADDRESS)

    async def spec_with_service() -> Any:
        spec = await spec_of(node, pod)
        return spec if "DB_SERVICE_HOST=10.96.0.77" in spec.env else None

    spec = await until(spec_with_service, within=5)
    assert {"MODE=fast", "KEY=k", f"IP={ADDRESS}", "HOSTNAME=web"} <= set(spec.env)
    assert spec.argv == ["sh"]
    await change_config(node, "c", MODE="slow")

    async def has_changed() -> bool:
        return "MODE=slow" in (await spec_of(node, pod, attempt=1)).env

    await until(has_changed, within=5)


async def test_a_container_without_its_config_map_waits(node: Node) -> None:
    containers = [{"name": "main", "image": "busybox", "envFrom": [{"configMapRef": {"name": "none"}}]}]
    pod = await node.add_pod(containers=containers)
    await node.contents.prepare(pod, address=ADDRESS)
    with pytest.raises(ConfigProblem) as caught:
        await spec_of(node, pod)
    assert (caught.value.reason, caught.value.message) == ("CreateContainerConfigError", 'configmap "none" not found')


async def test_a_variable_is_read_from_what_an_init_container_left(node: Node) -> None:
    pod = await node.add_pod(**mounting("e", {"emptyDir": {}}))
    await node.contents.prepare(pod, address=ADDRESS)
    (node.volume(pod, "e") / "env").write_text("A='left'\n")
    chosen = {"volumeName": "e", "path": "env", "key": "A"}
    container = msgspec.convert(
        {"name": "main", "image": "busybox", "env": [{"name": "V", "valueFrom": {"fileKeyRef": chosen}}]},
        ContainerDetails,
    )
    spec = await node.contents.container(pod, container, attempt=0, address=ADDRESS)
    assert "V=left" in spec.env


async def test_each_run_has_folders_of_its_own_and_earlier_ones_lose_theirs(node: Node) -> None:
    pod = await node.add_pod()
    await node.contents.prepare(pod, address=ADDRESS)
    first = await spec_of(node, pod, attempt=0)
    (Path(first.scratch) / "junk").write_text("x")
    said = node.layout.termination_message(pod.metadata.uid, "main", 0)
    assert stat.S_IMODE(said.stat().st_mode) == 0o666
    said.write_text("last words")
    second = await spec_of(node, pod, attempt=1)
    assert Path(second.scratch).is_dir()
    assert Path(second.log).parent.is_dir()
    assert not Path(first.scratch).exists()
    assert said.read_text() == "last words"
    assert len({first.id, second.id, "x" * 64}) == 3
    assert len(first.id) == 64


async def test_a_run_that_was_lost_while_it_began_begins_with_nothing_again(node: Node) -> None:
    pod = await node.add_pod()
    first = await spec_of(node, pod, attempt=0)
    (Path(first.scratch) / "root").mkdir()
    node.layout.termination_message(pod.metadata.uid, "main", 0).write_text("half a word")
    again = await spec_of(node, pod, attempt=0)
    assert list(Path(again.scratch).iterdir()) == []
    assert node.layout.termination_message(pod.metadata.uid, "main", 0).read_text() == ""


async def test_files_that_could_not_be_written_are_told_of_and_written_later(node: Node) -> None:
    """As where the disk is full; here a folder is in the way."""
    pod = await node.add_pod()
    files = {name: node.layout.etc(pod.metadata.uid, name) for name in ("hosts", "resolv.conf")}
    files["hosts"].mkdir(parents=True)
    for _ in range(2):
        with pytest.raises(VolumeProblem, match=r"the node.s own folder cannot be written: .*hosts"):
            await node.contents.prepare(pod, address=ADDRESS)
    files["hosts"].rmdir()
    await node.contents.prepare(pod, address=ADDRESS)
    assert ADDRESS in files["hosts"].read_text()
    files["resolv.conf"].unlink()
    files["resolv.conf"].mkdir()
    with pytest.raises(VolumeProblem, match=r"the node.s own folder cannot be written: .*resolv\.conf"):
        await node.contents.refresh(pod)


async def test_a_volume_of_a_container_that_was_added_later_is_made_with_it(node: Node) -> None:
    pod = await node.add_pod(volumes=[{"name": "e", "emptyDir": {}}])
    await node.contents.prepare(pod, address=ADDRESS)
    debugger = msgspec.convert(
        {"name": "debugger", "image": "busybox", "volumeMounts": [{"name": "e", "mountPath": "/e"}]}, ContainerDetails
    )
    spec = msgspec.structs.replace(pod.spec, ephemeral_containers=[debugger])
    with_debugger = msgspec.structs.replace(pod, spec=spec)
    started = await node.contents.container(with_debugger, debugger, attempt=0, address=ADDRESS)
    assert Path(next(bind.source for bind in started.binds if bind.target == "/e")).is_dir()


async def test_device_files_are_those_of_the_gpus_that_were_given(cluster: Cluster, tmp_path: Path) -> None:
    def files(gpus: Sequence[str]) -> list[str]:
        return [f"/dev/{gpu.lower()}" for gpu in gpus]

    async with contents_of(cluster, tmp_path / "data", NodeFacts(has_gpus=True), gpu_files=files) as node:
        pod = await node.add_pod()
        with_gpu = await spec_of(node, pod, gpus=["GPU-1"])
        without = await spec_of(node, pod)
        assert (with_gpu.devices, without.devices) == (["/dev/gpu-1"], [])
        assert "CUDA_VISIBLE_DEVICES=GPU-1" in with_gpu.env
        assert "CUDA_VISIBLE_DEVICES=" in without.env


async def test_a_mapping_that_is_broken_keeps_new_containers_waiting(node: Node) -> None:
    pod = await node.add_pod()
    await node.contents.prepare(pod, address=ADDRESS)
    node.layout.images.write_text("images: 5")
    with pytest.raises(ConfigProblem) as caught:
        await spec_of(node, pod)
    assert caught.value.reason == "ErrImagePull"
    node.layout.images.unlink()
    await spec_of(node, pod)


# Files in /etc


async def test_the_files_in_etc_are_written_in_place_and_only_where_they_differ(node: Node) -> None:
    pod = await node.add_pod(hostname="db-0", subdomain="db")
    await node.contents.prepare(pod, address=ADDRESS)
    uid = pod.metadata.uid
    hosts = node.layout.etc(uid, "hosts")
    assert f"{ADDRESS}\tdb-0.db.default.svc.cluster.local\tdb-0\n" in hosts.read_text()
    assert node.layout.etc(uid, "hostname").read_text() == "db-0\n"
    assert node.layout.etc(uid, "resolv.conf").read_text().startswith("nameserver 10.88.0.1\n")
    assert node.contents.hostname(pod) == "db-0"
    before = hosts.stat()
    hosts.write_text(hosts.read_text() + "10.0.0.1 added-inside\n")
    await node.contents.prepare(pod, address=ADDRESS)
    assert "added-inside" in hosts.read_text()
    await node.contents.prepare(pod, address="10.88.0.99")
    assert "10.88.0.99\t" in hosts.read_text()
    assert hosts.stat().st_ino == before.st_ino, "containers have bound this very file"


async def test_in_the_machines_network_names_come_from_hosts_and_the_api_server_is_reached_directly(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (tmp_path / "etc/resolv.conf").write_text("nameserver 192.168.1.1\n")
    facts = NodeFacts(network="host", address="192.168.1.2", api_server=ApiAddress("127.0.0.1", 7443))
    service = {"metadata": {"name": "kubernetes"}, "spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 443}]}}
    async with contents_of(cluster, tmp_path / "data", facts, machine_etc=tmp_path / "etc") as node:
        if await cluster.read(SERVICES, "kubernetes") is None:
            await cluster.make(SERVICES, service)
        pod, broken = await node.add_pod(), await node.add_pod("broken")
        for one in (broken, pod):
            await node.contents.prepare(one, address="192.168.1.2")
        hosts = node.layout.etc(pod.metadata.uid, "hosts")
        node.layout.etc(broken.metadata.uid, "hosts").unlink()
        node.layout.etc(broken.metadata.uid, "hosts").mkdir()  # nobody else has to go without for this
        assert "192.168.1.2\tweb\n" in hosts.read_text()
        node.contents.publish_names(lambda namespace: [HostEntry("192.168.1.2", [f"db.{namespace}.svc", "db"])])
        assert "192.168.1.2\tdb.default.svc\tdb\n" in hosts.read_text()
        assert node.layout.etc(pod.metadata.uid, "resolv.conf").read_text() == "nameserver 192.168.1.1\n"

        async def reaches_the_server() -> bool:
            return "KUBERNETES_SERVICE_HOST=127.0.0.1" in (await spec_of(node, pod)).env

        await until(reaches_the_server, within=5)


# The end


async def test_a_pod_that_goes_leaves_nothing(cluster: Cluster, tmp_path: Path) -> None:
    async with contents_of(cluster, tmp_path / "data", NodeFacts()) as node:
        await make_config(node, "c", a="1")
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "kept").touch()
        pod = await node.add_pod(
            volumes=[
                {"name": "c", "configMap": {"name": "c"}},
                {"name": "e", "emptyDir": {"medium": "Memory"}},
                {"name": "h", "hostPath": {"path": str(outside)}},
            ],
            containers=[
                {
                    "name": "main",
                    "image": "busybox",
                    "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in "ceh"],
                }
            ],
        )
        await node.contents.prepare(pod, address=ADDRESS)
        spec = await spec_of(node, pod)
        memory = Path(next(bind.source for bind in spec.binds if bind.target == "/e"))
        (memory / "file").write_text("x")
        work = Path(spec.scratch) / "usr" / "work" / "work"
        work.mkdir(parents=True)
        work.chmod(0)
        told: list[str] = []
        node.contents.on_change(told.append)
        await node.contents.forget(pod.metadata.uid)
        assert not node.layout.pod(pod.metadata.uid).exists()
        assert not memory.exists()
        assert (outside / "kept").exists()
        await node.contents.forget(pod.metadata.uid)
        await node.contents.forget("never-seen")
        await change_config(node, "c", a="2")
        assert told == []
