"""Which pods this node takes in. It refuses, for good, what does not fit and what it cannot do, as a kubelet does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shoal.api.core import Node
from shoal.api.core.pod_details import PodDetails
from shoal.api.meta import Quantity, QuantityString
from shoal.cluster.placement import NodeRequirements, untolerated
from shoal.cluster.pod_resources import Amounts, add_to, amounts, pod_requests

UNSUPPORTED = "PodFeatureUnsupported"


class Refusal(NamedTuple):
    """Why a pod is not taken in: the reason of its status, and a sentence."""

    reason: str
    message: str


def refusal_of(pod: PodDetails, node: Node | None, others: Iterable[PodDetails]) -> Refusal | None:
    """Why a pod is refused beside others that were taken in; None where it is not.

    Without a node that is known yet, nothing is known of its size, and all fits.
    """
    unsupported = _unsupported(pod)
    if unsupported:
        return Refusal(UNSUPPORTED, unsupported)
    if node is None:
        return None
    return _too_large(pod, node.status.allocatable, others) or _misplaced(pod, node)


def _unsupported(pod: PodDetails) -> str:
    spec = pod.spec
    if spec.host_pid:
        return "hostPID is not possible on a node whose containers cannot see the machine: remove it from the pod"
    if spec.host_ipc:
        return "hostIPC is not possible on a node whose containers cannot see the machine: remove it from the pod"
    if spec.resource_claims:
        return "resource claims are not prepared by this node: ask for nvidia.com/gpu instead"
    return ""


def _too_large(pod: PodDetails, capacity: Mapping[str, QuantityString], others: Iterable[PodDetails]) -> Refusal | None:
    used: Amounts = {}
    count = 0
    for other in others:
        count += 1
        add_to(used, pod_requests(other))
    has = amounts(capacity)
    if "pods" in has and count + 1 > has["pods"].value():
        return _out_of("pods", 1, count, has["pods"].value())
    for name, asked in sorted(pod_requests(pod).items(), key=lambda item: _rank(item[0])):
        if asked.is_zero:
            continue
        held, whole = used.get(name), has.get(name)
        if whole is None and _is_extended(name):
            continue  # of no node's: somebody else counts it
        numbers = [0 if one is None else _number(name, one) for one in (asked, held, whole)]
        if numbers[0] > numbers[2] - numbers[1]:
            return _out_of(name, *numbers)
    return None


def _misplaced(pod: PodDetails, node: Node) -> Refusal | None:
    if not NodeRequirements.of(pod.spec.node_selector, pod.spec.affinity).matches(node):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if untolerated(node.spec.taints, pod.spec.tolerations, effects=("NoExecute",)):
        return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def _out_of(name: str, asked: int, used: int, capacity: int) -> Refusal:
    return Refusal(
        f"OutOf{name}",
        f"Node didn't have enough resource: {name}, requested: {asked}, used: {used}, capacity: {capacity}",
    )


def _predicate(name: str, description: str) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {description}")


def _rank(name: str) -> tuple[int, str]:
    order = ("cpu", "memory", "ephemeral-storage")
    return (order.index(name) if name in order else len(order), name)


def _number(name: str, amount: Quantity) -> int:
    """CPU is counted in thousandths, everything else in whole ones."""
    return amount.milli_value() if name == "cpu" else amount.value()


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name
