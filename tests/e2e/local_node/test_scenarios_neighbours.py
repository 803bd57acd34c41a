"""Pods that multiply, and pods that never stop talking: neither is the trouble of anybody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cluster.node.process.contents.limits import PROCESSES
from tests.e2e.local_node.processes import descendants, memory
from tests.e2e.local_node.scenes import (
    PORT,
    Scene,
    a_container,
    a_pod_of,
    a_pod_spec,
    an_answering_pod,
    an_idle_pod,
)

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.alone]

MEBIBYTE = 1024 * 1024


def test_a_fork_bomb_is_the_trouble_of_its_own_pod_alone(scene: Scene) -> None:
    bomb = "ulimit -u; multiply() { multiply | multiply & }; multiply; sleep infinity"
    scene.apply(an_answering_pod("neighbour"), an_idle_pod("client"))
    scene.until("condition=Ready", "pod", "--all")
    neighbour = f"{scene.of('pod/neighbour', '.status.podIP')}:{PORT}"

    scene.apply(a_pod_of("bomb", a_pod_spec(a_container(["bash", "-c", bomb]), restartPolicy="Never")))
    scene.until_true(
        lambda: "Resource temporarily unavailable" in scene.try_kubectl("logs", "bomb", "--tail=5").stdout,
        "it to multiply until it may not any more",
    )

    assert int(scene.kubectl("logs", "bomb", "--limit-bytes=9").splitlines()[0]) <= PROCESSES
    containers = scene.node.shoal.part("containers")["pid"]
    # Some end and others begin while they are counted: the count is of more than live at one moment.
    assert len(descendants(containers)) < 2 * PROCESSES
    asked = f"10*{neighbour}"
    assert scene.program_in("client", "ask", asked) == {asked: {"neighbour": 10}}
    assert scene.kubectl("get", "--raw=/readyz") == "ok"
    assert scene.run_in("neighbour", "echo", "still here") == "still here\n"

    scene.kubectl("delete", "pod", "bomb", "--wait=true", "--timeout=50s")
    assert len(descendants(containers)) < 100
    assert scene.of("pod/neighbour", ".status.containerStatuses[0].restartCount") == "0"


def test_a_pod_that_talks_a_gigabyte_fills_neither_memory_nor_disk(scene: Scene) -> None:
    line = "a line of some sixty characters, as programs write them, no more"
    wait = "until test -e /tmp/{}; do sleep 0.1; done"
    script = f"{wait.format('go')}; yes '{line}' | head -c 1000000000; echo; echo said it all; {wait.format('enough')}"
    scene.apply(a_pod_of("talker", a_pod_spec(a_container(["sh", "-c", script]), restartPolicy="Never")))
    scene.until("condition=Ready", "pod/talker")
    node, containers = (scene.node.shoal.part(name)["pid"] for name in ("node", "containers"))
    folder = scene.node.shoal.data_dir / "node" / "pods" / scene.of("pod/talker", ".metadata.uid")

    def memory_used() -> int:
        return memory(node) + sum(map(memory, [containers, *descendants(containers)]))

    used, kept, heard = [memory_used()], [], [""]
    scene.run_in("talker", "touch", "/tmp/go")
    while heard[-1] != "said it all":
        heard += scene.kubectl("logs", "talker", "--tail=3").splitlines()
        used.append(memory_used())
        kept.append(size(folder))
    scene.run_in("talker", "touch", "/tmp/enough")
    scene.until("jsonpath={.status.phase}=Succeeded", "pod/talker")

    assert max(used) - used[0] < 100 * MEBIBYTE
    assert max(kept) < 70 * MEBIBYTE
    assert line in heard
    assert len(heard) <= 1 + 3 * len(kept)


def size(folder: Path) -> int:
    """Bytes on disk of all files of a folder, some of which may go meanwhile."""
    sizes = []
    for path in folder.rglob("*"):
        try:
            sizes.append(path.lstat().st_blocks * 512)
        except FileNotFoundError:
            continue
    return sum(sizes)
