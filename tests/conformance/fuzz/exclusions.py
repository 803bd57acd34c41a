"""What the embedded server does not copy, with the reason; the fuzzer reads the object instead of asking for it."""

from __future__ import annotations

from typing import Any

from tests.conformance.fuzz.steps import Kind, Object, Step
from tests.conformance.story import Request

# Kubernetes tells an empty list from none until an object is stored, and not afterwards: who writes one owns it, or is
# refused in other words, and what is stored is the same. In normal form there is no such difference.
_EMPTY_IS_NONE = {
    "Role": frozenset({"rules"}),
    "HorizontalPodAutoscaler": frozenset({"policies"}),
    "Job": frozenset({"values"}),
    "Node": frozenset({"allocatable"}),
}
_BYTES = {"Secret": "data", "ConfigMap": "binaryData"}
_MARKS = frozenset({"labels", "annotations", "finalizers", "ownerReferences"})
_CONTENTS = frozenset({"data", "binaryData", "stringData"})


def why_excluded(step: Step, kind: Kind, request: Request, live: Object | None) -> str:
    """The reason, or "" where the request is sent."""
    if kind.kind == "Service" and step.subresource == "status" and live is None:
        return "a status written to no service makes one without addresses, which no client can want"
    if kind.is_custom and step.subresource == "scale" and step.verb == "apply":
        return "apply to the scale of a custom object fails there, and works here"
    if kind.is_custom and step.subresource == "scale" and step.breakages:
        return "a wrong scale of a custom object is refused in words about the server's insides"
    if _changes_type(step, kind, request):
        return "an object that is to become another kind is refused at one of many places, or not at all"
    if step.verb == "strategic" and any(one.how == "huge" for one in step.breakages):
        return "a number that is too large for its type is cut off by a strategic patch, and refused here"
    if step.how == "stale" and "dryRun" in step.query and live is None:
        return "a dry run that creates shows the version that it was sent"
    if kind.is_custom and not step.subresource and step.breakages and "status" in (step.content or ()):
        return "a status that does not fit costs an object its owners, although it is dropped"
    if step.verb not in ("merge", "strategic") and _has_null_bytes(request.body, _BYTES.get(kind.kind, "")):
        return (
            "bytes that are null are stored otherwise than the empty ones that they are read as, until the next write"
        )
    if kind.is_custom and step.verb == "apply" and _has_empty(request.body.get("metadata"), _MARKS):
        return "empty metadata, applied to a custom object, is a change of it once a second has passed, and never here"
    if _has_empty(request.body, _EMPTY_IS_NONE.get(kind.kind, frozenset())):
        return "an empty list differs from none until it is stored"
    if live is not None and live.get("immutable") and _has_empty(request.body, _CONTENTS, inside=True):
        return "the content of what is immutable may not even change from none to empty, which are stored alike"
    return ""


def _changes_type(step: Step, kind: Kind, request: Request) -> bool:
    if step.verb == "json-patch":
        return any(
            row[end] in ("/apiVersion", "/kind") for row in request.body for end in ("path", "from") if end in row
        )
    if not kind.is_custom or step.verb not in ("create", "put", "edit") or step.subresource == "scale":
        return False
    return (request.body.get("apiVersion", ""), request.body.get("kind")) != (kind.api_version(step.version), kind.kind)


def _has_null_bytes(body: Any, name: str) -> bool:
    if not name:
        return False
    if isinstance(body, list):
        return any(row["path"].startswith(f"/{name}/") and row.get("value", "") is None for row in body)
    held = body.get(name) if isinstance(body, dict) else None
    return isinstance(held, dict) and None in held.values()


def asks_for_live(step: Step, kind: Kind) -> bool:
    """Whether the reason needs to know what is there."""
    return kind.kind in ("ConfigMap", "Secret") or (kind.kind == "Service" and step.subresource == "status")


def _has_empty(value: Any, names: frozenset[str], *, inside: bool = False) -> bool:
    if not names:
        return False
    if isinstance(value, list):
        return any(_has_empty(item, names, inside=inside) for item in value)
    if not isinstance(value, dict):
        return False
    if str(value.get("path", "")).rpartition("/")[2] in names and not value.get("value"):
        return True
    return any(
        (key in names and (not item or (inside and isinstance(item, dict) and None in item.values())))
        or _has_empty(item, names, inside=inside)
        for key, item in value.items()
    )
