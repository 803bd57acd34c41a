"""What a sequence is made of: steps, the kind that they are about, and the request that a step is at last."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.fuzz.breakages import Breakage, at, broken, places, pointer
from tests.conformance.story import APPLY_PATCH, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Request

Object = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind as the fuzzer sees it; ``versions`` are its API versions, each with the path of its collection."""

    kind: str
    plural: str
    versions: tuple[str, ...]
    least_content: Object
    """What an object needs to be valid."""
    is_cluster_wide: bool = False
    has_status: bool = True
    has_scale: bool = False
    is_custom: bool = False

    def collection(self, version: int, namespace: str) -> str:
        api_version = self.api_version(version)
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        return f"{root}/{self.plural}" if self.is_cluster_wide else f"{root}/namespaces/{namespace}/{self.plural}"

    def api_version(self, version: int) -> str:
        return self.versions[version % len(self.versions)]

    def name(self, name: str, namespace: str) -> str:
        """Objects of kinds that have no namespaces carry it in their names."""
        return f"{name}-{namespace}" if self.is_cluster_wide and name else name

    def least(self, name: str, namespace: str) -> Object:
        body = {
            "apiVersion": self.versions[0],
            "kind": self.kind,
            "metadata": {"name": name},
            **self.least_content,
        }
        filled: Object = _filled(body, namespace)
        return filled


@dataclass(frozen=True)
class Operation:
    """One operation of a JSON patch; its places count through the live object."""

    op: str
    place: int
    origin: int = 0
    value: Any = None
    tail: str = ""


@dataclass(frozen=True)
class Step:
    """One request; ``how`` says what a verb leaves open."""

    verb: str
    name: str = "one"
    version: int = 0
    subresource: str = ""
    content: Any = None
    how: str = ""
    breakages: tuple[Breakage, ...] = ()
    query: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [self.verb, self.name, self.subresource, self.how]
        shown = " ".join(part for part in parts if part) + (f" v{self.version}" if self.version else "")
        return f"{shown} {dict(self.query)} {self.content} {list(self.breakages) or ''}"


def needs_live(step: Step) -> bool:
    """Whether a step is made of what is there."""
    return step.verb in ("put", "edit", "json-patch") or (step.verb == "delete" and bool(step.how))


def request_of(step: Step, kind: Kind, namespace: str, live: Object | None) -> Request:
    """The request to a server on which the object is now ``live``."""
    collection = kind.collection(step.version, namespace)
    name = kind.name(step.name, namespace)
    path = "/".join(part for part in (f"{collection}/{name}", step.subresource) if part)
    build = _BUILDERS[step.verb]
    method, content_type, body = build(step, kind, name, live)
    if method == "POST":
        path = collection
    if body is not None:
        body = _filled(broken(body, step.breakages), namespace)
    return Request(method=method, path=path, query=step.query, body=body, content_type=content_type)


def _filled(body: Any, namespace: str) -> Any:
    return json.loads(json.dumps(body).replace("{namespace}", namespace))


Built = tuple[str, str, Any]


def _whole(step: Step, kind: Kind, name: str) -> Object:
    """The content as an object of its own."""
    content = copy.deepcopy(step.content or {})
    metadata = {"name": name, **content.pop("metadata", {})}
    if step.subresource == "scale":
        return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, **content}
    return {"apiVersion": kind.api_version(step.version), "kind": kind.kind, "metadata": metadata, **content}


def _create(step: Step, kind: Kind, name: str, _live: Object | None) -> Built:
    body = _whole(step, kind, name)
    if step.how == "generate":
        body["metadata"] = {**body["metadata"], "generateName": f"{name}-"}
        del body["metadata"]["name"]
    return "POST", JSON, body


def _get(_step: Step, _kind: Kind, _name: str, _live: Object | None) -> Built:
    return "GET", "", None


def _put(step: Step, kind: Kind, name: str, live: Object | None) -> Built:
    """A client that knows all of the object, and perhaps the version that it replaces."""
    body = _whole(step, kind, name)
    if live is not None and step.how == "live":
        body["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
    elif step.how == "stale":
        body["metadata"]["resourceVersion"] = "1"
    return "PUT", JSON, body


def _edit(step: Step, kind: Kind, name: str, live: Object | None) -> Built:
    """A client that read the object, changed something and writes it back."""
    if live is None or step.subresource == "scale":
        return _put(step, kind, name, live)
    body = copy.deepcopy(live)
    for key, item in (step.content or {}).items():
        if isinstance(item, dict) and isinstance(body.get(key), dict):
            body[key] = {**body[key], **copy.deepcopy(item)}
        else:
            body[key] = copy.deepcopy(item)
    return "PUT", JSON, body


def _json_patch(step: Step, _kind: Kind, _name: str, live: Object | None) -> Built:
    found = list(places(live)) if live else []
    operations = []
    for one in step.content:
        path = found[one.place % len(found)] if found else ("metadata", "labels")
        origin = found[one.origin % len(found)] if found else ("metadata",)
        row: Object = {"op": one.op, "path": pointer(path) + one.tail}
        if one.op in ("copy", "move"):
            row["from"] = pointer(origin)
        elif one.op == "test" and one.value is None and live:
            row["value"] = copy.deepcopy(at(live, path))
        elif one.op != "remove":
            row["value"] = one.value
        operations.append(row)
    return "PATCH", JSON_PATCH, operations


def _patch(content_type: str) -> Callable[[Step, Kind, str, Object | None], Built]:
    def build(step: Step, _kind: Kind, _name: str, _live: Object | None) -> Built:
        return "PATCH", content_type, copy.deepcopy(step.content or {})

    return build


def _apply(step: Step, kind: Kind, name: str, _live: Object | None) -> Built:
    return "PATCH", APPLY_PATCH, _whole(step, kind, name)


def _delete(step: Step, _kind: Kind, _name: str, live: Object | None) -> Built:
    body = copy.deepcopy(step.content)
    if step.how and live is not None:
        metadata = live["metadata"]
        preconditions = {
            "uid": {"uid": metadata["uid"]},
            "version": {"resourceVersion": metadata["resourceVersion"]},
            "wrong-uid": {"uid": "11111111-2222-3333-4444-555555555555"},
            "wrong-version": {"resourceVersion": "1"},
        }[step.how]
        body = {**(body or {"kind": "DeleteOptions", "apiVersion": "v1"}), "preconditions": preconditions}
    return "DELETE", JSON if body is not None else "", body


_BUILDERS: dict[str, Callable[[Step, Kind, str, Object | None], Built]] = {
    "create": _create,
    "get": _get,
    "put": _put,
    "edit": _edit,
    "json-patch": _json_patch,
    "merge": _patch(MERGE_PATCH),
    "strategic": _patch(STRATEGIC_PATCH),
    "apply": _apply,
    "delete": _delete,
}
