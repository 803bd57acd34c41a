"""Builds struct types on the spot, for tests of what is derived from types."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.meta.objects import Object, Wire


def a_struct(name: str = "Thing", /, *, doc: str = "", schema: msgspec.Meta | None = None, **fields: Any) -> Any:
    """A struct with these fields: a type, or a type and its default; the former are required."""
    return _struct(name, Wire, doc, schema, fields)


def a_kind(name: str = "Thing", /, *, doc: str = "", schema: msgspec.Meta | None = None, **fields: Any) -> Any:
    """An API object with these fields beside its metadata."""
    return _struct(name, Object, doc, schema, fields)


def _struct(name: str, base: type[Any], doc: str, schema: msgspec.Meta | None, fields: dict[str, Any]) -> Any:
    namespace: dict[str, Any] = {"__doc__": doc} if doc else {}
    if schema is not None:
        namespace["SCHEMA"] = schema
    declared = [(field, *said) if isinstance(said, tuple) else (field, said) for field, said in fields.items()]
    return msgspec.defstruct(name, declared, bases=(base,), namespace=namespace, frozen=True, kw_only=True)
