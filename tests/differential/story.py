"""What a story is: a function that tells a cluster what to do, in steps that are the same in both worlds.

A story lives in a namespace of its own. Objects without a namespace that it makes have names
that begin with that namespace's name and a dot.
``snapshot`` waits until nothing changes any more and keeps all objects; pods that must not live by themselves name no
scheduler that exists (``BY_HAND``), and do what the story says.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.differential.kinds import CLUSTER_WIDE, NAMESPACED, collection
from tests.differential.mirror import Api, Mirror, Object
from tests.differential.worlds import World

MERGE = "application/merge-patch+json"
BY_HAND: dict[str, Any] = {"schedulerName": "nobody"}
_PATIENCE = 30.0


@dataclass(frozen=True)
class Story:
    """A name that is a claim or a topic, and what is done."""

    name: str
    tell: Callable[[Teller], None]
    slow: bool = False
    """Whether it takes a minute."""
    with_accounts: bool = False
    """Whether what every namespace has is shown: its service account and the authority's certificate."""

    @property
    def namespace(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower())[:50].strip("-")


@dataclass(frozen=True)
class Snapshot:
    """All objects of a story at rest, and what was answered to it on the way there."""

    name: str
    objects: list[tuple[str, Object]]
    answers: list[Any]


@dataclass
class Teller:
    """Does what a story says, in one world."""

    namespace: str
    world: World
    mirror: Mirror
    taken: list[Snapshot] = field(default_factory=list)
    _answers: list[Any] = field(default_factory=list)
    _running: int = 0

    def __post_init__(self) -> None:
        self._api = Api(self.world.server)
        self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self.until(lambda: self.mirror.find("ServiceAccount", self.namespace, "default"), "pods can be made")

    # What a story does

    def create(self, *manifests: Object) -> None:
        """Makes objects, one after the other; each must be accepted."""
        for manifest in manifests:
            made = self._ask("POST", self._collection(manifest["kind"]), manifest)
            self._seen(manifest["kind"], made)

    def try_to_create(self, manifest: Object) -> None:
        """Makes an object that may be refused; what is answered is a part of the next snapshot."""
        status, answer = self._api.ask("POST", self._collection(manifest["kind"]), manifest)
        self._answers.append({"create": manifest["kind"], "status": status, "message": answer.get("message", "")})
        if status < 300:
            self._seen(manifest["kind"], answer)

    def patch(self, kind: str, name: str, change: Mapping[str, Any], *, subresource: str = "") -> None:
        """Merges a change into an object."""
        path = f"{self._path(kind, name)}{'/' * bool(subresource)}{subresource}"
        self._seen(kind, self._ask("PATCH", path, change, MERGE))

    def forget_finalizers(self, kind: str, name: str) -> None:
        """Takes all finalizers from an object that is deleted already, which ends it."""
        self._ask("PATCH", self._path(kind, name), {"metadata": {"finalizers": None}}, MERGE)
        self.until_gone(kind, name)

    def replace_status(self, kind: str, name: str, status: Mapping[str, Any]) -> None:
        self.patch(kind, name, {"status": status}, subresource="status")

    def scale(self, kind: str, name: str, replicas: int) -> None:
        """Asks for so many replicas, by the subresource that is there for it."""
        self._ask("PATCH", f"{self._path(kind, name)}/scale", {"spec": {"replicas": replicas}}, MERGE)
        self.until(lambda: self.get(kind, name)["spec"]["replicas"] == replicas, f"{name} is to have {replicas}")

    def delete(self, kind: str, name: str, *, policy: str = "Background", grace: int | None = None) -> None:
        """Deletes an object with this propagation policy."""
        options: dict[str, Any] = {"propagationPolicy": policy}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        before = self.get(kind, name)["metadata"]
        self._ask("DELETE", self._path(kind, name), options)
        self.until(lambda: self._is_deleted(kind, name, before["uid"]), f"{kind} {name} is seen to be deleted")

    def evict(self, pod: str) -> None:
        """Asks for an eviction; what is answered is a part of the next snapshot."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.namespace}}
        status, answer = self._api.ask("POST", f"{self._path('Pod', pod)}/eviction", body)
        causes = (answer.get("details") or {}).get("causes")
        said = {"evict": pod, "status": status, "message": answer.get("message", "")}
        self._answers.append(said | ({"causes": causes} if causes else {}))

    def run(self, *pods: Object, ready: bool = True, ip: str = "") -> None:
        """Lets pods run, and be ready or not, as a node would."""
        for pod in pods:
            self._running += 1
            address = ip or f"10.250.0.{self._running}"
            status = {
                "phase": "Running",
                "conditions": _conditions(Initialized=True, ContainersReady=ready, Ready=ready),
                "podIP": address,
                "podIPs": [{"ip": address}],
                "containerStatuses": [_container(one, running=True, ready=ready) for one in _containers(pod)],
            }
            self._set_pod_status(pod, status)

    def finish(self, *pods: Object, exit_code: int = 0, reason: str = "", conditions: Any = ()) -> None:
        """Lets pods end: with success for exit code 0, otherwise with failure, perhaps for this reason."""
        for pod in pods:
            status: dict[str, Any] = {
                "phase": "Failed" if exit_code else "Succeeded",
                "conditions": [*_conditions(ContainersReady=False, Ready=False), *conditions],
                "containerStatuses": [_container(one, exit_code=exit_code) for one in _containers(pod)],
            }
            if reason:
                status["reason"] = reason
            self._set_pod_status(pod, status)

    def until(self, holds: Callable[[], object], what: str = "something holds", *, within: float = _PATIENCE) -> None:
        """Waits until something holds."""
        self.mirror.wait(holds, f"{what} ({self.namespace})", within=within)

    def time(self) -> str:
        """Now, as the wire has it."""
        return _now()

    def later(self) -> None:
        """Lets a second pass, so that what is made next is younger than what was made before."""
        time.sleep(1.1)

    def snapshot(self, name: str) -> None:
        """Keeps everything, once it is at rest."""
        self.mirror.wait_for_rest(self.namespace, quiet=self.world.quiet, within=_PATIENCE)
        objects = [
            (kind, one)
            for kind in (*NAMESPACED, *CLUSTER_WIDE)
            for one in self.mirror.all_of(kind, self.namespace)
            if kind != "Namespace" or "deletionTimestamp" in one["metadata"]
        ]
        answers, self._answers = self._answers, []
        self.taken.append(Snapshot(name, objects, answers))

    def a_silent_node(self, **labels: str) -> dict[str, Any]:
        """Makes a node that nobody runs, and gives what a pod says to be on it: its story says how it goes."""
        name = f"{self.namespace}.n"
        self.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
        return {"nodeName": name, **BY_HAND}

    # What a story looks at

    def find(self, kind: str, name: str) -> Object | None:
        return self.mirror.find(kind, "" if kind in CLUSTER_WIDE else self.namespace, name)

    def get(self, kind: str, name: str) -> Object:
        found = self.find(kind, name)
        assert found is not None, f"there is no {kind} {name}"
        return found

    def all_of(self, kind: str) -> list[Object]:
        return self.mirror.all_of(kind, self.namespace)

    def pods(self, phase: str = "", **labels: str) -> list[Object]:
        """The pods in this phase and with these labels, in order of their names."""
        return [
            pod
            for pod in self.all_of("Pod")
            if (not phase or pod["status"].get("phase") == phase)
            and labels.items() <= pod["metadata"].get("labels", {}).items()
        ]

    def until_pods(self, count: int, phase: str = "", **labels: str) -> list[Object]:
        """Waits for exactly so many pods and gives them."""
        self.until(lambda: len(self.pods(phase, **labels)) == count, f"there are {count} pods {phase} {labels}")
        return self.pods(phase, **labels)

    def until_ready(self, count: int, **labels: str) -> list[Object]:
        """Waits until there are so many pods, all of them ready."""

        def holds() -> bool:
            pods = self.pods(**labels)
            return len(pods) == count and all(_is_true(pod, "Ready") for pod in pods)

        self.until(holds, f"{count} pods are ready")
        return self.pods(**labels)

    def until_condition(self, kind: str, name: str, condition: str, value: str = "True", reason: str = "") -> None:
        self.until(
            lambda: any(
                one["type"] == condition and one["status"] == value and (not reason or one.get("reason") == reason)
                for one in (self.find(kind, name) or {}).get("status", {}).get("conditions", [])
            ),
            f"{kind} {name} is {condition} {value} {reason}",
        )

    def until_status(self, kind: str, name: str, **fields: Any) -> None:
        """Waits until a status, of the newest generation, has these values; None is for a field that is not there."""

        def holds() -> bool:
            found = self.find(kind, name)
            if found is None:
                return False
            status = found.get("status", {})
            observed = status.get("observedGeneration", found["metadata"].get("generation"))
            current = observed == found["metadata"].get("generation")
            return current and all(status.get(field) == value for field, value in fields.items())

        self.until(holds, f"{kind} {name} has {fields}")

    def until_gone(self, kind: str, name: str) -> None:
        self.until(lambda: self.find(kind, name) is None, f"{kind} {name} is gone")

    def until_event(self, reason: str, count: int = 1) -> None:
        self.until(
            lambda: sum(one["reason"] == reason for one in self.all_of("Event")) >= count,
            f"{count} events {reason} are told",
        )

    # How it is done

    def close(self) -> None:
        """Takes the story's nodes away, so that those that are silent do not make the others' zone look ill."""
        for node in self.all_of("Node"):
            self._api.ask("DELETE", self._path("Node", node["metadata"]["name"]))
        self._api.close()

    def _set_pod_status(self, pod: Object, status: Mapping[str, Any]) -> None:
        before = self.get("Pod", pod["metadata"]["name"]).get("status", {}).get("conditions", [])
        types = {one["type"] for one in status["conditions"]}
        kept = [one for one in before if one["type"] not in types]
        self.replace_status("Pod", pod["metadata"]["name"], {**status, "conditions": [*kept, *status["conditions"]]})

    def _collection(self, kind: str) -> str:
        return collection(kind, self.namespace)

    def _path(self, kind: str, name: str) -> str:
        return f"{self._collection(kind)}/{name}"

    def _is_deleted(self, kind: str, name: str, uid: str) -> bool:
        found = self.find(kind, name)
        return found is None or found["metadata"]["uid"] != uid or "deletionTimestamp" in found["metadata"]

    def _seen(self, kind: str, answer: Object) -> None:
        self.mirror.wait_for_version(kind, answer["metadata"]["resourceVersion"])

    def _ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        status, answer = self._api.ask(method, path, body, content_type)
        assert status < 300, f"{method} {path} was refused: {answer.get('message')} ({status})"
        return answer


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _conditions(**values: bool) -> list[Object]:
    return [{"type": kind, "status": str(value), "lastTransitionTime": _now()} for kind, value in values.items()]


def _containers(pod: Object) -> list[Object]:
    containers: list[Object] = pod["spec"]["containers"]
    return containers


def _container(container: Object, *, running: bool = False, ready: bool = False, exit_code: int = 0) -> Object:
    ended = {"exitCode": exit_code, "startedAt": _now(), "finishedAt": _now()}
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": ready,
        "restartCount": 0,
        "state": {"running": {"startedAt": _now()}} if running else {"terminated": ended},
    }


def _is_true(content: Object, condition: str) -> bool:
    return any(
        one["type"] == condition and one["status"] == "True" for one in content.get("status", {}).get("conditions", [])
    )
