"""What a cluster has for training from the start: the built-in runtimes, and what the Kubeflow SDK asks for first.

The SDK reads in a ConfigMap that everybody may see which version of Trainer there is.
"""

from __future__ import annotations

import asyncio
from typing import Final

from shoal.api.core import CONFIG_MAPS, NAMESPACES, SERVICES
from shoal.api.rbac import ROLE_BINDINGS, ROLES
from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES, names
from shoal.kube import Manager
from shoal.kube.defaults import DefaultObject, add_default_objects
from shoal.training.progress import PORT
from shoal.training.runtimes import built_in_runtimes

FIELD_MANAGER: Final = "shoal-runtimes"
TRAINER_VERSION: Final = "v2.3.0"
"""The version of Kubeflow Trainer that this is like."""


def default_objects(service: str = "") -> list[DefaultObject]:
    """All of them, each after those that it refers to; ``service`` leads to the server of reports, if there is one."""
    runtimes = built_in_runtimes().values()
    return [
        *_public_version(),
        *([_service(service)] if service else ()),
        *(DefaultObject(CLUSTER_TRAINING_RUNTIMES.documents(), body) for body in runtimes),
    ]


def add_training_defaults(manager: Manager, *, service: str = "") -> asyncio.Event:
    """Has them made once this process leads; the event tells when all are there."""
    return add_default_objects(manager, default_objects(service), field_manager=FIELD_MANAGER)


def _service(name: str) -> DefaultObject:
    """Without a selector: who runs the server knows where it is."""
    metadata = {"name": name, "namespace": names.SYSTEM_NAMESPACE}
    ports = [{"name": "status-server", "port": PORT, "protocol": "TCP"}]
    return DefaultObject(SERVICES.documents(), {"metadata": metadata, "spec": {"ports": ports}})


def _public_version() -> list[DefaultObject]:
    metadata = {"name": names.PUBLIC_CONFIG_MAP, "namespace": names.SYSTEM_NAMESPACE}
    group = "rbac.authorization.k8s.io"
    rule = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": [names.PUBLIC_CONFIG_MAP],
        "verbs": ["get"],
    }
    role = {"apiGroup": group, "kind": "Role", "name": names.PUBLIC_CONFIG_MAP}
    everybody = {"apiGroup": group, "kind": "Group", "name": "system:authenticated"}
    return [
        DefaultObject(NAMESPACES.documents(), {"metadata": {"name": names.SYSTEM_NAMESPACE}}),
        DefaultObject(
            CONFIG_MAPS.documents(), {"metadata": metadata, "data": {names.PUBLIC_VERSION_KEY: TRAINER_VERSION}}
        ),
        DefaultObject(ROLES.documents(), {"metadata": metadata, "rules": [rule]}),
        DefaultObject(ROLE_BINDINGS.documents(), {"metadata": metadata, "roleRef": role, "subjects": [everybody]}),
    ]
