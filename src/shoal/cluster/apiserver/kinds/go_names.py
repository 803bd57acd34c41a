"""The names of Kubernetes' own Go types, which some refusals tell."""

from __future__ import annotations

from shoal.cluster.apiserver.kinds.kind import Kind

# Events of both groups are one type inside.
_PACKAGES = {"": "core", "events.k8s.io": "core"}


def internal_name(kind: Kind, suffix: str = "") -> str:
    """The type by which a kind is known inside, whatever its version: ``core.ConfigMap``, ``rbac.RoleList``."""
    if kind.is_custom:
        return f"unstructured.Unstructured{suffix}"
    return f"{_PACKAGES.get(kind.group) or kind.group.partition('.')[0]}.{kind.kind}{suffix}"
