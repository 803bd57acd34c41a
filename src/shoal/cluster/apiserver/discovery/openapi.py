"""OpenAPI v3: the shape of every kind, for ``kubectl explain``, ``apply`` and validation; without Kubernetes' prose.

A document per group and version is made when it is first asked for, and again only when a definition has changed it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from shoal.cluster.apiserver.calls import Answer, Call, json_answer, no_such_path
from shoal.cluster.apiserver.kinds.kind import Kind
from shoal.cluster.apiserver.kinds.registry import Registry
from shoal.cluster.apiserver.kinds.tables import type_schema
from shoal.cluster.apiserver.schema import ListType, Schema

_PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_STRATEGIC = "application/strategic-merge-patch+json"
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_ANSWERS = {"200": "OK", "201": "Created", "202": "Accepted"}
_CODES = {
    "post": ("200", "201", "202"),
    "put": ("200", "201"),
    "patch": ("200", "201"),
    "delete": ("200", "202"),
}
_DELETE_OPTIONS = "meta.v1.DeleteOptions"
_TYPES = {"allowWatchBookmarks": "boolean", "limit": "integer", "timeoutSeconds": "integer", "watch": "boolean"}
_TYPES |= {"force": "boolean", "sendInitialEvents": "boolean", "gracePeriodSeconds": "integer"}
_TYPES |= {"orphanDependents": "boolean"}
_ZEROS = {"string": "", "integer": 0, "number": 0, "boolean": False}
_OBJECT_META = "meta.v1.ObjectMeta"

Document = dict[str, Any]


class OpenApi:
    """Answers /openapi/v3 and the documents below it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = -1
        self._documents: dict[str, tuple[bytes, str]] = {}
        self._builtin: dict[str, tuple[bytes, str]] = {}

    def answer(self, call: Call) -> Answer:
        """The index, or one document; a hash in the URL makes it cacheable for ever."""
        place = call.path.removeprefix("/openapi/v3").strip("/")
        kinds = self._kinds()
        if not place:
            paths = {
                where: {"serverRelativeURL": f"/openapi/v3/{where}?hash={self._tag(where, kinds)}"} for where in kinds
            }
            return json_answer({"paths": paths})
        if place not in kinds:
            return no_such_path()
        tag = self._tag(place, kinds)
        headers = {"ETag": f'"{tag}"', "Vary": "Accept"}
        if call.value("hash"):
            headers["Cache-Control"] = "public, immutable"
        if tag in call.headers.get("if-none-match", ""):
            return Answer(status=304, headers=headers)
        return Answer(body=self._document(place, kinds), headers=headers)

    def _kinds(self) -> dict[str, list[Kind]]:
        if self._generation != self._registry.generation:
            self._generation = self._registry.generation
            self._documents.clear()
        found: dict[str, list[Kind]] = {}
        for kind in self._registry:
            where = f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"
            found.setdefault(where, []).append(kind)
        return found

    def _tag(self, where: str, kinds: dict[str, list[Kind]]) -> str:
        """Names what a document says without making it: built-in kinds never change, custom ones with their CRD."""
        state = [
            (kind.definition or {}).get("metadata", {}).get(key, "")
            for kind in kinds[where]
            if kind.is_custom
            for key in ("uid", "generation")
        ]
        return hashlib.sha256(repr((where, state)).encode()).hexdigest().upper()

    def _document(self, where: str, kinds: dict[str, list[Kind]]) -> bytes:
        tag = self._tag(where, kinds)
        held = self._documents.get(where)
        if held is None or held[1] != tag:
            held = msgspec.json.encode(document(kinds[where])), tag
            self._documents[where] = held
        return held[0]


def document(kinds: Iterable[Kind]) -> Document:
    """The OpenAPI document of some kinds."""
    schemas = _Schemas()
    paths: dict[str, Any] = {}
    for kind in sorted(kinds, key=lambda kind: kind.resource):
        schemas.add_kind(kind)
        paths |= _paths(kind, schemas)
    for name in (_DELETE_OPTIONS, "meta.v1.Status"):
        schemas.reference(type_schema(name))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36+shoal"},
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.made.items()))},
    }


class _Schemas:
    """Collects the schemas that a document needs, each under one name."""

    def __init__(self) -> None:
        self.made: dict[str, Document] = {}

    def add_kind(self, kind: Kind) -> None:
        """The schema of a kind and of its list."""
        gvk = [{"group": kind.group, "kind": kind.kind, "version": kind.version}]
        if kind.is_custom:
            self.made[kind_name(kind)] = self._custom(kind) | {"x-kubernetes-group-version-kind": gvk}
        else:
            self.reference(kind.schema)
            self.made[kind_name(kind)]["x-kubernetes-group-version-kind"] = gvk
        if "list" in kind.verbs:
            self.made[f"{kind_name(kind)}List"] = {
                "type": "object",
                "required": ["items"],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "items": {"type": "array", "items": {"allOf": [_ref(kind_name(kind))], "default": {}}},
                    "kind": {"type": "string"},
                    "metadata": {"allOf": [self.reference(type_schema("meta.v1.ListMeta"))], "default": {}},
                },
                "x-kubernetes-group-version-kind": [{**gvk[0], "kind": kind.list_kind or f"{kind.kind}List"}],
            }

    def reference(self, schema: Schema) -> Document:
        """A reference to a named type, which is made where it is not there yet."""
        name = type_name(schema)
        if name not in self.made:
            self.made[name] = {}
            self.made[name] |= self._definition(schema)
        return _ref(name)

    def _definition(self, schema: Schema) -> Document:
        if not schema.properties:
            return _scalar(schema)
        made: Document = {"type": "object"}
        if schema.required:
            made["required"] = sorted(schema.required)
        made["properties"] = {name: self._place(one) for name, one in sorted(schema.properties.items())}
        if schema.is_atomic:
            made["x-kubernetes-map-type"] = "atomic"
        return made

    def _place(self, schema: Schema) -> Document:
        made = self._shape(schema)
        if schema.default is not msgspec.UNSET:
            made["default"] = schema.default
        if schema.merge_key:
            made["x-kubernetes-patch-merge-key"] = schema.merge_key
        if schema.merge_strategies:
            made["x-kubernetes-patch-strategy"] = ",".join(sorted(schema.merge_strategies))
        return made

    def _element(self, schema: Schema) -> Document:
        """What is in a list or a map, which has the zero of its type for default."""
        if schema.type_name and not schema.properties:
            return self.reference(schema)
        made = self._place(schema)
        if schema.type_name:
            made.setdefault("default", {})
        elif schema.type in _ZEROS and schema.format != "byte":
            made.setdefault("default", _ZEROS[schema.type])
        return made

    def _shape(self, schema: Schema) -> Document:
        if schema.type_name:
            return {"allOf": [self.reference(schema)]}
        if schema.items is not None and schema.type == "array":
            made: Document = {"type": "array", "items": self._element(schema.items)}
            if schema.list_type is not ListType.ATOMIC or schema.list_keys:
                made["x-kubernetes-list-type"] = schema.list_type.value
            else:
                made["x-kubernetes-list-type"] = "atomic"
            if schema.list_keys:
                made["x-kubernetes-list-map-keys"] = list(schema.list_keys)
            return made
        if schema.additional is not None:
            made = {"type": "object", "additionalProperties": self._element(schema.additional)}
            return made | ({"x-kubernetes-map-type": "atomic"} if schema.is_atomic else {})
        return _scalar(schema)

    def _custom(self, kind: Kind) -> Document:
        """A custom kind's schema as its CRD states it, with the metadata that all objects have."""
        stated = dict(kind.schema.raw or {"type": "object"})
        if stated.get("x-kubernetes-preserve-unknown-fields") and not stated.get("properties"):
            return stated
        metadata = {"allOf": [self.reference(type_schema(_OBJECT_META))]}
        head = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": metadata}
        stated["properties"] = {**stated.get("properties", {}), **head}
        return stated


def kind_name(kind: Kind) -> str:
    """The name of a kind's schema: for a custom one its group backwards, as Kubernetes names it."""
    if not kind.is_custom:
        return type_name(kind.schema)
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def type_name(schema: Schema) -> str:
    """The name of a built-in type's schema: ``io.k8s.api.core.v1.Pod``."""
    name = schema.type_name
    for prefix, long in _PREFIXES.items():
        if name.startswith(prefix):
            return long + name.removeprefix(prefix)
    return f"io.k8s.api.{name}"


_PREFIXES = {
    "meta.v1.": "io.k8s.apimachinery.pkg.apis.meta.v1.",
    "api.resource.": "io.k8s.apimachinery.pkg.api.resource.",
    "util.intstr.": "io.k8s.apimachinery.pkg.util.intstr.",
    "pkg.runtime.": "io.k8s.apimachinery.pkg.runtime.",
    "apiextensions.": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.",
    "metrics.": "io.k8s.metrics.pkg.apis.metrics.",
}


def _scalar(schema: Schema) -> Document:
    if schema.format == "int-or-string":
        return {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
    if schema.format == "quantity":
        return {"oneOf": [{"type": "string"}, {"type": "number"}]}
    made: Document = {}
    if schema.type:
        made["type"] = schema.type
    if schema.format:
        made["format"] = {"micro-time": "date-time"}.get(schema.format, schema.format)
    if schema.enum:
        made["enum"] = list(schema.enum)
    return made


def _ref(name: str) -> Document:
    return {"$ref": f"#/components/schemas/{name}"}


def _paths(kind: Kind, schemas: _Schemas) -> dict[str, Any]:
    """The URLs of a kind; kubectl looks here for the verbs and the parameters that they take."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    collection = f"{root}/namespaces/{{namespace}}/{kind.resource}" if kind.namespaced else f"{root}/{kind.resource}"
    body = _ref(kind_name(kind))
    make = partial(_operation, kind)
    found: dict[str, Any] = {collection: {}}
    if "list" in kind.verbs:
        items = _ref(f"{kind_name(kind)}List")
        found[collection]["get"] = make("list", items, parameters=_LIST)
        if kind.namespaced:
            found[f"{root}/{kind.resource}"] = {"get": make("list", items, parameters=_LIST)}
    if "create" in kind.verbs:
        found[collection]["post"] = make("post", body, parameters=_WRITE, takes=body)
    if "deletecollection" in kind.verbs:
        status = schemas.reference(type_schema("meta.v1.Status"))
        found[collection]["delete"] = make("deletecollection", status, parameters=_LIST)
    found[f"{collection}/{{name}}"] = _on_object(kind, kind.verbs, body, make)
    for name, part in kind.subresources.items():
        part_body = body if part.schema is None else schemas.reference(part.schema)
        found[f"{collection}/{{name}}/{name}"] = _on_object(kind, part.verbs, part_body, make)
    return {path: operations for path, operations in found.items() if operations}


def _on_object(kind: Kind, verbs: tuple[str, ...], body: Document, make: Callable[..., Document]) -> Document:
    found: Document = {}
    if "get" in verbs:
        found["get"] = make("get", body)
    if "update" in verbs:
        found["put"] = make("put", body, parameters=_WRITE, takes=body)
    if "create" in verbs and "list" not in verbs:
        found["post"] = make("post", body, parameters=_WRITE, takes=body)
    if "patch" in verbs:
        languages = _PATCHES if kind.is_custom else (*_PATCHES, _STRATEGIC)
        found["patch"] = make("patch", body, parameters=(*_WRITE, "force"), takes={"type": "object"}, media=languages)
    if "delete" in verbs:
        found["delete"] = make("delete", body, parameters=_DELETE, takes=_ref(type_name(type_schema(_DELETE_OPTIONS))))
    return found


def _operation(
    kind: Kind,
    action: str,
    answer: Document,
    *,
    parameters: Iterable[str] = (),
    takes: Document | None = None,
    media: tuple[str, ...] = (),
) -> Document:
    read = ("application/json", "application/yaml")
    content = {one: {"schema": answer} for one in read}
    found: Document = {
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": _TYPES.get(name, "string"), "uniqueItems": True}}
            for name in parameters
        ],
        "responses": {
            **{code: {"description": _ANSWERS[code], "content": content} for code in _CODES.get(action, ("200",))},
            "401": {"description": "Unauthorized"},
        },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": kind.group, "kind": kind.kind, "version": kind.version},
    }
    if takes is not None:
        media = media or (read if kind.is_custom else ("*/*",))
        found["requestBody"] = {"content": {one: {"schema": takes} for one in media}}
        if action != "delete":
            found["requestBody"]["required"] = True
    return found
