"""What a pod needs of a node, in the form that many pods share.

Pods come by the thousand from one template. What decides where they fit, other pods aside, is a ``Shape``: it is read
once, and every pod of the same shape points to it. A ``Load`` is one pod as a burden on a node: its shape, and what its
neighbours may care about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from shoal.api.core import Pod, Toleration
from shoal.cluster.controllers.binding.peers import Peers, peers_of
from shoal.cluster.placement import NODE_NAME_FIELD, NodeRequirements, required_node_selector
from shoal.cluster.pod_resources import pod_requests

PODS = "pods"
"""The resource that counts a node's pods; each pod asks for one."""

ASSUMED_CPU = 100
ASSUMED_MEMORY = 200 * 1024 * 1024
"""What a container that asks for no processor time or memory is taken to use when nodes are compared."""

HOSTNAME = "kubernetes.io/hostname"

EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - a name for what pods ask for, nothing is bound here

HostPort = tuple[str, str, int]
"""Address, protocol and number of a port on the node itself."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Shape:
    """What decides on which nodes a pod fits, other pods aside."""

    requests: Mapping[str, int]
    """By resource: thousandths of a processor, whole units of anything else; nothing is left out but zeroes."""
    cpu: int
    memory: int
    """For comparing nodes: what is asked for, or what a container that asks for none is taken to use."""
    ports: tuple[HostPort, ...]
    tolerations: tuple[Toleration, ...]
    requirements: NodeRequirements
    label_keys: tuple[str, ...]
    """The labels of nodes that the requirements look at."""
    pinned: frozenset[str] | None
    """The names of the only nodes that can be meant; None where any can."""
    verdicts: dict[Any, str] = field(default_factory=dict)
    """What was found out about kinds of nodes: the reason why a pod cannot be there, empty where it can."""


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """One pod as a burden on a node."""

    shape: Shape
    peers: Peers
    namespace: str
    labels: Mapping[str, str]

    def equals(self, other: Load) -> bool:
        """Whether a pod that was the other and is now this one is the same to its node and its neighbours."""
        return self.shape is other.shape and self.peers == other.peers and self.labels == other.labels


class Shapes:
    """Gives equal pods the same shape, as long as one of them is around."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[bytes, Shape] = WeakValueDictionary()

    def load_of(self, pod: Pod) -> Load:
        """A pod as a burden; raises ValueError where it cannot be read."""
        key = _identity(pod)
        shape = self._known.get(key)
        if shape is None:
            shape = self._known[key] = shape_of(pod)
        return Load(shape, peers_of(pod), pod.metadata.namespace, pod.metadata.labels)


def shape_of(pod: Pod) -> Shape:
    """The shape of a pod."""
    spec = pod.spec
    requests = {name: whole_units(name, amount) for name, amount in pod_requests(pod).items()}
    required = required_node_selector(spec.affinity)
    terms = (required or {}).get("nodeSelectorTerms") or ()
    keys = {expression["key"] for term in terms for expression in term.get("matchExpressions") or ()}
    return Shape(
        requests={name: amount for name, amount in requests.items() if amount and name != PODS} | {PODS: 1},
        cpu=requests.get("cpu") or ASSUMED_CPU * len(spec.containers),
        memory=requests.get("memory") or ASSUMED_MEMORY * len(spec.containers),
        ports=tuple(
            (port.host_ip or EVERY_ADDRESS, port.protocol or "TCP", port.host_port)
            for container in (*spec.containers, *(c for c in spec.init_containers if c.restart_policy == "Always"))
            for port in container.ports
            if port.host_port
        ),
        tolerations=tuple(spec.tolerations),
        requirements=NodeRequirements.of(spec.node_selector, spec.affinity),
        label_keys=tuple(sorted(keys | set(spec.node_selector))),
        pinned=pinned_names(required),
    )


def whole_units(name: str, amount: Any) -> int:
    """An amount as nodes and pods are compared: thousandths of a processor, whole units of anything else."""
    return int(amount.milli_value() if name == "cpu" else amount.value())


def pinned_names(selector: Mapping[str, Any] | None) -> frozenset[str] | None:
    """The nodes that a node selector names, where each of its terms names one."""
    return _named(selector, "matchFields", NODE_NAME_FIELD)


def pinned_hostnames(selector: Mapping[str, Any] | None) -> frozenset[str] | None:
    """The host names that a node selector names, where each of its terms does: local volumes are pinned so."""
    return _named(selector, "matchExpressions", HOSTNAME)


def _named(selector: Mapping[str, Any] | None, where: str, key: str) -> frozenset[str] | None:
    terms = (selector or {}).get("nodeSelectorTerms")
    if not terms:
        return None
    names: set[str] = set()
    for term in terms:
        named = [
            set(expression.get("values") or ())
            for expression in term.get(where) or ()
            if expression.get("key") == key and expression.get("operator") == "In"
        ]
        if not named:
            return None
        names |= set.intersection(*named)
    return frozenset(names)


def _identity(pod: Pod) -> bytes:
    """Everything that a shape is made of, in a form that can be compared quickly."""
    spec, status = pod.spec, pod.status
    given = [
        held
        for held in (*status.container_statuses, *status.init_container_statuses)
        if held.resources is not None or held.allocated_resources
    ]
    parts = [
        [(container.name if given else "", container.resources, container.ports) for container in spec.containers],
        [
            (container.name if given else "", container.resources, container.restart_policy, container.ports)
            for container in spec.init_containers
        ],
        spec.overhead,
        spec.resources,
        spec.node_selector,
        required_node_selector(spec.affinity),
        spec.tolerations,
        [(held.name, held.resources, held.allocated_resources) for held in given],
        [(known.type, known.reason) for known in status.conditions if given and known.type == "PodResizePending"],
    ]
    return msgspec.json.encode(parts)
