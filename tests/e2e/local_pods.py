"""Pods of the node ``local`` of a running ``shoal up``: their objects, and what there is of them on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from shoal.cluster.kubernetes import Refused, Unreachable
from shoal.cluster.node.process.client import Runtime
from shoal.cluster.node.process.layout import Layout
from shoal.cluster.node.process.runtime.protocol import ContainerState, SandboxState
from tests.support.clusters.real import kubectl_for
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import wait_until

Object = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
WITHIN = 60.0
_MARK = "STARTED_BY"
_GONE = (FileNotFoundError, ProcessLookupError)


class LocalPods:
    """The pods of a Shoal. Each container has a variable that names the data dir, by which its processes are found."""

    def __init__(self, shoal: Shoal) -> None:
        self.shoal = shoal
        self.layout = Layout(shoal.data_dir)
        self.kubectl = kubectl_for(shoal.kubeconfig, shoal.data_dir.parent / "kubectl")

    # Objects

    def add(self, name: str, script: str = "sleep 1000", *, container: Object | None = None, **spec: Any) -> None:
        """A pod whose one container runs a script in a shell."""
        self.post(
            PODS, {"metadata": {"name": name, "labels": {"app": name}}, "spec": self.spec(script, container, **spec)}
        )

    def spec(self, script: str, container: Object | None = None, **spec: Any) -> Object:
        main = {"name": "main", "image": "busybox", "command": ["sh", "-c", script], "env": self.env}
        return {"terminationGracePeriodSeconds": 5, "containers": [{**main, **(container or {})}], **spec}

    @property
    def env(self) -> list[Object]:
        return [{"name": _MARK, "value": str(self.shoal.data_dir)}]

    def post(self, path: str, body: Object) -> Object:
        made: Object = self.shoal.admin.request("POST", path, body)
        return made

    def read(self, name: str) -> Object | None:
        """A pod as it is now; None where there is none."""
        try:
            found: Object = self.shoal.admin.request("GET", f"{PODS}/{name}")
        except Refused as refused:
            if refused.status != 404:
                raise
            return None
        return found

    def pod(self, name: str, holds: Callable[[Object], object] = lambda pod: True) -> Object:
        """A pod, as soon as something holds for it."""
        seen: list[Object | None] = [None]

        def look() -> bool:
            try:
                seen[0] = self.read(name)
            except Unreachable:
                return False
            return seen[0] is not None and bool(holds(seen[0]))

        try:
            wait_until(look, f"pod {name}", within=WITHIN)
        except AssertionError as error:
            raise AssertionError(f"{error}: {json.dumps((seen[0] or {}).get('status'), indent=1)}") from None
        assert seen[0] is not None
        return seen[0]

    def running(self, name: str, *, restarts: int = 0) -> Object:
        """A pod whose container runs and is ready, after so many restarts."""
        return self.pod(name, lambda pod: is_ready(pod) and status_of(pod)["restartCount"] == restarts)

    def ended(self, name: str, phase: str) -> Object:
        """How the container of a pod ended, whose phase is this."""
        found: Object = status_of(self.pod(name, lambda pod: pod["status"]["phase"] == phase))["state"]["terminated"]
        return found

    def until_logged(self, name: str, text: str) -> None:
        wait_until(lambda: text in self.kubectl("logs", name), f"{name} to say {text!r}", within=WITHIN)

    def delete(self, name: str) -> None:
        self.shoal.admin.request("DELETE", f"{PODS}/{name}")

    def gone(self, name: str) -> None:
        wait_until(lambda: self.read(name) is None, f"pod {name} to be gone", within=WITHIN)

    def volume(self, name: str, volume: str) -> Path:
        """The folder that a volume of a pod is."""
        return self.layout.volume(self.pod(name)["metadata"]["uid"], volume)

    def claimed(self, claim: str) -> Path:
        """The folder behind a claim."""
        found = self.shoal.admin.request("GET", f"{CLAIMS}/{claim}")
        volume = self.shoal.admin.request("GET", f"/api/v1/persistentvolumes/{found['spec']['volumeName']}")
        source = volume["spec"].get("local") or volume["spec"]["hostPath"]
        return Path(source["path"])

    # The machine

    def sandboxes(self) -> list[SandboxState]:
        """What the runtime has."""

        async def ask() -> list[SandboxState]:
            async with asyncio.timeout(WITHIN):
                runtime = await Runtime.connect(self.layout.runtime_socket)
                try:
                    return await runtime.sandboxes()
                finally:
                    await runtime.aclose()

        return asyncio.run(ask())

    def containers(self) -> dict[str, ContainerState]:
        """The containers that run, by the name of their pod."""
        return {
            sandbox.name.partition("/")[2]: one
            for sandbox in self.sandboxes()
            for one in sandbox.containers
            if one.finished is None
        }

    def attempt(self, name: str) -> int | None:
        """How often the container of a pod was started before it runs now; None where it does not."""
        running = self.containers().get(name)
        return running.attempt if running is not None else None

    def processes(self) -> list[int]:
        """All of Shoal's and of its pods: their command lines or their variables name the data dir."""
        return sorted({*self._found("cmdline", f"{self.shoal.data_dir}"), *self.processes_of_pods()})

    def processes_of_pods(self) -> list[int]:
        return self._found("environ", f"{_MARK}={self.shoal.data_dir}\0")

    def _found(self, file: str, text: str) -> list[int]:
        found = []
        for path in Path("/proc").glob(f"[0-9]*/{file}"):
            try:
                if text.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                    found.append(int(path.parent.name))
            except (*_GONE, PermissionError):
                continue
        return found

    def folders(self) -> set[str]:
        """The uids of the pods that are kept on disk."""
        return {path.name for path in self.layout.pods.iterdir()} if self.layout.pods.exists() else set()

    def memory_folders(self) -> set[str]:
        return {path.name.removeprefix("shoal-") for path in Path("/dev/shm").glob("shoal-*")}

    # Faults

    def pid(self, part: str) -> int:
        return int(self.shoal.part(part)["pid"])

    def kill(self, part: str) -> int:
        """Ends a part by force and waits until another runs in its place; gives the number that it had."""
        before = self.shoal.part(part)
        os.kill(before["pid"], signal.SIGKILL)
        self.until_back(part, before["restarts"] + 1)
        return int(before["pid"])

    def strike(self, part: str) -> None:
        """Ends a part by force, if there is one at this moment, and waits for nothing."""
        found = self.shoal.part(part)
        if found["state"] != "restarting":
            with suppress(ProcessLookupError):
                os.kill(found["pid"], signal.SIGKILL)

    def until_back(self, part: str, restarts: int) -> None:
        def is_back() -> bool:
            now = self.shoal.part(part)
            return (now["state"], now["restarts"]) == ("running", restarts)

        wait_until(is_back, f"{part} to be started again", within=WITHIN)

    @contextmanager
    def away(self, part: str) -> Iterator[None]:
        """A part does nothing in a block, and is killed at its end; returns when another runs in its place."""
        before = self.shoal.part(part)
        os.kill(before["pid"], signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(before["pid"], signal.SIGKILL)
        self.until_back(part, before["restarts"] + 1)

    # What is left

    def until_only(self, names: Sequence[str]) -> None:
        """Waits until the machine holds these pods, each once, and nothing of any other."""
        seen = ""

        def look() -> bool:
            nonlocal seen
            seen = self._difference(sorted(names))
            return not seen

        try:
            wait_until(look, "nothing but these pods", within=WITHIN)
        except AssertionError as error:
            raise AssertionError(f"{error}: {seen}") from None

    def _difference(self, names: Sequence[str]) -> str:
        items = self.shoal.objects(PODS)
        uids = {one["metadata"]["name"]: one["metadata"]["uid"] for one in items}
        if sorted(uids) != list(names):
            return f"the server has {sorted(uids)}"
        if self.folders() - set(uids.values()):
            return f"the folders {self.folders()} are of {uids}"
        sandboxes = self.sandboxes()
        if {one.uid for one in sandboxes} - set(uids.values()):
            return f"the runtime has {[one.name for one in sandboxes]}"
        running = [
            (one.sandbox, one.name) for sandbox in sandboxes for one in sandbox.containers if one.finished is None
        ]
        if len(running) != len(set(running)):
            return f"doubled: {running}"
        known = {one.id[:12] for sandbox in sandboxes for one in sandbox.containers if one.finished is None}
        groups = {path.name for path in self._cgroups(self.pid("containers"))}
        if groups - known:
            return f"there are the cgroups {groups}, and the containers {known}"
        strangers = [pid for pid in self.processes_of_pods() if not self._is_in_container(pid, sandboxes)]
        return f"the processes {strangers} are in no container" if strangers else ""

    def _is_in_container(self, pid: int, sandboxes: Sequence[SandboxState]) -> bool:
        """Whether a process is in the PID namespace of a container that runs, or ends just now."""
        try:
            inits = [one.pid for sandbox in sandboxes for one in sandbox.containers if one.finished is None]
            return _namespace(pid) in {_namespace(one) for one in inits}
        except _GONE:
            return True

    def _cgroups(self, runtime: int) -> list[Path]:
        tops = [path for path in Path("/sys/fs/cgroup").rglob(f"shoal-{runtime}") if path.is_dir()]
        return [path for top in tops for path in top.iterdir() if path.is_dir()]

    def has_cgroups_of(self, runtime: int) -> bool:
        """Whether there is a group that a runtime made, by its number."""
        return any(Path("/sys/fs/cgroup").rglob(f"shoal-{runtime}"))

    def mounts(self) -> list[str]:
        """What is mounted in the data dir, as this process sees it."""
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        return [line for line in lines if f" {self.shoal.data_dir}/" in line]


class Follower:
    """A kubectl that goes on, and what it has printed so far."""

    def __init__(self, pods: LocalPods, *arguments: str) -> None:
        self._output = pods.shoal.data_dir.parent / f"follower-{time.monotonic_ns()}"
        with self._output.open("wb") as file:
            self.process = subprocess.Popen(
                [str(pods.kubectl.binary), f"--kubeconfig={pods.shoal.kubeconfig}", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    @property
    def printed(self) -> str:
        return self._output.read_text()

    def until_printed(self, text: str) -> None:
        wait_until(lambda: text in self.printed, f"{text!r} to be printed", within=WITHIN)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def _namespace(pid: int) -> Path:
    return Path(f"/proc/{pid}/ns/pid").readlink()


def is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


def status_of(pod: Object) -> Object:
    """The status of a pod's one container."""
    statuses = pod["status"].get("containerStatuses") or [{"restartCount": 0, "state": {}, "lastState": {}}]
    found: Object = statuses[0]
    return found
