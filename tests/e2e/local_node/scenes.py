"""What scenarios are made of: a namespace of one's own on a node, manifests in a few words, and questions by kubectl.

What runs in the pods are the programs of ``programs/``, which every namespace has in a ConfigMap.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.builders.pods import pod_manifest
from tests.support.clusters.real import namespace_for
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.e2e.local_node.conftest import LocalNode

PROGRAMS = Path(__file__).parent / "programs"
WITHIN = 90.0
"""Seconds for something to come true, on a machine that has much else to do."""
PORT = 8080

Object = dict[str, Any]

MAY_SEE_PODS: list[Object] = [
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "waiter"}},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "waiter"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "waiter"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "waiter"},
        "subjects": [{"kind": "ServiceAccount", "name": "waiter"}],
    },
]
"""An account ``waiter`` that may look at pods, as a default account may not."""


@dataclass(frozen=True)
class Scene:
    """A namespace on a node, as a person sees it who has chosen it."""

    node: LocalNode
    namespace: str

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.node.kubectl(*arguments, namespace=self.namespace, stdin=stdin)

    def json(self, *arguments: str) -> Any:
        return self.node.kubectl.json(*arguments, namespace=self.namespace)

    def try_kubectl(self, *arguments: str, timeout: float = WITHIN) -> subprocess.CompletedProcess[str]:
        """The finished process, whatever its exit status."""
        return self.node.kubectl.run(*arguments, namespace=self.namespace, timeout=timeout)

    def apply(self, *objects: Object) -> None:
        self.node.kubectl.apply(*objects, namespace=self.namespace)

    def until(self, claim: str, *what: str, within: float = WITHIN) -> None:
        """Waits until something is so, in the words of ``kubectl wait --for``; tells what there is if it is not."""
        done = self.try_kubectl("wait", f"--for={claim}", *what, f"--timeout={within:.0f}s", timeout=within + 30)
        assert done.returncode == 0, f"{' '.join(what)} is not {claim}: {done.stderr}{self.shown()}"

    def until_true(self, condition: Callable[[], object], what: str, *, within: float = WITHIN) -> None:
        """Waits until a condition holds; tells what there is if it does not."""
        try:
            wait_until(condition, what, within=within)
        except AssertionError as error:
            raise AssertionError(f"{error}{self.shown()}") from None

    def run_in(self, pod: str, *command: str) -> str:
        """What a command prints in a pod."""
        return self.kubectl("exec", pod, "--", *command)

    def program_in(self, pod: str, program: str, *arguments: str) -> Any:
        """What one of the programs prints in a pod, as JSON."""
        return json.loads(self.run_in(pod, "python3", f"/programs/{program}.py", *arguments))

    def of(self, what: str, path: str) -> str:
        """A field of an object, in the words of jsonpath."""
        return self.kubectl("get", what, "-o", f"jsonpath={{{path}}}")

    def names_of(self, selector: str) -> list[str]:
        """The names of the pods with some labels."""
        names = self.kubectl("get", "pods", f"--selector={selector}", "-o", "jsonpath={.items[*].metadata.name}")
        return names.split()

    def shown(self) -> str:
        """What a person would look at next, when something is not as it should be."""
        looks = (("get", "all", "-o", "wide"), ("get", "events", "--sort-by=.lastTimestamp"))
        return "\n... while there was:\n" + "\n".join(self.try_kubectl(*look).stdout for look in looks)


@contextmanager
def a_scene(node: LocalNode, name: str) -> Iterator[Scene]:
    """A scene with the programs in it; when it is over its pods are ended, without grace."""
    with namespace_for(name, node.shoal.admin) as namespace:
        scene = Scene(node, namespace)
        programs = {path.name: path.read_text() for path in sorted(PROGRAMS.glob("*.py"))}
        scene.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "programs"}, "data": programs})
        yield scene
    scene.node.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false", namespace=namespace)


def program(name: str, *arguments: str) -> list[str]:
    """The command line of one of the programs."""
    return ["python3", "-u", f"/programs/{name}.py", *arguments]


def a_container(command: list[str], **more: Any) -> Object:
    """A container that runs a command, and has the programs."""
    mounts = [{"name": "programs", "mountPath": "/programs"}, *more.pop("volumeMounts", [])]
    return {"name": "main", "image": "python", "command": command, "volumeMounts": mounts, **more}


def a_pod_spec(*containers: Object, volumes: Mapping[str, Object] | None = None, **more: Any) -> Object:
    """What a pod is, with its volumes by name; what it takes to end is no part of most stories."""
    named = [{"name": name, **source} for name, source in (volumes or {}).items()]
    return {
        "terminationGracePeriodSeconds": 1,
        "containers": list(containers),
        "volumes": [{"name": "programs", "configMap": {"name": "programs"}}, *named],
        **more,
    }


def a_pod_of(name: str, spec: Object, labels: Mapping[str, str] | None = None) -> Object:
    """A pod with such a specification."""
    return {"apiVersion": "v1", "kind": "Pod", **pod_manifest(name, labels=labels, **spec)}


def an_answering_pod(name: str, labels: Mapping[str, str] | None = None) -> Object:
    """A pod that answers with its name, by TCP and UDP, as soon as it is ready."""
    return a_pod_of(name, a_pod_spec(an_answering_container()), labels)


def an_answering_container(**more: Any) -> Object:
    """A container that answers with the name of its pod; it is ready unless there is a file /tmp/unready."""
    probe = {"httpGet": {"path": "/ready", "port": PORT}, "periodSeconds": 1, "failureThreshold": 1}
    return a_container(program("answer", str(PORT)), readinessProbe=probe, **more)


def an_idle_pod(name: str, **more: Any) -> Object:
    """A pod in which commands can be run."""
    return a_pod_of(name, a_pod_spec(a_container(["sleep", "infinity"]), **more))


def a_set(kind: str, name: str, replicas: int, spec: Object, **more: Any) -> Object:
    """A Deployment or StatefulSet whose pods are labelled with its name."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec}
    described = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **more}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": described}


def a_service(name: str, *, protocol: str = "TCP", **more: Any) -> Object:
    """A Service in front of the pods that are labelled with its name."""
    ports = [{"name": protocol.lower(), "port": 80, "targetPort": PORT, "protocol": protocol}]
    spec = {"selector": {"app": name}, "ports": ports, **more}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
