from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shoal.cluster.kubernetes import Binaries
from tests.support import command
from tests.support.kube_fixture import kubectl_for
from tests.support.waiting import is_alive, wait_until

SHOAL = str(Path(sys.executable).with_name("shoal"))
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"key": "value"}}


class Shoal:
    """The command in one data dir."""

    def __init__(self, data_dir: Path, *options: str) -> None:
        self.data_dir = data_dir
        self.options = options

    def __call__(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        line = [SHOAL, command, f"--data-dir={self.data_dir}", *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)

    def up(self, *arguments: str) -> list[str]:
        return [SHOAL, "up", f"--data-dir={self.data_dir}", "--api-port=0", *self.options, *arguments]

    @contextmanager
    def foreground(self, *, before: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
        """A running ``shoal up`` and its first line; ``before`` is shell that runs in its process first."""
        command = ["/bin/sh", "-c", f'{before}\nexec "$@"', "sh", *self.up()]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield process, process.stdout.readline()
            finally:
                process.kill()

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("status", "-o", "json").stdout)
        return found

    def pids(self) -> list[int]:
        return [part["pid"] for part in self.status()["parts"]]


@pytest.fixture
def shoal(binaries: Binaries, tmp_path: Path) -> Iterator[Shoal]:
    folders = {path.parent for path in (binaries.etcd, binaries.kube_apiserver)}
    shoal = Shoal(tmp_path / "data", *(f"--kube-binaries={folder}" for folder in folders))
    yield shoal
    shoal("down")


@pytest.fixture
def hanging(tmp_path: Path) -> Shoal:
    """A Shoal whose etcd and kube-apiserver run and never answer."""
    return with_binaries(tmp_path, etcd="exec sleep 300", **{"kube-apiserver": "exec sleep 300"})


def with_binaries(folder: Path, **scripts: str) -> Shoal:
    binaries = folder / "bin"
    binaries.mkdir()
    for name, script in scripts.items():
        (binaries / name).write_text(f"#!/bin/sh\n{script}\n")
        (binaries / name).chmod(0o755)
    return Shoal(folder / "data", f"--kube-binaries={binaries}")


def test_it_says_when_it_is_ready_and_where(shoal: Shoal, tmp_path: Path) -> None:
    with shoal.foreground() as (_, line):
        endpoints = json.loads((shoal.data_dir / "endpoints.json").read_text())
        assert line == f"Shoal is ready: api {endpoints['api']}, kubeconfig {shoal.data_dir / 'kubeconfig'}\n"
        assert stat.S_IMODE((shoal.data_dir / "kubeconfig").stat().st_mode) == 0o600
        kubectl = kubectl_for(shoal.data_dir / "kubeconfig", tmp_path / "cache")
        assert kubectl.json("get", "queues")["items"] == []
        kubectl("create", "deployment", "one", "--image=none")
        wait_until(lambda: kubectl.json("get", "pods")["items"], "the deployment's pod")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: signal.Signals(number).name)
def test_a_signal_stops_everything_within_ten_seconds_even_if_inherited_as_ignored(
    shoal: Shoal, number: signal.Signals
) -> None:
    with shoal.foreground(before="trap '' INT TERM") as (process, line):
        assert line.startswith("Shoal is ready")
        children = shoal.pids()
        assert len(children) == 3
        process.send_signal(number)
        assert process.wait(10) == 0
        assert not any(is_alive(pid) for pid in children)
    assert not (shoal.data_dir / "endpoints.json").exists()


def test_detached_it_runs_until_it_is_told_to_stop(shoal: Shoal) -> None:
    before = shoal("status")
    assert before.returncode == 1
    assert f"not running in {shoal.data_dir}" in before.stdout

    started = subprocess.run(shoal.up("--detach"), capture_output=True, text=True, check=False, timeout=60)
    assert (started.returncode, started.stderr) == (0, "")
    assert started.stdout.startswith("Shoal is ready: api https://127.0.0.1:")
    status = shoal.status()
    assert (status["running"], status["ready"]) == (True, True)
    assert [part["name"] for part in status["parts"]] == ["etcd", "kube-apiserver", "kube-controller-manager"]
    assert shoal("status").returncode == 0

    stopped = shoal("down")
    assert (stopped.returncode, stopped.stdout) == (0, "Shoal is stopped\n")
    assert not any(is_alive(pid) for pid in [status["pid"], *(part["pid"] for part in status["parts"])])
    again = shoal("down")
    assert (again.returncode, again.stdout) == (0, f"Shoal is not running in {shoal.data_dir}\n")


def test_a_data_dir_belongs_to_one(shoal: Shoal) -> None:
    with shoal.foreground() as (process, _):
        second = subprocess.run(shoal.up(), capture_output=True, text=True, check=False, timeout=60)
        assert second.returncode == 1
        assert (
            f"{shoal.data_dir} is in use by process {process.pid}: stop it with `shoal down --data-dir" in second.stderr
        )
        assert shoal("status").returncode == 0


def test_killed_its_parts_end_and_its_data_stay(shoal: Shoal, tmp_path: Path) -> None:
    kubectl = kubectl_for(shoal.data_dir / "kubeconfig", tmp_path / "cache")
    with shoal.foreground() as (process, _):
        kubectl.apply(CONFIG_MAP)
        children = shoal.pids()
        process.kill()
        process.wait()
        wait_until(lambda: not any(is_alive(pid) for pid in children), "all parts to end", within=10)
    assert shoal.status()["running"] is False
    with shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready")
        assert kubectl.json("get", "configmap", "kept")["data"] == {"key": "value"}


@pytest.mark.parametrize(
    "name",
    [
        "kube-apiserver",
        pytest.param("etcd", marks=pytest.mark.slow),
        pytest.param("kube-controller-manager", marks=pytest.mark.slow),
    ],
)
def test_a_part_that_dies_is_started_again_and_status_says_so(shoal: Shoal, name: str) -> None:
    def restarts() -> int:
        return next(int(part["restarts"]) for part in shoal.status()["parts"] if part["name"] == name)

    with shoal.foreground():
        os.kill(next(part["pid"] for part in shoal.status()["parts"] if part["name"] == name), signal.SIGKILL)
        wait_until(lambda: restarts() == 1, f"{name} to be started again")
        wait_until(lambda: shoal("status").returncode == 0, "Shoal to be ready again")


def test_a_start_can_be_given_up(hanging: Shoal) -> None:
    with subprocess.Popen(hanging.up()) as process:
        log = hanging.data_dir / "logs" / "kube-apiserver.log"
        wait_until(log.exists, "kube-apiserver to be started")
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 3
        assert time.monotonic() - started < 10
    assert hanging.status()["running"] is False


def test_a_folder_that_holds_other_things_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir(mode=0o755)
    (mine / "letter").write_text("dear")
    for options, code, said in (
        ([f"--data-dir={mine}"], 1, "holds other things: choose a new or empty folder"),
        ([f"--data-dir={mine / 'letter'}"], 1, "is a file: choose another --data-dir"),
        (["--data-dir="], 2, "name a folder of its own"),
    ):
        refused = command.shoal("up", *options)
        assert (refused.returncode, said in refused.stderr) == (code, True), refused.stderr
    assert [path.name for path in mine.iterdir()] == ["letter"]
    assert mine.stat().st_mode & 0o777 == 0o755


def test_while_it_starts_status_says_not_ready(hanging: Shoal) -> None:
    with subprocess.Popen(hanging.up()) as process:
        wait_until((hanging.data_dir / "logs" / "kube-apiserver.log").exists, "kube-apiserver to be started")
        status = hanging.status()
        assert (status["running"], status["ready"], status["endpoints"]) == (True, False, {})
        process.terminate()


@pytest.mark.parametrize("detach", [pytest.param([], id="foreground"), pytest.param(["--detach"], id="detached")])
def test_a_start_that_fails_shows_the_end_of_the_log(tmp_path: Path, detach: list[str]) -> None:
    failing = with_binaries(tmp_path, etcd="exec sleep 300", **{"kube-apiserver": "echo it is broken >&2; exit 3"})
    failed = subprocess.run(failing.up(*detach), capture_output=True, text=True, check=False, timeout=60)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "it is broken\nshoal: kube-apiserver exited with status 3: the end of its log" in failed.stderr


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        pytest.param(["--engine=embedded"], 2, "embedded is not available yet: use --engine kube", id="embedded"),
        pytest.param(["--bind=localhost"], 2, "localhost is no IP address", id="a name to bind to"),
        pytest.param(["--api-port=65536"], 2, "--api-port", id="no port"),
        pytest.param(["--kube-binaries=/nowhere"], 2, "/nowhere", id="no such folder"),
        pytest.param(
            ["--kube-binaries=/proc/self/fd"], 5, "etcd and kube-apiserver not found in /proc", id="no binaries"
        ),
    ],
)
def test_what_cannot_work_is_said_at_once(tmp_path: Path, options: list[str], code: int, said: str) -> None:
    refused = Shoal(tmp_path)("up", *options)
    assert refused.returncode == code
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_taken_port_is_said(shoal: Shoal, tmp_path: Path) -> None:
    with shoal.foreground():
        port = shoal.status()["endpoints"]["api"].rpartition(":")[2]
        second = Shoal(tmp_path / "second")("up", f"--api-port={port}", *shoal.options)
        assert second.returncode == 5
        assert f"port {port} of 127.0.0.1 cannot be used (Address already in use)" in second.stderr
