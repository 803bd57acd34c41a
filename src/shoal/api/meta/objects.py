"""What every object carries: type, metadata, owner references; and the two untyped shapes, partial and whole.

Structs are frozen (a cache hands out one object to many readers) and not tracked by the cyclic collector (what comes
from JSON has no cycles), which is most of the cost of holding a hundred thousand of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

import msgspec

from shoal.api.meta.scan import members


class Wire(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename="camel"):
    """The base of everything that is read from or written to the wire: camelCase there, snake_case here."""


class OwnerReference(Wire, frozen=True, kw_only=True):
    """Names the object that this one belongs to."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Wire, frozen=True, kw_only=True):
    """The metadata of an object, less what only the server reads (managedFields, selfLink)."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []

    @property
    def is_deleting(self) -> bool:
        """Whether someone has asked for the object's deletion."""
        return self.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that manages this object, if any."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Metadata(Protocol):
    """What a cache needs of an object's metadata; a view may name just these fields."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


class HasMetadata(Protocol):
    """Anything that is an API object."""

    @property
    def metadata(self) -> Any: ...


class Object(Wire, frozen=True, kw_only=True):
    """An API object: subclasses add what they read of spec and status."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class PartialObject(Object, frozen=True, kw_only=True):
    """An object's identity and metadata, whatever its kind."""

    @classmethod
    def salvage(cls, data: bytes | msgspec.Raw) -> PartialObject:
        """As much of an object's identity as can be read of one that does not decode."""
        try:
            fields = msgspec.json.decode(dict(members(bytes(data))).get("metadata", b"{}"))
            known = {key: fields.get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
            metadata = {key: value for key, value in known.items() if isinstance(value, str)}
        except (msgspec.DecodeError, AttributeError, RecursionError):
            metadata = {}
        return msgspec.convert({"metadata": metadata}, cls)


class Document(msgspec.Struct, frozen=True, gc=False):
    """A whole object as plain JSON values, beside its typed metadata."""

    metadata: ObjectMeta
    content: dict[str, Any]

    @classmethod
    def of(cls, content: dict[str, Any]) -> Document:
        """Wraps plain JSON values, checking the metadata alone."""
        return cls(msgspec.convert(content, PartialObject).metadata, content)
