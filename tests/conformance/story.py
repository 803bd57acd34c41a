"""What a story is: requests told in order, whose answers may be used in later ones.

Strings of paths, queries and bodies may name what is only known when a story is played: ``{ns}`` is the story's own
namespace, ``{made.metadata.uid}`` is a value of the answer that an earlier request called ``made``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Until = Callable[[int, Any], bool]
"""Whether an answer, by its status and body, is the one waited for."""

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

CORE = "/api/v1/namespaces/{ns}"
APPS = "/apis/apps/v1/namespaces/{ns}"
BATCH = "/apis/batch/v1/namespaces/{ns}"


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request; ``until`` asks again and again and keeps the first answer that satisfies it."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    """A dict or list is sent as JSON, a string or bytes as they are."""
    content_type: str = ""
    accept: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    """Who is impersonated; "-" sends no credentials at all."""
    groups: Sequence[str] = ()
    called: str = ""
    until: Until | None = None
    shown: Callable[[Any], Any] | None = None
    """What of the body is recorded, where all of it would be too much."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Opens a watch and leaves it open; ``Events`` reads from it."""

    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    accept: str = JSON
    called: str = "watch"


@dataclass(frozen=True, kw_only=True)
class Events:
    """Reads so many events from an open watch."""

    count: int
    of: str = "watch"


Step = Request | Watch | Events


@dataclass(frozen=True)
class Story:
    """A name that is a claim or a topic, and what is asked."""

    name: str
    steps: Sequence[Step]
    account: bool = False
    """Whether the namespace gets its ``default`` ServiceAccount first, which pods need."""

    @property
    def namespace(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower())[:55].strip("-")


def get(path: str, **more: Any) -> Request:
    return _request("GET", path, None, more)


def post(path: str, body: Any, **more: Any) -> Request:
    return _request("POST", path, body, {"content_type": JSON, **more})


def put(path: str, body: Any, **more: Any) -> Request:
    return _request("PUT", path, body, {"content_type": JSON, **more})


def delete(path: str, body: Any = None, **more: Any) -> Request:
    return _request("DELETE", path, body, {"content_type": JSON if body is not None else "", **more})


def patch(path: str, body: Any, content_type: str = MERGE_PATCH, **more: Any) -> Request:
    return _request("PATCH", path, body, {"content_type": content_type, **more})


def apply(path: str, body: Any, manager: str = "one", **more: Any) -> Request:
    """Server-side apply by a manager; "force" and other options are keywords."""
    query = {"fieldManager": manager, **more.pop("query", {})}
    if more.pop("force", False):
        query["force"] = "true"
    return _request("PATCH", path, body, {"content_type": APPLY_PATCH, "query": query, **more})


def watch(path: str, called: str = "watch", accept: str = JSON, **query: Any) -> Watch:
    return Watch(path=path, query={"watch": "true", **query}, called=called, accept=accept)


def watched(path: str, accept: str = JSON, called: str = "", **query: Any) -> Request:
    """A watch that is read to its end, a second later: nothing else happens meanwhile."""
    asked = {"watch": "true", "timeoutSeconds": "1", **query}
    return Request(method="GET", path=path, query=asked, accept=accept, called=called)


def status_is(*wanted: int) -> Until:
    return lambda status, _body: status in wanted


def status_is_not(*unwanted: int) -> Until:
    return lambda status, _body: status not in unwanted


def has_condition(kind: str, value: str = "True") -> Until:
    """Whether the object has this condition; what is not there yet is waited for."""

    def holds(_status: int, body: Any) -> bool:
        status = body.get("status") if isinstance(body, dict) else None
        conditions = (status.get("conditions") or []) if isinstance(status, dict) else []
        return any(one.get("type") == kind and one.get("status") == value for one in conditions)

    return holds


def _request(method: str, path: str, body: Any, more: dict[str, Any]) -> Request:
    options = {name.rstrip("_"): value for name, value in more.items()}
    return Request(method=method, path=path, body=body, **options)
