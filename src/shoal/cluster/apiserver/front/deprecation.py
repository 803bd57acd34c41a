"""What clients of a kind are warned of with every answer: that it is deprecated, and what to use instead."""

from __future__ import annotations

from shoal.cluster.apiserver.discovery import version_order
from shoal.cluster.apiserver.kinds.kind import Kind

_BUILTIN = {
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}


def deprecation(kind: Kind) -> str:
    """The warning; empty where the kind is not deprecated."""
    if kind.definition is None:
        return _BUILTIN.get(kind.storage, "")
    versions = {each["name"]: each for each in kind.definition["spec"]["versions"]}
    own = versions[kind.version]
    if not own.get("deprecated"):
        return ""
    if stated := own.get("deprecationWarning"):
        return str(stated)
    rank = version_order(kind.version)
    better = [name for name, each in versions.items() if each.get("served") and not each.get("deprecated")]
    better = sorted((name for name in better if version_order(name) < rank), key=version_order)
    advice = f"; use {kind.group}/{better[0]} {kind.kind}" if better else ""
    return f"{kind.api_version} {kind.kind} is deprecated{advice}"
