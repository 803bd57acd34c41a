"""What the servers are asked for: requests prepared as bytes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec

from bench.holding.pods import pod
from bench.serving.contestants import LISTED_NAMESPACE, NAMESPACE
from bench.serving.load import Target

MERGE_PATCH = "application/merge-patch+json"
_INSIDE = f"/api/v1/namespaces/{NAMESPACE}"
_CONFIG_MAPS = f"{_INSIDE}/configmaps"
_PODS = f"{_INSIDE}/pods"
_LISTED_PODS = f"/api/v1/namespaces/{LISTED_NAMESPACE}/pods"


def config_map(name: str) -> bytes:
    """A small object, 0.5 KB."""
    labels = {"app.kubernetes.io/name": "trainer", "app.kubernetes.io/part-of": "bench"}
    data = {f"setting-{number}": f"{name}: a value of some length, number {number}" for number in range(6)}
    return msgspec.json.encode({"metadata": {"name": name, "labels": labels}, "data": data})


def large_pod(number: int, namespace: str = NAMESPACE) -> bytes:
    """A pod of 10 KB as a controller creates it: five containers, probes, affinity, volumes; no status."""
    whole: dict[str, Any] = pod(number, 0)
    metadata, spec = whole["metadata"], whole["spec"]
    for name in ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "generateName"):
        del metadata[name]
    metadata["namespace"] = namespace
    for name in ("priority", "priorityClassName", "preemptionPolicy", "nodeName"):
        del spec[name]
    sidecar = spec["containers"][-1]
    for port, name in ((9600, "profiler"), (9700, "checkpointer")):
        more = {**sidecar, "name": name, "ports": [{**sidecar["ports"][0], "containerPort": port}]}
        spec["containers"] = [*spec["containers"], more]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


class Requests:
    """The requests of one turn; what is created gets a name of its own."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._numbers = itertools.count()

    def reading(self, name: str) -> Iterator[bytes]:
        return itertools.repeat(self._target.request("GET", f"{_CONFIG_MAPS}/{name}"))

    def creating_small(self) -> Iterator[bytes]:
        return (self.create_small(f"small-{number:06}") for number in self._numbers)

    def create_small(self, name: str) -> bytes:
        return self._target.request("POST", _CONFIG_MAPS, config_map(name))

    def patching(self, names: list[str]) -> Iterator[bytes]:
        """Every patch changes something, each time another object."""
        for number, name in zip(self._numbers, itertools.cycle(names)):
            body = b'{"data":{"setting-0":"patched for the %dth time"}}' % number
            yield self._target.request("PATCH", f"{_CONFIG_MAPS}/{name}", body, MERGE_PATCH)

    def creating_pods(self, numbers: Iterator[int]) -> Iterator[bytes]:
        return (self._target.request("POST", _PODS, large_pod(number)) for number in numbers)

    def patching_pods(self, count: int) -> Iterator[bytes]:
        """A label of a large pod, as a controller sets it."""
        for number in itertools.count():
            name = msgspec.json.decode(large_pod(number % count))["metadata"]["name"]
            body = b'{"metadata":{"labels":{"bench":"%d"}}}' % number
            yield self._target.request("PATCH", f"{_PODS}/{name}", body, MERGE_PATCH)

    def filling(self, count: int) -> Iterator[bytes]:
        """The pods of the list, in a namespace of their own."""
        return (self._target.request("POST", _LISTED_PODS, large_pod(n, LISTED_NAMESPACE)) for n in range(count))

    def list_pods(self) -> bytes:
        return self._target.request("GET", _LISTED_PODS)

    def watch_small(self) -> bytes:
        return self._target.request("GET", f"{_CONFIG_MAPS}?watch=1&resourceVersion=0")
