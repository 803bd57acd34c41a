"""Where a kind lives on the wire, and the Python type its objects decode into.

A ``Resource`` is a plain value that names both, so that every call on a client or a cache is typed by it:
``client.get(QUEUES, "team-a")`` gives a ``Queue``. ``QUEUES.view(QueueName)`` reads the same objects into another type
that names fewer fields: what a type does not name is skipped while decoding and costs no memory.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import msgspec

from shoal.api.meta.objects import Document, HasMetadata, PartialObject

T = TypeVar("T", bound=HasMetadata)
V = TypeVar("V", bound=HasMetadata)


class DecodeError(Exception):
    """One object of the wire does not fit its type: says which object, which field and what is wrong there."""

    def __init__(self, resource: Resource[Any], partial: PartialObject, problem: str) -> None:
        self.resource = resource
        self.namespace = partial.metadata.namespace
        self.name = partial.metadata.name
        self.uid = partial.metadata.uid
        self.resource_version = partial.metadata.resource_version
        self.problem = problem
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        super().__init__(f"{resource.kind} {where} does not decode: {problem}")


@dataclass(frozen=True, kw_only=True)
class Resource(Generic[T]):
    """One kind of one API version, with its place in URLs and its Python type."""

    type: type[T]
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    _decoder: msgspec.json.Decoder[Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_decoder", msgspec.json.Decoder(dict if self.type is Document else self.type))

    @property
    def api_version(self) -> str:
        """``group/version`` as objects carry it; the core group has no name."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """``plural.group``, as CRDs and RBAC rules are named."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def __str__(self) -> str:
        return f"{self.plural}.{self.version}.{self.group}" if self.group else f"{self.plural}.{self.version}"

    def view(self, type: builtins.type[V]) -> Resource[V]:  # noqa: A002 - the field's own name
        """The same objects, read into another type."""
        return replace(self, type=type)  # type: ignore[arg-type, return-value]

    def documents(self) -> Resource[Document]:
        """The same objects, whole: for children that are applied field by field."""
        return self.view(Document)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of a collection, an object or one of its subresources."""
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.kind} {name} lives in a namespace: say in which")
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def decode(self, data: bytes | msgspec.Raw) -> T:
        """One object from its JSON; raises DecodeError, which names the object, where it does not fit the type."""
        try:
            decoded = self._decoder.decode(data)
            if self.type is Document:
                decoded = Document.of(decoded)
        except msgspec.DecodeError as error:
            raise DecodeError(self, PartialObject.salvage(data), str(error)) from error
        except RecursionError as error:
            raise DecodeError(self, PartialObject.salvage(data), "it is nested too deep") from error
        return decoded  # type: ignore[no-any-return]
