from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from shoal.cli.data_dir import DataDir, PartState
from tests.support.clusters.shoal_up import Shoal, with_binaries
from tests.support.programs import command
from tests.support.waiting import is_alive, wait_until

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"key": "value"}}
PARTS = ["api", "controllers", "scheduler", "containers", "node", "network", "portal"]


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


@pytest.fixture
def shoal(tmp_path: Path) -> Iterator[Shoal]:
    """As people have it: with this machine as a node."""
    shoal = Shoal(tmp_path / "data", has_local_node=True)
    yield shoal
    shoal("down")


@dataclass(frozen=True)
class Running:
    """A Shoal that runs, and the line with which it said so."""

    shoal: Shoal
    pid: int
    line: str


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for all claims that leave it as ready as it was: with this machine and two simulated nodes."""
    shoal = Shoal(tmp_path_factory.mktemp("running") / "data", has_local_node=True)
    with shoal.foreground("--sim=2x8:H100") as (process, line):
        yield Running(shoal, process.pid, line)


@pytest.fixture
def hanging(tmp_path: Path) -> Shoal:
    """A Shoal whose etcd and kube-apiserver run and never answer."""
    return with_binaries(tmp_path, etcd="exec sleep 300", **{"kube-apiserver": "exec sleep 300"})


def test_it_says_when_it_is_ready_and_where(running: Running) -> None:
    endpoints = running.shoal.endpoints()
    assert list(endpoints) == ["api", "portal", "visualizer", "metrics", "health"]
    assert running.line.startswith("Shoal is ready: ")
    assert all(f"{name} {address}" in running.line for name, address in endpoints.items())
    assert all(re.fullmatch(r"https?://127\.0\.0\.1:\d+", address) for address in endpoints.values())
    assert f"kubeconfig {running.shoal.kubeconfig}" in running.line
    assert stat.S_IMODE(running.shoal.kubeconfig.stat().st_mode) == 0o600


def test_every_port_answers(running: Running) -> None:
    endpoints = running.shoal.endpoints()
    assert get(f"{endpoints['health']}/healthz") == "ok"
    ready = get(f"{endpoints['health']}/readyz?verbose")
    assert all(f"[+]{part} ok" in ready for part in ("api", "controllers", "node", "network"))
    metrics = get(f"{endpoints['metrics']}/metrics")
    assert 'apiserver_request_total{component="api"' in metrics
    assert 'controller_runtime_reconcile_total{component="controllers"' in metrics
    assert all(f'component="{part}"' in metrics for part in ("node", "network"))
    page = get(endpoints["portal"])
    assert "3 of 3 ready" in page
    assert str(running.shoal.kubeconfig) in page


def test_status_tells_of_nodes_and_pods(running: Running) -> None:
    assert running.shoal.status()["nodes"] == {"total": 3, "ready": 3}
    shown = running.shoal("status").stdout
    assert "3 of 3 ready" in shown
    assert all(re.search(rf"^{part} +running", shown, re.MULTILINE) for part in PARTS)
    assert max(map(len, shown.splitlines())) <= 80


def test_a_data_dir_belongs_to_one(running: Running) -> None:
    second = running.shoal.starting()
    assert second.returncode == 1
    place = running.shoal.data_dir
    assert f"{place} is in use by process {running.pid}: stop it with `shoal down --data-dir" in second.stderr
    assert running.shoal("status").returncode == 0


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_dies_is_started_again_on_its_old_ports(running: Running, name: str) -> None:
    endpoints, place = running.shoal.endpoints(), DataDir(running.shoal.data_dir)

    def part() -> PartState:
        return next(one for one in place.parts() if one.name == name)

    def is_ready() -> bool:
        with suppress(OSError):
            return get(f"{endpoints['health']}/readyz") == "ok"
        return False

    os.kill(part().pid, signal.SIGKILL)
    wait_until(lambda: part().restarts == 1 and part().state == "running", f"{name} to be started again")
    wait_until(is_ready, "Shoal to be ready again")
    assert running.shoal("status").returncode == 0
    assert running.shoal.endpoints() == endpoints


def test_killed_it_ends_whole_and_comes_back_as_it_was_until_a_signal_stops_it(shoal: Shoal) -> None:
    """The signals were inherited as ignored; it stops within ten seconds all the same."""

    def uids() -> dict[str, str]:
        return {node["metadata"]["name"]: node["metadata"]["uid"] for node in shoal.objects("/api/v1/nodes")}

    flags = ("--sim=2x8:H100", "--sim=1x0")
    with shoal.foreground(*flags) as (process, _):
        shoal.admin.request("POST", "/api/v1/namespaces/default/configmaps", CONFIG_MAP)
        first, children = uids(), shoal.pids()
        assert sorted(first) == ["local", "sim-0-0", "sim-0-1", "sim-1-0"]
        assert len(children) == len(PARTS)
        process.kill()
        process.wait()
        wait_until(lambda: not any(is_alive(pid) for pid in children), "all parts to end", within=10)
    assert shoal.status()["running"] is False

    with shoal.foreground(*flags, before="trap '' INT TERM") as (process, line):
        assert line.startswith("Shoal is ready")
        assert shoal.admin.request("GET", "/api/v1/namespaces/default/configmaps/kept")["data"] == {"key": "value"}
        assert uids() == first
        children = shoal.pids()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert not any(is_alive(pid) for pid in children)
    assert not (shoal.data_dir / "endpoints.json").exists()

    refused = shoal.starting("--engine=kube")
    assert refused.returncode == 1
    assert f"{shoal.data_dir} was made with --engine embedded: start it with that" in refused.stderr


def test_detached_it_runs_until_it_is_told_to_stop(shoal: Shoal) -> None:
    before = shoal("status")
    assert before.returncode == 1
    assert f"not running in {shoal.data_dir}" in before.stdout

    started = shoal.starting("--detach")
    assert started.returncode == 0
    assert started.stdout.startswith("Shoal is ready: api https://127.0.0.1:")
    assert sorted(line.split()[0] for line in started.stderr.splitlines()) == sorted(PARTS)
    status = shoal.status()
    assert (status["running"], status["ready"]) == (True, True)
    assert [part["name"] for part in status["parts"]] == ["supervisor", *PARTS]
    assert all(part["memoryBytes"] > 0 for part in status["parts"])
    assert shoal("status").returncode == 0

    stopped = shoal("down")
    assert (stopped.returncode, stopped.stdout) == (0, "Shoal is stopped\n")
    assert not any(is_alive(pid) for pid in [status["pid"], *(part["pid"] for part in status["parts"])])
    again = shoal("down")
    assert (again.returncode, again.stdout) == (0, f"Shoal is not running in {shoal.data_dir}\n")


def test_only_what_is_named_runs(shoal: Shoal) -> None:
    with shoal.foreground("--only=nodes", "--sim=1x0"):
        status = shoal.status()
        expected = [part for part in PARTS if part not in {"scheduler", "portal"}]
        assert [part["name"] for part in status["parts"]] == ["supervisor", *expected]
        assert list(status["endpoints"]) == ["api"]
        assert len(shoal.objects("/api/v1/nodes")) == 2
        assert shoal.objects("/api/v1/serviceaccounts") == []  # those are made by controllers


def test_without_this_machine_as_a_node_nothing_of_it_is_started(tmp_path: Path) -> None:
    shoal = Shoal(tmp_path / "data")
    with shoal.foreground():
        parts = ["supervisor", "api", "controllers", "scheduler", "portal"]
        assert [part["name"] for part in shoal.status()["parts"]] == parts
        assert shoal.objects("/api/v1/nodes") == []
        assert not (shoal.data_dir / "node").exists()


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
    failed = failing.starting(*detach)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "it is broken\nshoal: kube-apiserver exited with status 3: the end of its log" in failed.stderr


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        pytest.param(["--bind=localhost"], 2, "localhost is no IP address", id="a name to bind to"),
        pytest.param(["--api-port=65536"], 2, "--api-port", id="no port"),
        pytest.param(["--sim=16"], 2, "--sim", id="no pool"),
        pytest.param(["--only=api,podal"], 2, "there is no component podal: there are api,", id="no component"),
        pytest.param(["--allowed-host=http://box"], 2, "http://box is no host name", id="no host name"),
        pytest.param(["--allowed-host=*"], 2, "* is no host name", id="no pattern"),
        pytest.param(["--kube-binaries=/nowhere"], 2, "/nowhere", id="no such folder"),
        pytest.param(
            ["--engine=kube", "--kube-binaries=/proc/self/fd"],
            5,
            "etcd and kube-apiserver not found in /proc",
            id="no binaries",
        ),
    ],
)
def test_what_cannot_work_is_said_at_once(tmp_path: Path, options: list[str], code: int, said: str) -> None:
    refused = Shoal(tmp_path)("up", *options)
    assert refused.returncode == code
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("port", ["api", "http", "plugin", "metrics", "health"])
def test_a_taken_port_is_said_before_anything_starts(tmp_path: Path, port: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        refused = Shoal(tmp_path / "data", has_local_node=True).starting(f"--{port}-port={number}")
    assert refused.returncode == 1
    assert refused.stderr == (
        f"shoal: cannot listen on 127.0.0.1:{number}: address already in use: "
        f"choose another --{port}-port, or --{port}-port 0 for any free one\n"
    )
    assert not (tmp_path / "data" / "logs" / "api.log").exists()


def test_all_taken_ports_are_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as one, socket.socket() as other:
        for taken in (one, other):
            taken.bind(("127.0.0.1", 0))
            taken.listen()
        api, health = (taken.getsockname()[1] for taken in (one, other))
        refused = Shoal(tmp_path / "data").starting(f"--api-port={api}", f"--health-port={health}")
    assert refused.returncode == 1
    assert refused.stderr == (
        f"shoal: cannot listen on 127.0.0.1: {api} (--api-port), {health} (--health-port) are taken, "
        "maybe by another Shoal: try --api-port 0 --health-port 0\n"
    )


def test_it_starts_with_nothing_but_python_and_ends_on_an_interrupt_that_was_ignored_before(tmp_path: Path) -> None:
    """No kubectl, no Go, no root: an empty PATH and an empty home."""
    shoal = Shoal(tmp_path / "data", has_local_node=True)
    environment = {"PATH": "/nowhere", "HOME": str(tmp_path / "home")}
    with shoal.foreground(before="trap '' INT TERM", environment=environment) as (process, line):
        assert line.startswith("Shoal is ready")
        assert json.loads((shoal.data_dir / "endpoints.json").read_text())
        children = shoal.pids()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert not any(is_alive(pid) for pid in children)
