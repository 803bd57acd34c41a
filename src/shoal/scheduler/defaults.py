"""What a cluster has from the start: two queues, four priorities, and two namespaces that the scheduler's parts use."""

from __future__ import annotations

from typing import Any, Final

from shoal.api import kai_names as names
from shoal.api.core import NAMESPACES
from shoal.api.scheduling_k8s_io import PRIORITY_CLASSES
from shoal.api.scheduling_run_ai import QUEUES
from shoal.kube import Manager
from shoal.kube.defaults import DefaultObject, add_default_objects

FIELD_MANAGER: Final = "kai-defaults"

_ALL_OF_THE_SURPLUS: Final = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
_DESCRIPTIONS: Final = {
    "train": "Training: may be evicted for others.",
    "build-preemptible": "Interactive work that may be evicted for others.",
    "build": "Interactive work that is not evicted, within its queue's quota.",
    "inference": "Serving: not evicted, and before everything else, within its queue's quota.",
}


def default_objects(
    *,
    reservation_namespace: str = names.RESERVATION_NAMESPACE,
    scale_adjust_namespace: str = names.SCALE_ADJUST_NAMESPACE,
) -> list[DefaultObject]:
    """All of them, each after those that it refers to."""
    namespaces = (reservation_namespace, scale_adjust_namespace)
    return [
        *(DefaultObject(NAMESPACES.documents(), {"metadata": {"name": name}}) for name in namespaces),
        *(DefaultObject(PRIORITY_CLASSES.documents(), _priority(name)) for name in names.PRIORITIES),
        DefaultObject(QUEUES.documents(), _queue(names.DEFAULT_PARENT_QUEUE)),
        DefaultObject(QUEUES.documents(), _queue(names.DEFAULT_QUEUE, parent=names.DEFAULT_PARENT_QUEUE)),
    ]


def add_defaults(manager: Manager) -> None:
    """Has them made once this process leads."""
    add_default_objects(manager, default_objects(), field_manager=FIELD_MANAGER)


def _queue(name: str, *, parent: str = "") -> dict[str, Any]:
    resources = {resource: dict(_ALL_OF_THE_SURPLUS) for resource in ("cpu", "gpu", "memory")}
    return {"metadata": {"name": name}, "spec": {**({"parentQueue": parent} if parent else {}), "resources": resources}}


def _priority(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "value": names.PRIORITIES[name], "description": _DESCRIPTIONS[name]}
