"""The init container of a pod that starts after others, and the volumes that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from shoal.api.grove import names, start_order
from shoal.gangs.plan import Parent
from shoal.gangs.settings import GangSettings

ACCOUNT_VOLUME: Final = "sa-token-secret-vol"
POD_INFO_VOLUME: Final = "pod-info-vol"
ACCOUNT_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True, kw_only=True)
class StartUp:
    """What a pod gets that starts after others: the last of its init containers, and further volumes."""

    init_container: dict[str, Any]
    volumes: list[dict[str, Any]]


def start_container(parents: Sequence[Parent], settings: GangSettings, set_name: str) -> StartUp | None:
    """What makes a pod of a set wait for its parents; None where it has none."""
    if not parents:
        return None
    container = {
        "name": start_order.CONTAINER,
        "image": settings.start_image,
        "args": [start_order.argument(parent.clique, parent.min_available) for parent in parents],
        "volumeMounts": [
            {"name": POD_INFO_VOLUME, "mountPath": start_order.POD_INFO_FOLDER, "readOnly": True},
            {"name": ACCOUNT_VOLUME, "mountPath": ACCOUNT_FOLDER, "readOnly": True},
        ],
    }
    account = {
        "name": ACCOUNT_VOLUME,
        "secret": {"secretName": names.token_secret(set_name), "defaultMode": 0o644},
    }
    pod_info = {
        "name": POD_INFO_VOLUME,
        "downwardAPI": {
            "items": [
                {"path": start_order.NAMESPACE_FILE, "fieldRef": {"fieldPath": "metadata.namespace"}},
                {
                    "path": start_order.GANG_FILE,
                    "fieldRef": {"fieldPath": f"metadata.labels['{names.GANG_LABEL}']"},
                },
            ]
        },
    }
    return StartUp(init_container=container, volumes=[account, pod_info])
