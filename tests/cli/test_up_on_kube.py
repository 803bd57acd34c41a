"""``shoal up --engine kube``: the same on a real kube-apiserver and etcd."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from shoal.cluster.kubernetes import Binaries
from tests.support.clusters.both_engines import kube_options
from tests.support.clusters.real import kubectl_for
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import is_alive, wait_until

pytestmark = pytest.mark.slow

KUBERNETES = ["etcd", "kube-apiserver", "kube-controller-manager"]


@pytest.fixture
def shoal(binaries: Binaries, tmp_path: Path) -> Iterator[Shoal]:
    shoal = Shoal(tmp_path / "data", *kube_options(binaries))
    yield shoal
    shoal("down")


def test_pods_run_on_simulated_nodes(shoal: Shoal, tmp_path: Path) -> None:
    with shoal.foreground("--sim=2x8:H100") as (process, line):
        assert line.startswith("Shoal is ready")
        assert [part["name"] for part in shoal.status()["parts"]] == [
            "supervisor", "kubernetes", "controllers", "scheduler", "portal", *KUBERNETES,
        ]  # fmt: skip
        kubectl = kubectl_for(shoal.kubeconfig, tmp_path / "cache")
        kubectl("create", "deployment", "one", "--image=none")
        wait_until(lambda: shoal.status()["pods"] == {"Running": 1}, "the deployment's pod to run")
        children = shoal.pids()
        process.terminate()
        assert process.wait(10) == 0
        assert not any(is_alive(pid) for pid in children)


def test_parts_that_die_are_started_again_and_status_says_so_and_none_outlives_the_supervisor(shoal: Shoal) -> None:
    with shoal.foreground() as (process, line):
        assert line.startswith("Shoal is ready")
        for name in ("kube-apiserver", "kubernetes", "etcd", "kube-controller-manager"):
            before = shoal.part(name)
            os.kill(before["pid"], signal.SIGKILL)
            is_back = partial(has_restarted, shoal, name, before["restarts"] + 1)
            wait_until(is_back, f"{name} to be started again")
            wait_until(lambda: shoal("status").returncode == 0, "Shoal to be ready again")
        children = shoal.pids()
        process.kill()
        process.wait()
        wait_until(lambda: not any(is_alive(pid) for pid in children), "all parts to end", within=10)


def has_restarted(shoal: Shoal, name: str, restarts: int) -> bool:
    return bool(shoal.part(name)["restarts"] == restarts)
