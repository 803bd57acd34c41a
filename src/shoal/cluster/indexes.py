"""How pods and other children are found in the one picture that a process keeps of them.

Informers are shared, and an index is added once under its name: controllers and node agents take these.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from shoal.api.core import PODS, Pod
from shoal.api.meta import HasMetadata
from shoal.kube import Informer, Manager, by_namespace

BY_CONTROLLER = "controller"
BY_NODE = "node"
BY_NAMESPACE = "namespace"


def by_controller(found: HasMetadata) -> Iterable[Hashable]:
    """Finds children by the uid of their controller, and those without one by their namespace."""
    controller = found.metadata.controller
    return (controller.uid,) if controller is not None else (orphans_of(found.metadata.namespace),)


def by_node(pod: Pod) -> Iterable[Hashable]:
    """Finds pods by the name of their node; those without one have none."""
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def orphans_of(namespace: str) -> Hashable:
    """Under what the controller index has a namespace's objects without a controller."""
    return ("orphans", namespace)


CHILD_INDEXES = {BY_CONTROLLER: by_controller, BY_NAMESPACE: by_namespace}
POD_INDEXES = {**CHILD_INDEXES, BY_NODE: by_node}


def all_pods(manager: Manager) -> Informer[Pod]:
    """The process's picture of all pods."""
    return manager.cache.informer(PODS, indexes=POD_INDEXES)
