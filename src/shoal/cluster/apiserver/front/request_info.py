"""What a URL and a method mean: the verb, and the resource, object and subresource that they are about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

# Below a namespace's own name these are its subresources; anything else is a resource inside it.
_OF_NAMESPACE = ("status", "finalize")
_ON_OBJECTS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_REMEMBERED = 4096
_LONGEST_REMEMBERED = 256
_ON_COLLECTIONS = {**_ON_OBJECTS, "GET": "list", "HEAD": "list", "DELETE": "deletecollection"}


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestInfo:
    """A request as access and dispatch see it."""

    verb: str
    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    rest: str = ""
    """What follows a subresource that leads elsewhere, such as ``proxy``."""
    is_watch_path: bool = False


def request_info(method: str, path: str, *, watch: bool) -> RequestInfo:
    """Reads a path that is already percent-decoded; only slashes at its end count for nothing, as in Kubernetes."""
    return (_remembered if len(path) <= _LONGEST_REMEMBERED else _read)(method, path, watch)


def _read(method: str, path: str, watch: bool) -> RequestInfo:
    parts = path[1:].rstrip("/").split("/")
    if parts[0] not in ("api", "apis"):
        return RequestInfo(verb=method.lower(), path=path)
    group, found = "", parts[1:]
    if parts[0] == "apis":
        if len(found) < 3 or not found[0]:
            return RequestInfo(verb=method.lower(), path=path)
        group, found = found[0], found[1:]
    if len(found) < 2:
        return RequestInfo(verb=method.lower(), path=path)
    version, found = found[0], found[1:]
    is_watch_path = found[0] == "watch" and len(found) > 1
    if is_watch_path:
        found = found[1:]
    namespace = ""
    if found[0] == "namespaces" and len(found) > 1:
        namespace = found[1]
        if len(found) > 2 and found[2] not in _OF_NAMESPACE:
            found = found[2:]
    resource, name, subresource, rest = found[0], *_padded(found[1:])
    if resource == "namespaces":
        namespace = name
    verb = (_ON_OBJECTS if name else _ON_COLLECTIONS).get(method, method.lower())
    if method in ("GET", "HEAD") and (is_watch_path or (watch and not name)):
        verb = "watch"
    return RequestInfo(
        verb=verb,
        path=path,
        is_resource=True,
        group=group,
        version=version,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
        rest=rest,
        is_watch_path=is_watch_path,
    )


_remembered = lru_cache(_REMEMBERED)(_read)


def _padded(parts: list[str]) -> tuple[str, str, str]:
    name = parts[0] if parts else ""
    subresource = parts[1] if len(parts) > 1 else ""
    return name, subresource, "/".join(parts[2:])
