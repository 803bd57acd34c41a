"""The core group: the built-in kinds that controllers of ours read and write."""

from __future__ import annotations

from shoal.api.meta.objects import Document, Object
from shoal.api.meta.resource import Resource


class ConfigMap(Object, frozen=True, kw_only=True):
    """Configuration as text."""

    data: dict[str, str] = {}


CONFIG_MAPS = Resource(type=ConfigMap, group="", version="v1", kind="ConfigMap", plural="configmaps")
PODS = Resource(type=Document, group="", version="v1", kind="Pod", plural="pods")
SERVICES = Resource(type=Document, group="", version="v1", kind="Service", plural="services")
NODES = Resource(type=Document, group="", version="v1", kind="Node", plural="nodes", namespaced=False)
SECRETS = Resource(type=Document, group="", version="v1", kind="Secret", plural="secrets")
NAMESPACES = Resource(type=Document, group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
SERVICE_ACCOUNTS = Resource(type=Document, group="", version="v1", kind="ServiceAccount", plural="serviceaccounts")
EVENTS = Resource(type=Document, group="", version="v1", kind="Event", plural="events")
