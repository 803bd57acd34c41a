"""Where the system forbids namespaces: the node says so wherever somebody may look, and does what it can."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.local_node.conftest import LocalNode
from tests.e2e.local_node.scenes import Scene, a_scene
from tests.support.clusters.real import kubectl_for
from tests.support.clusters.shoal_up import Shoal
from tests.support.programs.ordinary_user import USER, as_ordinary_user, is_root

pytestmark = [pytest.mark.kube, pytest.mark.slow]

ALLOWED = 'echo $0 > /proc/sys/user/max_user_namespaces && exec "$@"'
NONE_LEFT = ("unshare", "--user", "--map-root-user", "sh", "-c", ALLOWED, "0")
"""Runs a command where no user namespace may be made."""
NONE_LEFT_FOR_SOMEBODY = (*NONE_LEFT[:-1], "1", "unshare", "--user", "--map-user=1000", "--map-group=1000")
"""The one that may be made is used up, by making it somebody who is not root."""
WHY = "Containers are plain processes that see the whole machine and its network: no user namespace may be made"


@pytest.fixture(scope="module", params=[NONE_LEFT, NONE_LEFT_FOR_SOMEBODY], ids=["root", "somebody"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="shoal-degraded-"))
    if is_root():
        os.chown(folder, USER, USER)
    shoal = Shoal(folder / "data", has_local_node=True, as_owner=as_ordinary_user)
    node = LocalNode("user", shoal, kubectl_for(shoal.kubeconfig, folder / "kubectl"))
    command = as_ordinary_user(*request.param, *shoal.up("--detach"))
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        with a_scene(node, "degraded") as scene:
            yield scene
    finally:
        shoal("down")
        shutil.rmtree(folder)


def test_the_node_says_what_the_system_forbids(scene: Scene) -> None:
    ready = scene.of("node/local", ".status.conditions[?(@.type=='Ready')].message")
    assert scene.of("node/local", r".metadata.annotations.shoal\.dev/shortfalls").startswith(WHY)
    assert WHY in ready
    scene.until_true(lambda: "NodeDegraded" in described(scene), "an event that says so")
    assert WHY in described(scene)


def test_pods_still_run(scene: Scene) -> None:
    script = "echo to stdout; echo to stderr >&2; exit 3"
    scene.kubectl("run", "fails", "--image=busybox", "--restart=Never", "--command", "--", "sh", "-c", script)
    scene.kubectl("run", "stays", "--image=python", "--command", "--", "python3", "-c", "import time; time.sleep(1e6)")
    scene.until("jsonpath={.status.phase}=Failed", "pod/fails")
    scene.until("condition=Ready", "pod/stays")

    assert set(scene.kubectl("logs", "fails").splitlines()) == {"to stdout", "to stderr"}
    assert scene.of("pod/fails", ".status.containerStatuses[0].state.terminated.exitCode") == "3"
    assert scene.run_in("stays", "echo", "hello") == "hello\n"
    assert scene.try_kubectl("exec", "stays", "--", "sh", "-c", "exit 7").returncode == 7

    scene.kubectl("delete", "pod", "stays", "--wait=true", "--timeout=50s", "--grace-period=1")


def described(scene: Scene) -> str:
    return scene.kubectl("describe", "node", "local")
