from __future__ import annotations

import contextlib
import json
import signal
import ssl
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from shoal.cluster.keyring import kubeconfig
from shoal.cluster.kubernetes import (
    Binaries,
    MissingBinaries,
    Part,
    PortTaken,
    RealKubernetes,
    StartFailed,
    Unreachable,
)
from tests.support.clusters.real import StartKube, kubectl_for
from tests.support.programs.kubectl import Kubectl
from tests.support.waiting import is_alive, wait_until

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"

WIDGETS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "launchedwidgets.tests.shoal.dev"},
    "spec": {
        "group": "tests.shoal.dev",
        "scope": "Namespaced",
        "names": {"kind": "LaunchedWidget", "plural": "launchedwidgets"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"key": "value"}}


def who_am_i(kube: RealKubernetes, **headers: str) -> tuple[int, dict[str, Any]]:
    """What the server says of the one who asks: its status, and the user's name and groups."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    request = urllib.request.Request(
        f"{kube.server}/apis/authentication.k8s.io/v1/selfsubjectreviews",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", **headers},
    )
    try:
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=kube.ca_file)) as answer:
            return answer.status, json.load(answer)["status"]["userInfo"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, {}


@pytest.fixture
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def as_user(kube: RealKubernetes, tmp_path: Path) -> Kubectl:
    """A kubectl signed in as a user that nobody has given any right."""
    (tmp_path / "kubeconfig").write_text(kube.kubeconfig_for("ann", ["staff"]))
    return kubectl_for(tmp_path / "kubeconfig", tmp_path / "cache")


# Who may sign in, and as whom


def test_kubectl_talks_to_it(kubectl: Kubectl) -> None:
    assert kubectl.json("version")["serverVersion"]["gitVersion"].startswith("v1.")
    assert "namespace/default" in kubectl("get", "namespaces", "-o", "name")


def test_a_token_works_for_a_user_who_was_not_known_at_the_start(kube: RealKubernetes) -> None:
    status, user = who_am_i(kube, Authorization=f"Bearer {kube.token_for('ann', ['staff', 'gpu'])}")
    assert status == 201
    assert user["username"] == "ann"
    assert set(user["groups"]) == {"staff", "gpu", "system:authenticated"}


def test_a_wrong_token_is_refused(kube: RealKubernetes) -> None:
    assert who_am_i(kube, Authorization=f"Bearer {kube.token_for('ann')}x")[0] == 401
    assert who_am_i(kube, Authorization="Bearer guessed")[0] == 401


def test_a_client_certificate_signs_in(kube: RealKubernetes, tmp_path: Path) -> None:
    pair = kube.certificate_for("bob", ["ops"])
    config = kubeconfig(kube.server, authority=kube.ca_file.read_bytes(), user="bob", sign_in=pair)
    (tmp_path / "kubeconfig").write_text(config)
    user = kubectl_for(tmp_path / "kubeconfig", tmp_path / "cache").json("auth", "whoami")["status"]["userInfo"]
    assert user["username"] == "bob"
    assert set(user["groups"]) == {"ops", "system:authenticated"}


def test_rbac_refuses_a_user_without_rights_and_heeds_a_new_binding(
    kubectl: Kubectl, as_user: Kubectl, namespace: str
) -> None:
    refused = as_user.run("get", "configmaps", namespace=namespace)
    assert refused.returncode == 1
    assert 'User "ann" cannot list resource "configmaps"' in refused.stderr

    kubectl("create", "rolebinding", "staff-reads", "--clusterrole=view", "--group=staff", namespace=namespace)
    wait_until(
        lambda: as_user.run("get", "configmaps", namespace=namespace).returncode == 0, "the binding to take effect"
    )


def test_secrets_on_disk_are_for_the_owner_alone(kube: RealKubernetes) -> None:
    assert stat.S_IMODE(kube.data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(kube.kubeconfig.stat().st_mode) == 0o600
    assert {stat.S_IMODE(path.stat().st_mode) for path in (kube.data_dir / "pki").iterdir()} == {0o600}


# What the controller manager adds


def test_pods_can_be_made_in_a_new_namespace_at_once(kubectl: Kubectl, namespace: str) -> None:
    kubectl("run", "one", "--image=none", "--restart=Never", namespace=namespace)
    assert kubectl.json("get", "pod", "one", namespace=namespace)["status"]["phase"] == "Pending"


def test_children_are_collected_after_their_owner(kube: RealKubernetes, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = kube.admin.request("POST", maps, config_map("owner"))
    child = config_map("child")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    child["metadata"]["ownerReferences"] = [reference]
    kube.admin.request("POST", maps, child)
    kube.admin.request("DELETE", f"{maps}/owner")
    wait_until(lambda: not kube.admin.exists(f"{maps}/child"), "the child to be collected")


def test_a_definition_given_at_the_start_is_served_and_its_garbage_collected(start_kube: StartKube) -> None:
    kube = start_kube(controller_manager=True, durable=False, definitions=[WIDGETS])
    widgets = "/apis/tests.shoal.dev/v1/namespaces/default/launchedwidgets"
    body = {"apiVersion": "tests.shoal.dev/v1", "kind": "LaunchedWidget", "metadata": {"name": "owner"}}
    owner = kube.admin.request("POST", widgets, body)
    child = config_map("child")
    child["metadata"]["ownerReferences"] = [
        {key: owner[key] for key in ("apiVersion", "kind")} | {key: owner["metadata"][key] for key in ("name", "uid")}
    ]
    kube.admin.request("POST", CONFIG_MAPS, child)
    kube.admin.request("DELETE", f"{widgets}/owner")
    wait_until(lambda: not kube.admin.exists(f"{CONFIG_MAPS}/child"), "the child to be collected", within=15)


def test_the_scheduler_binds_pods_where_it_was_asked_for(start_kube: StartKube) -> None:
    kube = start_kube(controller_manager=True, scheduler=True, durable=False)
    kube.admin.request("POST", "/api/v1/nodes", {"metadata": {"name": "node-a"}})
    room = {"status": {"capacity": {"cpu": "8", "pods": "10"}, "allocatable": {"cpu": "8", "pods": "10"}}}
    merge = "application/merge-patch+json"
    kube.admin.request("PATCH", "/api/v1/nodes/node-a/status", room, content_type=merge)
    pods = "/api/v1/namespaces/default/pods"
    tolerant = [{"operator": "Exists"}]
    spec = {"containers": [{"name": "main", "image": "none"}], "tolerations": tolerant}
    kube.admin.request("POST", pods, {"metadata": {"name": "one"}, "spec": spec})
    wait_until(lambda: kube.admin.request("GET", f"{pods}/one")["spec"].get("nodeName") == "node-a", "the pod's node")


# Faults


def test_a_killed_api_server_comes_back_with_its_data_on_its_port(kube_with_faults: RealKubernetes) -> None:
    kube, server = kube_with_faults, kube_with_faults.server
    token = kube.token_for("ann")
    kube.admin.request("POST", CONFIG_MAPS, config_map("kept"))
    kube.kill_api_server()
    with pytest.raises(Unreachable):
        kube.admin.request("GET", CONFIG_MAPS)
    assert kube.ended() == [Part.API_SERVER]

    kube.restart_api_server()
    assert kube.server == server
    assert kube.admin.request("GET", f"{CONFIG_MAPS}/kept")["data"] == {"key": "value"}
    assert who_am_i(kube, Authorization=f"Bearer {token}")[1]["username"] == "ann"
    assert kube.ended() == []


def test_a_killed_etcd_comes_back_with_its_data(kube_with_faults: RealKubernetes) -> None:
    kube = kube_with_faults
    kube.admin.request("POST", CONFIG_MAPS, config_map("kept"))
    kube.kill_etcd()
    assert kube.ended() == [Part.ETCD]
    kube.restart_etcd()
    assert kube.admin.request("GET", f"{CONFIG_MAPS}/kept")["data"] == {"key": "value"}
    kube.admin.request("POST", CONFIG_MAPS, config_map("after"))


def test_a_paused_api_server_answers_after_it_is_resumed(kube_with_faults: RealKubernetes) -> None:
    kube = kube_with_faults
    answers: list[bool] = []
    asking = threading.Thread(target=lambda: answers.append(kube.admin.exists("/readyz")))
    with kube.paused():
        asking.start()
        asking.join(0.5)
        assert answers == []
    asking.join(30)
    assert answers == [True]


def test_everything_survives_a_stop_and_a_start(start_kube: StartKube, data_dir: Path) -> None:
    kube = start_kube(data_dir=data_dir)
    kube.admin.request("POST", CONFIG_MAPS, config_map("kept"))
    token, authority = kube.admin_token, kube.ca_file.read_bytes()
    kube.stop()
    assert not kube.is_started

    started = time.monotonic()
    again = start_kube(data_dir=data_dir)
    print(f"etcd and kube-apiserver ready after {time.monotonic() - started:.1f} s")
    assert again.admin.exists(f"{CONFIG_MAPS}/kept")
    assert (again.admin_token, again.ca_file.read_bytes()) == (token, authority)


def test_children_end_and_data_stay_when_the_parent_is_killed(
    binaries: Binaries, start_kube: StartKube, data_dir: Path
) -> None:
    program = f"""
import signal
from pathlib import Path, PosixPath
from shoal.cluster.kubernetes import Binaries, RealKubernetes
kube = RealKubernetes({binaries!r}, Path({str(data_dir)!r}), controller_manager=True)
kube.start()
kube.admin.request("POST", {CONFIG_MAPS!r}, {config_map("kept")!r})
print(*(child.pid for child in kube.processes().values()), flush=True)
signal.pause()
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        children = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(children) == 3
    assert set(processes_in(data_dir)) == set(children)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not any(is_alive(pid) for pid in children), "all parts to end")
    assert start_kube(data_dir=data_dir).admin.exists(f"{CONFIG_MAPS}/kept")


# What can go wrong at the start


def test_a_part_that_refuses_its_flags_is_shown_with_the_end_of_its_log(binaries: Binaries, data_dir: Path) -> None:
    kube = RealKubernetes(binaries, data_dir, extra_flags={Part.API_SERVER: ["--no-such-flag"]})
    with pytest.raises(StartFailed, match="unknown flag: --no-such-flag") as failed:
        kube.start()
    assert failed.value.part is Part.API_SERVER
    assert str(failed.value).startswith(f"kube-apiserver exited with status 1; its log {failed.value.log} ends with:")
    assert not kube.is_started


def test_an_etcd_that_cannot_run_is_the_one_that_is_blamed(binaries: Binaries, data_dir: Path) -> None:
    kube = RealKubernetes(binaries, data_dir, extra_flags={Part.ETCD: ["--no-such-flag"]})
    with pytest.raises(StartFailed, match=r"^etcd exited with status"):
        kube.start()


def test_a_start_that_takes_too_long_is_given_up_and_leaves_nothing_behind(binaries: Binaries, data_dir: Path) -> None:
    kube = RealKubernetes(binaries, data_dir, ready_within=0.05)
    with pytest.raises(StartFailed, match=r"kube-apiserver was not ready within 0\.05 s"):
        kube.start()
    assert not kube.is_started
    assert processes_in(data_dir) == []


def processes_in(folder: Path) -> list[int]:
    """The processes that have this folder as their working directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if (process / "cwd").readlink() == folder:
                found.append(int(process.name))
    return found


def test_a_taken_port_is_named(kube: RealKubernetes, binaries: Binaries, data_dir: Path) -> None:
    port = int(kube.server.rpartition(":")[2])
    with pytest.raises(PortTaken, match=f"port {port} of 127.0.0.1"):
        RealKubernetes(binaries, data_dir, port=port).start()


def test_a_missing_part_is_named_before_anything_starts(binaries: Binaries, data_dir: Path) -> None:
    some = Binaries(etcd=binaries.etcd, kube_apiserver=binaries.kube_apiserver)
    with pytest.raises(MissingBinaries, match=r"^kube-controller-manager not found"):
        RealKubernetes(some, data_dir, controller_manager=True).start()


def test_extra_flags_and_environment_reach_the_api_server(start_kube: StartKube) -> None:
    kube = start_kube(
        extra_flags={Part.API_SERVER: ["--event-ttl=5m"]},
        environment={"GOMAXPROCS": "1"},
    )
    process = Path(f"/proc/{kube.processes()[Part.API_SERVER].pid}")
    assert b"--event-ttl=5m" in (process / "cmdline").read_bytes().split(b"\0")
    assert b"GOMAXPROCS=1" in (process / "environ").read_bytes().split(b"\0")


@pytest.mark.parametrize(("bind", "host"), [("0.0.0.0", "127.0.0.1"), ("127.0.0.2", "127.0.0.2")])
def test_it_listens_where_it_is_told(start_kube: StartKube, bind: str, host: str) -> None:
    kube = start_kube(bind=bind)
    assert kube.server.startswith(f"https://{host}:")
    assert kube.admin.is_ready()
