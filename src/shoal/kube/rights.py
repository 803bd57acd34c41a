"""What a process may do in a cluster, as data: rules, and the objects that give them to its account."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

Rule: TypeAlias = dict[str, list[str]]

_GROUP: Final = "rbac.authorization.k8s.io"


def rule(group: str, resources: Sequence[str], verbs: Sequence[str], *, names: Iterable[str] = ()) -> Rule:
    """One rule of a role, about kinds of one group; with names, about the objects of these names alone."""
    made = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return {**made, "resourceNames": sorted(names)} if names else made


def holding_lease() -> Rule:
    """Rights to be elected leader by a lease of one's own namespace, whatever it is called."""
    return rule("coordination.k8s.io", ["leases"], ["get", "create", "patch"])


def registering(names: Iterable[str]) -> tuple[Rule, ...]:
    """Rights to register webhooks under some names, and to follow what becomes of them; others' are only read.

    A registration is made by server-side apply, whose URL has its name: even the right to create is for these alone.
    """
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    group = "admissionregistration.k8s.io"
    return (
        rule(group, kinds, ("list", "watch")),
        rule(group, kinds, ("get", "create", "patch", "delete"), names=names),
    )


def keeping_certificate(*secrets: str) -> tuple[Rule, ...]:
    """Rights to keep a certificate in a Secret of one's own namespace. A new object's name is not known to RBAC."""
    return (
        rule("", ["secrets"], ["create"]),
        rule("", ["secrets"], ["get", "list", "watch", "update"], names=secrets),
    )


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


def account_of_webhooks(
    account: str, namespace: str, *, role: str, rules: Iterable[Rule], certificates: Sequence[str]
) -> list[dict[str, Any]]:
    """An account of webhooks, which keep their certificate in a Secret of one of these names."""
    own = keeping_certificate(*certificates)
    return account_with_rights(account, namespace, role=role, rules=rules, own_role=role, own_rules=own)
