"""Many pods that come and go in a hurry: nothing is left of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.local_node.conftest import LocalNode
from tests.e2e.local_node.processes import command_line, descendants
from tests.e2e.local_node.scenes import Scene, a_container, a_pod_spec, a_set

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.alone]


def test_sixty_pods_come_and_go_in_a_hurry_and_leave_nothing_behind(scene: Scene) -> None:
    before = kept_of_pods(scene.node)
    script = "trap 'exit 0' TERM; sleep infinity & wait"
    scene.apply(a_set("Deployment", "crowd", 60, a_pod_spec(a_container(["sh", "-c", script]))))
    scene.until("jsonpath={.status.readyReplicas}=60", "deployment/crowd")
    assert len(kept_of_pods(scene.node)) >= len(before) + 60 * 3

    for replicas in (5, 40, 20, 60, 0, 30):  # without waiting for what was asked for before
        scene.kubectl("scale", "deployment/crowd", f"--replicas={replicas}")
    scene.until("jsonpath={.status.readyReplicas}=30", "deployment/crowd")
    scene.kubectl("scale", "deployment/crowd", "--replicas=0")
    scene.until_true(lambda: not scene.names_of("app=crowd"), "all pods to be gone")

    scene.until_true(lambda: not kept_of_pods(scene.node) - before, "what was kept of them to be gone too")


def kept_of_pods(node: LocalNode) -> set[str]:
    """All that this machine has because of pods: processes, folders, cables and control groups."""
    runtime = node.shoal.part("containers")["pid"]
    processes = {f"process {pid} {command_line(pid)}" for pid in descendants(runtime)}
    folders = {str(path) for path in node.shoal.data_dir.glob("node/pods/*")}
    links = {line.split(":")[0].strip() for line in Path(f"/proc/{runtime}/net/dev").read_text().splitlines()}
    groups = {str(path) for path in Path("/sys/fs/cgroup").glob(f"**/shoal-{runtime}/*/")}
    return processes | folders | {link for link in links if link.startswith("pod")} | groups
