"""What may be wrong around the pods of this machine: a full disk, broken files, a stranger's node; and rest."""

from __future__ import annotations

import os
import re
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.local_node.conftest import a_local_node
from tests.e2e.local_pods import PODS, WITHIN, LocalPods, Object, status_of
from tests.support.clusters.shoal_up import Shoal
from tests.support.programs.ordinary_user import is_root
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(300)]

NODES = "/api/v1/nodes"
EVENTS = "/api/v1/namespaces/default/events"
AT_REST = 30.0
MOST_AT_REST = 0.1
"""Of a core. Most of it is what probes cost: a command of a probe is a process of its own."""


@pytest.fixture(scope="module")
def capable() -> None:
    """Skips where this machine does not let pods be what they are elsewhere."""
    with a_local_node("root" if is_root() else "user"):
        return


@pytest.fixture
def own(capable: None, tmp_path: Path) -> Iterator[LocalPods]:
    """A Shoal of the test's own, started as often as it wants."""
    pods = LocalPods(Shoal(tmp_path / "data", has_local_node=True))
    yield pods
    pods.shoal("down")
    assert pods.processes() == []


# A full disk


@pytest.fixture
def small_disk(own: LocalPods) -> Iterator[Path]:
    """The node's own folder on a file system with little room; the API server's data are elsewhere."""
    with own.shoal.foreground() as (process, _):
        process.terminate()
        process.wait()
    folder = own.layout.folder
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs", folder], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("only root can mount a small disk")
    yield folder
    own.shoal("down")
    subprocess.run(["umount", folder], check=True)


def test_pods_go_on_while_the_disk_is_full_and_new_ones_say_what_they_wait_for(
    own: LocalPods, small_disk: Path
) -> None:
    volume: Object = {"volumes": [{"name": "v", "emptyDir": {}}]}
    in_v = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    with own.shoal.foreground():
        own.add("steady", "n=0; while true; do n=$((n+1)); echo tick $n; sleep 0.1; done")
        own.add("greedy", "cat /dev/zero > /v/all; sleep 1000", container=in_v, **volume)
        own.running("steady")
        own.running("greedy")
        running = own.containers()
        wait_until(lambda: free(small_disk) == 0, "the disk to be full", within=WITHIN)
        own.add("late")
        own.add("once", "exit 3", restartPolicy="Never")
        told = wait_for_event(own, "late", "No space left on device")
        assert told["type"] == "Warning"
        assert own.containers() == running
        assert own.kubectl("exec", "steady", "--", "echo", "hello") == "hello\n"
        condition = wait_for_condition(own, "DiskPressure", "True")
        assert condition["reason"] == "KubeletHasDiskPressure"

        # What makes room is what a person would do: the greedy one is deleted.
        own.delete("greedy")
        own.gone("greedy")
        own.running("late")
        assert own.ended("once", "Failed")["exitCode"] == 3
        assert own.containers()["steady"] == running["steady"]
        before = own.kubectl("logs", "steady", "--tail=1")
        wait_until(lambda: own.kubectl("logs", "steady", "--tail=1") != before, "the log to go on", within=WITHIN)
        own.until_only(["late", "once", "steady"])


def free(folder: Path) -> int:
    return os.statvfs(folder).f_bavail


def wait_for_event(pods: LocalPods, name: str, text: str) -> Object:
    found: list[Object] = []

    def look() -> bool:
        found[:] = [
            one
            for one in pods.shoal.objects(EVENTS)
            if one["involvedObject"]["name"] == name and text in one.get("message", "")
        ]
        return bool(found)

    wait_until(look, f"an event about {name} that says {text!r}", within=WITHIN)
    return found[0]


def wait_for_condition(pods: LocalPods, kind: str, status: str) -> Object:
    found: list[Object] = []

    def look() -> bool:
        node = pods.shoal.admin.request("GET", f"{NODES}/local")
        found[:] = [one for one in node["status"]["conditions"] if (one["type"], one["status"]) == (kind, status)]
        return bool(found)

    wait_until(look, f"the node's condition {kind} to be {status}", within=WITHIN)
    return found[0]


# Files that are not as they should be


def test_while_images_yaml_is_broken_new_pods_say_so_and_others_run_on(own: LocalPods) -> None:
    with own.shoal.foreground():
        own.add("before")
        own.running("before")
        own.layout.images.write_text("images: [{match: busybox, root: [}")
        own.add("late")
        told = wait_for_event(own, "late", str(own.layout.images))
        assert "is not YAML" in told["message"]
        reasons = ("ErrImagePull", "ImagePullBackOff")
        own.pod("late", lambda pod: status_of(pod)["state"].get("waiting", {}).get("reason") in reasons)
        assert own.kubectl("exec", "before", "--", "echo", "hello") == "hello\n"
        own.kill("node")
        own.layout.images.write_text("default: host\n")
        own.running("late")
        own.running("before")


def test_what_others_left_in_the_folders_of_pods_is_removed_or_left_and_holds_up_nobody(own: LocalPods) -> None:
    with own.shoal.foreground() as (process, _):
        own.add("before")
        own.running("before")
        process.kill()
        process.wait()
    strange = own.layout.pods / "strange"
    (strange / "closed").mkdir(parents=True)
    (strange / "closed" / "file").write_text("x")
    (strange / "closed").chmod(0)
    strange.chmod(0)
    (own.layout.pods / "a file").write_text("x")
    (own.layout.pods / "a link").symlink_to("/")
    stuck = own.layout.pods / "stuck"
    stuck.mkdir()
    is_mounted = (
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", stuck], capture_output=True, check=False).returncode == 0
    )
    try:
        with own.shoal.foreground() as (_, line):
            assert line.startswith("Shoal is ready")
            own.running("before", restarts=1)
            own.add("late")
            own.running("late")
            uids = {one["metadata"]["uid"] for one in own.shoal.objects(PODS)}
            left = {*uids, "stuck"} if is_mounted else uids
            wait_until(lambda: own.folders() == left, "what is nobody's to be removed", within=WITHIN)
    finally:
        if is_mounted:
            subprocess.run(["umount", stuck], check=True)


# A node of the same name


def foreign_node() -> Object:
    return {
        "metadata": {"name": "local", "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"nodeInfo": {"containerRuntimeVersion": "containerd://2.0"}},
    }


def test_a_node_of_that_name_that_is_somebody_elses_is_left_alone_and_told_of(own: LocalPods) -> None:
    other = Shoal(own.shoal.data_dir)
    with other.foreground() as (process, _):
        other.admin.request("POST", NODES, foreign_node())
        uid = other.admin.request("GET", f"{NODES}/local")["metadata"]["uid"]
        process.terminate()
        process.wait()
    failed = own.shoal.starting()
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1] == (
        'shoal: the node "local" exists and another agent speaks for it: '
        "delete it (kubectl delete node local), or start without this machine as a node (--no-local-node)"
    )
    assert "Traceback" not in failed.stderr
    with other.foreground():
        found = other.admin.request("GET", f"{NODES}/local")
        assert found["metadata"]["uid"] == uid
        assert "shoal" not in found["status"]["nodeInfo"]["containerRuntimeVersion"]
        other.admin.request("DELETE", f"{NODES}/local")
    other("down")
    with own.shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready")
        own.add("one")
        own.running("one")


# Rest


def test_at_rest_nothing_is_written_but_the_lease_and_hardly_anything_is_done(own: LocalPods) -> None:
    probes: Object = {
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 5},
        "livenessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 5},
    }
    with own.shoal.foreground():
        own.add("web", "exec python3 -m http.server 8080", container=probes)
        for number in range(4):
            own.add(f"pod-{number}", container={"livenessProbe": probes["livenessProbe"]} if number % 2 else {})
        for one in own.shoal.objects(PODS):
            own.running(one["metadata"]["name"])
        wait_until(lambda: is_quiet(own), "all to come to rest", within=WITHIN)
        before, used, began = writes(own), processor_seconds(own), time.monotonic()
        time.sleep(AT_REST)
        passed = time.monotonic() - began
        written = writes(own) - before
        assert set(written) == {"PATCH leases"}
        assert written["PATCH leases"] <= passed / 10 + 2
        share = (processor_seconds(own) - used) / passed
        assert share < MOST_AT_REST, f"{share:.3f} of a core is used at rest"


def is_quiet(pods: LocalPods) -> bool:
    """Whether nothing but leases is written for a while."""
    before = writes(pods)
    time.sleep(3)
    return set(writes(pods) - before) <= {"PATCH leases"}


def writes(pods: LocalPods) -> Counter[str]:
    """What the API server was asked to change so far, by verb and kind."""
    with urllib.request.urlopen(f"{pods.shoal.endpoints()['metrics']}/metrics", timeout=30) as answer:
        page = answer.read().decode()
    found: Counter[str] = Counter()
    for line in re.findall(r"^apiserver_request_total\{.*", page, re.MULTILINE):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        if labels["verb"] not in ("GET", "LIST", "WATCH"):
            found[f"{labels['verb']} {labels['resource']}"] += int(float(line.split()[-1]))
    return found


def processor_seconds(pods: LocalPods) -> float:
    """What Shoal's own processes have used so far, those too that were forked for a moment and ended."""
    ticks = 0
    for part in pods.shoal.status()["parts"]:
        stat = Path(f"/proc/{part['pid']}/stat").read_text()
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
