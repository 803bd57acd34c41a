"""What keeps pods off a node that is not ready, or gone: a taint for new nodes, tolerations that end for pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.scope import WRITE, scope

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
TOLERATION_SECONDS = 300


class DefaultTolerationSeconds:
    """Lets a pod stay for five minutes on a node that stopped answering, unless it says otherwise."""

    mutates = scope("pods", operations=WRITE)
    validates = None

    async def mutate(self, request: Attributes) -> None:
        """Adds the two tolerations, where the pod has none of the sort."""
        spec = (request.object or {}).setdefault("spec", {})
        held = spec.get("tolerations") or []
        missing = [key for key in (NOT_READY, UNREACHABLE) if not any(_tolerates(each, key) for each in held)]
        if missing:
            spec["tolerations"] = held + [
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS}
                for key in missing
            ]

    async def validate(self, request: Attributes) -> None:
        """Every toleration is as good as any."""


class TaintNodesByCondition:
    """Keeps pods away from a new node until it says that it is ready."""

    mutates = scope("nodes")
    validates = None

    async def mutate(self, request: Attributes) -> None:
        """Adds the taint."""
        spec = (request.object or {}).setdefault("spec", {})
        held = spec.get("taints") or []
        if not any(each.get("key") == NOT_READY and each.get("effect") == "NoSchedule" for each in held):
            spec["taints"] = [*held, {"key": NOT_READY, "effect": "NoSchedule"}]

    async def validate(self, request: Attributes) -> None:
        """Any node may be."""


def _tolerates(toleration: Mapping[str, Any], key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (None, "", "NoExecute")
