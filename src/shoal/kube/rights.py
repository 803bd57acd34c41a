"""What a process may do in a cluster, as data: rules, and the objects that give them to its account."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

Rule: TypeAlias = dict[str, list[str]]

_GROUP: Final = "rbac.authorization.k8s.io"


def rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Rule:
    """One rule of a role, about kinds of one group."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def account_with_rights(
    account: str, namespace: str, *, role: str, rules: Iterable[Rule], own_role: str, own_rules: Iterable[Rule]
) -> list[dict[str, Any]]:
    """An account, its rights in the whole cluster, and those in its own namespace, such as to hold a lease there."""
    labels = {"app.kubernetes.io/name": account, "app.kubernetes.io/part-of": "shoal"}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}

    def made(api_version: str, kind: str, name: str, place: str = "") -> dict[str, Any]:
        metadata = {"name": name, **({"namespace": place} if place else {}), "labels": labels}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata}

    def bound(kind: str, name: str) -> dict[str, Any]:
        return {"roleRef": {"apiGroup": _GROUP, "kind": kind, "name": name}, "subjects": [subject]}

    return [
        made("v1", "ServiceAccount", account, namespace),
        made(f"{_GROUP}/v1", "ClusterRole", role) | {"rules": list(rules)},
        made(f"{_GROUP}/v1", "ClusterRoleBinding", role) | bound("ClusterRole", role),
        made(f"{_GROUP}/v1", "Role", own_role, namespace) | {"rules": list(own_rules)},
        made(f"{_GROUP}/v1", "RoleBinding", own_role, namespace) | bound("Role", own_role),
    ]
