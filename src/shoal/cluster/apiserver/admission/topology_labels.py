"""Where a pod runs, as labels of its own: its author cannot know the zone, and what reads pods need not know nodes."""

from __future__ import annotations

from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.scope import scope
from shoal.cluster.apiserver.reader import Reader

_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels:
    """Gives a pod the zone and the region of its node, when it is bound or made with one."""

    mutates = scope("pods", subresources=("", "binding"))
    validates = None

    def __init__(self, state: Reader) -> None:
        self._state = state

    async def mutate(self, request: Attributes) -> None:
        """Copies the labels to the pod, or to the Binding, which hands them on; what the pod says is overruled."""
        given = request.object or {}
        if request.subresource:
            target = given.get("target") or {}
            node = target.get("name") if target.get("kind") == "Node" else None
        else:
            node = (given.get("spec") or {}).get("nodeName")
        found = self._state.get("nodes", "", node) if node else None
        held = ((found or {}).get("metadata") or {}).get("labels") or {}
        if copied := {name: held[name] for name in _LABELS if name in held}:
            metadata = given.setdefault("metadata", {})
            metadata["labels"] = {**(metadata.get("labels") or {}), **copied}

    async def validate(self, request: Attributes) -> None:
        """Any node may be anywhere."""
