"""Namespaces, configuration and events."""

from __future__ import annotations

from datetime import datetime

from shoal.api.meta import Document, Object, Resource, Wire


class ConfigMap(Object, frozen=True, kw_only=True):
    """Configuration as text."""

    data: dict[str, str] = {}


class Identity(Wire, frozen=True, kw_only=True):
    """What tells an object from all others."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Existence(Wire, frozen=True, kw_only=True):
    """That an object is there, and nothing else of it: for those who hold many and read none."""

    metadata: Identity = Identity()


class NamespaceSpec(Wire, frozen=True, kw_only=True):
    """What keeps a namespace from going."""

    finalizers: list[str] = []


class NamespaceCondition(Wire, frozen=True, kw_only=True):
    """Why a namespace is still there."""

    type: str = ""
    status: str
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class NamespaceStatus(Wire, frozen=True, kw_only=True):
    """Whether a namespace is on its way out."""

    phase: str = ""
    conditions: list[NamespaceCondition] = []


class Namespace(Object, frozen=True, kw_only=True):
    """A room for objects."""

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


CONFIG_MAPS = Resource(type=ConfigMap, group="", version="v1", kind="ConfigMap", plural="configmaps")
NAMESPACES = Resource(type=Namespace, group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
EVENTS = Resource(type=Document, group="", version="v1", kind="Event", plural="events")
