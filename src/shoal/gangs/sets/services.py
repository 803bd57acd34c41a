"""The headless Service of a replica: its pods find each other by name."""

from __future__ import annotations

from typing import Any

from shoal.api.core import SERVICES
from shoal.api.grove import PodCliqueSet, names


def headless_service(pcs: PodCliqueSet, replica: int) -> dict[str, Any]:
    """The Service; pods that are not ready are found as well, unless the set says otherwise."""
    set_name = pcs.metadata.name
    name = names.headless_service(set_name, replica)
    config = pcs.spec.template.headless_service_config
    shows_unready = config is None or config.publish_not_ready_addresses is not False
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {
            "name": name,
            "namespace": pcs.metadata.namespace,
            "labels": {
                **names.component_labels(set_name, name, names.HEADLESS_SERVICE_COMPONENT),
                names.SET_REPLICA_LABEL: str(replica),
            },
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": shows_unready,
            "selector": {**names.default_labels(set_name), names.SET_REPLICA_LABEL: str(replica)},
        },
    }
