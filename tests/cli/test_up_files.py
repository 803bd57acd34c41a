"""Whose the files of a running Shoal are: its owner's alone, whatever the umask was, and whoever else tries."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.cluster.kubernetes import Binaries
from tests.support.clusters.both_engines import kube_options
from tests.support.clusters.shoal_up import SHOAL, Shoal
from tests.support.programs.ordinary_user import as_ordinary_user, is_root
from tests.support.waiting import wait_until

as_root = pytest.mark.skipif(not is_root(), reason="acts as another user")
INSIDE = "default"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "writes"},
    "spec": {
        "nodeName": "local",
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "command": [
                    "sh",
                    "-c",
                    "echo said; touch /data/made && stat -c %a / /data /data/a /data/made; sleep 600",
                ],
                "env": [{"name": "PASSWORD", "value": "very secret"}],
                "securityContext": {"runAsUser": 1000},
                "volumeMounts": [
                    {"name": "data", "mountPath": "/data"},
                    {"name": "inner", "mountPath": "/data/a/b"},
                ],
            }
        ],
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "inner", "configMap": {"name": "kube-root-ca.crt"}}],
    },
}


@pytest.fixture(scope="module", params=["000", "077"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shoal]:
    """A Shoal started with some umask, in which an ordinary user's pod runs."""
    shoal = Shoal(tmp_path_factory.mktemp("files") / "data", has_local_node=True)
    with shoal.foreground("--sim=1x1", before=f"umask {request.param}") as (_, line):
        assert line.startswith("Shoal is ready")
        shoal.admin.request("POST", f"/api/v1/namespaces/{INSIDE}/pods", POD)
        path = f"/api/v1/namespaces/{INSIDE}/pods/writes"
        wait_until(lambda: shoal.admin.request("GET", path)["status"].get("phase") == "Running", "the pod", within=60)
        yield shoal
    shoal("down")


def is_for_pods(path: Path) -> bool:
    """Whether containers see the file, in a folder that nobody else may enter: their users must be able to read it."""
    is_of_a_pod = path.is_relative_to("node/pods") and len(path.parts) > 3
    return is_of_a_pod or path.is_relative_to("node/bin") or path == Path("node/nothing")


def private_files(data_dir: Path) -> list[Path]:
    found = [data_dir, *data_dir.rglob("*")]
    return [path for path in found if not is_for_pods(path.relative_to(data_dir))]


def test_every_file_is_its_owners_alone_whatever_the_umask(running: Shoal) -> None:
    modes = {str(path): path.lstat().st_mode for path in private_files(running.data_dir)}
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}
    assert {path for path, mode in modes.items() if stat.S_ISDIR(mode) and stat.S_IMODE(mode) != 0o700} == set()
    kinds = {Path(path).name for path, mode in modes.items() if stat.S_ISSOCK(mode)}
    assert {"api.sock", "scheduler.sock", "controllers.sock", "simulated.sock", "local.sock", "runtime.sock"} <= kinds
    names = {Path(path).name for path in modes}
    assert {"kubeconfig", "endpoints.json", "parts.json", "lock", "ca.key", "admin.token", "api.log"} <= names


def test_what_a_container_was_told_is_in_no_file_that_others_can_read(running: Shoal) -> None:
    holding = [
        path
        for path in running.data_dir.rglob("*")
        if path.is_file() and path.stat().st_size < 1 << 20 and b"very secret" in path.read_bytes()
    ]
    assert holding, "the test knows of no file to look at"
    assert {str(path): oct(path.stat().st_mode) for path in holding if path.stat().st_mode & 0o077} == {}


def test_pods_of_any_user_find_their_files_as_kubernetes_lays_them(running: Shoal) -> None:
    path = f"/api/v1/namespaces/{INSIDE}/pods/writes/log"
    wait_until(lambda: len(log_of(running, path).split()) == 5, "what the pod says", within=30)
    assert log_of(running, path).split() == ["said", "755", "777", "755", "644"]


def log_of(shoal: Shoal, path: str) -> str:
    kubeconfig = json.dumps({"kubeconfig": str(shoal.kubeconfig), "path": path})
    script = """
import asyncio, json, sys
from pathlib import Path
from shoal.kube import Client, HttpTransport, load_connection
async def main(kubeconfig, path):
    client = Client(HttpTransport(load_connection(Path(kubeconfig))))
    try:
        print((await client.read_path(path)).decode(), end="")
    finally:
        await client.close()
asyncio.run(main(**json.loads(sys.argv[1])))
"""
    done = subprocess.run([sys.executable, "-c", script, kubeconfig], capture_output=True, text=True, check=True)
    return done.stdout


INTRUDER = """
import json, os, socket, stat, sys
got = []
for path in json.load(sys.stdin):
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISSOCK(mode):
            with socket.socket(socket.AF_UNIX) as tried:
                tried.connect(path)
        elif stat.S_ISDIR(mode):
            os.listdir(path)
        elif stat.S_ISREG(mode):
            open(path, "rb").read(1)
        else:
            continue
    except (PermissionError, FileNotFoundError):
        continue
    got.append(path)
json.dump(got, sys.stdout)
"""


def got_by_another_user(paths: list[Path]) -> list[str]:
    """Which of these another user of the machine can list, read or connect to."""
    intruder = as_ordinary_user(sys.executable, "-c", INTRUDER)
    done = subprocess.run(
        intruder,
        input=json.dumps([str(path) for path in paths]),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    got: list[str] = json.loads(done.stdout)
    return got


@as_root
def test_another_user_reads_no_file_and_reaches_no_socket(running: Shoal) -> None:
    everything = [running.data_dir, *running.data_dir.rglob("*")]
    assert len(everything) > 50
    assert got_by_another_user(everything) == []


@as_root
def test_nor_does_it_where_the_folder_itself_was_opened(running: Shoal) -> None:
    everything = [*running.data_dir.rglob("*")]
    parents = [
        parent for parent in running.data_dir.parents if parent != Path("/") and not parent.stat().st_mode & 0o001
    ]
    modes = {folder: stat.S_IMODE(folder.stat().st_mode) for folder in (running.data_dir, *parents)}
    try:
        for folder, mode in modes.items():
            folder.chmod(mode | 0o055)
        assert got_by_another_user([running.data_dir]) == [str(running.data_dir)], "the way there is open"
        assert got_by_another_user(everything) == []
    finally:
        for folder, mode in modes.items():
            folder.chmod(mode)


COMMANDS = {
    "up": ["up", "--api-port=0"],
    "up --detach": ["up", "--detach"],
    "apiserver": ["apiserver", "--api-port=0"],
    "status": ["status"],
    "down": ["down"],
    "demo": ["demo"],
    "get": ["get", "trainjobs"],
    "logs": ["logs", "trainjob/x"],
    "explain": ["explain", "pod/x"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_command_trusts_a_folder_that_others_can_write(tmp_path: Path, command: list[str]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o770)
    (data / "endpoints.json").write_text('{"visualizer": "http://127.0.0.1:9"}')
    done = subprocess.run(
        [SHOAL, *command, f"--data-dir={data}"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr == (
        f"shoal: the data dir {data} is writable by its group: run `chmod go-w {data}`, or choose another --data-dir\n"
    )
    assert [path.name for path in data.iterdir()] == ["endpoints.json"]


def test_a_cluster_of_somebody_else_in_the_current_folder_is_not_used(tmp_path: Path) -> None:
    data = tmp_path / ".shoal"
    data.mkdir()
    data.chmod(0o777)
    environment = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    done = subprocess.run(
        [SHOAL, "get", "trainjobs"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
        env=environment,
    )
    assert (done.returncode, f"the data dir {data} is writable by everybody" in done.stderr) == (1, True), done.stderr


def test_a_folder_of_its_owner_is_closed_to_others_when_it_is_used(tmp_path: Path) -> None:
    shoal = Shoal(tmp_path / "data", "--only=api")
    shoal.data_dir.mkdir(mode=0o755)
    with shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready")
        assert stat.S_IMODE(shoal.data_dir.stat().st_mode) == 0o700


@pytest.mark.slow
def test_on_a_real_kubernetes_every_file_is_its_owners_alone_too(tmp_path: Path, binaries: Binaries) -> None:
    shoal = Shoal(tmp_path / "data", "--sim=1x1", *kube_options(binaries))
    with shoal.foreground(before="umask 000") as (_, line):
        assert line.startswith("Shoal is ready")
        modes = {str(path): path.lstat().st_mode for path in private_files(shoal.data_dir)}
    shoal("down")
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}
    assert {"etcd", "kube-apiserver.log", "admin.token"} <= {Path(path).name for path in modes}
