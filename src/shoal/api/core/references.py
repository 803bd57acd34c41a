"""How one object names another of any kind."""

from __future__ import annotations

from shoal.api.meta import Wire


class ObjectReference(Wire, frozen=True, kw_only=True):
    """Names any object."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""
