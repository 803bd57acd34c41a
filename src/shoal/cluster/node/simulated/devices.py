"""Which GPU of a simulated node a reservation holds, as the program in its container would say.

Pods that share a GPU are preceded by one that takes the whole of it and notes on itself which one it was given. Nothing
runs here, so the agent notes it: the first GPU of the node that no other reservation has, by its number.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api import kai_names as names
from shoal.api.core import RUNNING, Node, Pod, is_finished
from shoal.api.meta import InvalidQuantity, parse_quantity


def awaits_device(pod: Pod) -> bool:
    """Whether a pod is a reservation that runs and has not said which GPU it holds."""
    metadata = pod.metadata
    return (
        metadata.namespace == names.RESERVATION_NAMESPACE
        and names.GPU_GROUP in metadata.labels
        and names.RESERVED_GPU_INDEX not in metadata.annotations
        and pod.status.phase == RUNNING
    )


class Devices:
    """The GPUs that reservations were given; those that no pod shows yet are remembered here alone."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[str, str]] = {}

    def give(self, pod: Pod, node: Node, others: Iterable[Pod]) -> str | None:
        """The GPU for a reservation; None where all of the node's are reserved. ``others`` are the pods on it."""
        uid, place = pod.metadata.uid, node.metadata.name
        if uid in self._given:
            return self._given[uid][1]
        taken = {device for there, device in self._given.values() if there == place}
        taken |= {
            other.metadata.annotations.get(names.RESERVED_GPU_INDEX, "")
            for other in others
            if other.metadata.namespace == names.RESERVATION_NAMESPACE and not is_finished(other)
        }
        device = next((str(number) for number in range(_gpus(node)) if str(number) not in taken), None)
        if device is not None:
            self._given[uid] = (place, device)
        return device

    def release(self, uid: str) -> None:
        """A reservation is over."""
        self._given.pop(uid, None)


def _gpus(node: Node) -> int:
    amounts = [node.status.capacity.get(resource, 0) for resource in names.GPUS]
    try:
        return sum(parse_quantity(amount).value() for amount in amounts)
    except InvalidQuantity:
        return 0
