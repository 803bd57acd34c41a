"""What the operator of gangs may do in a cluster: the rules of its ClusterRole, as data.

``deploy/operator.yaml`` holds the objects that this module makes; a test runs the operator with exactly these rights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.gangs.backends.rbac import RULES as BACKEND_RULES

NAME = "grove:system:grove-operator"
ACCOUNT = "grove-operator"

_READ = ("get", "list", "watch")
_WRITE = (*_READ, "create", "update", "patch", "delete", "deletecollection")
_Rule = dict[str, list[str]]


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> _Rule:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


RULES: tuple[_Rule, ...] = (
    _rule(
        "grove.io",
        [
            f"{kind}{part}"
            for kind in ("podcliquesets", "podcliques", "podcliquescalinggroups", "clustertopologybindings")
            for part in ("", "/status", "/finalizers")
        ],
        _WRITE,
    ),
    _rule("scheduler.grove.io", ["podgangs", "podgangs/status", "podgangs/finalizers"], _WRITE),
    _rule("", ["pods", "pods/status", "serviceaccounts", "services", "secrets"], _WRITE),
    _rule("", ["events"], ["create", "patch", *_READ]),
    _rule("", ["nodes"], _READ),
    _rule("autoscaling", ["horizontalpodautoscalers"], _WRITE),
    _rule("resource.k8s.io", ["resourceclaims"], _WRITE),
    _rule("resource.k8s.io", ["resourceclaimtemplates"], _READ),
    _rule("rbac.authorization.k8s.io", ["roles", "rolebindings"], _WRITE),
    _rule("kai.scheduler", ["topologies"], _WRITE),
    _rule("resource.nvidia.com", ["computedomains"], _WRITE),
    _rule("apiextensions.k8s.io", ["customresourcedefinitions"], _READ),
    _rule(
        "admissionregistration.k8s.io",
        ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        [*_READ, "create", "update", "patch", "delete"],
    ),
    *BACKEND_RULES,
)
"""Roles that the operator makes for a set's pods grant what it must have itself: reading pods."""


def manifests(namespace: str) -> list[dict[str, Any]]:
    """The account, its rights in the cluster, and its right to hold a lease in its own namespace."""
    labels = {"app.kubernetes.io/name": ACCOUNT, "app.kubernetes.io/part-of": "shoal"}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    lease = f"{NAME}-lease"
    group = "rbac.authorization.k8s.io"
    return [
        _object("v1", "ServiceAccount", ACCOUNT, labels, namespace),
        _object(f"{group}/v1", "ClusterRole", NAME, labels) | {"rules": list(RULES)},
        _object(f"{group}/v1", "ClusterRoleBinding", NAME, labels)
        | {"roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": NAME}, "subjects": [subject]},
        _object(f"{group}/v1", "Role", lease, labels, namespace)
        | {"rules": [_rule("coordination.k8s.io", ["leases"], ["get", "list", "watch", "create", "update", "patch"])]},
        _object(f"{group}/v1", "RoleBinding", lease, labels, namespace)
        | {"roleRef": {"apiGroup": group, "kind": "Role", "name": lease}, "subjects": [subject]},
    ]


def _object(api_version: str, kind: str, name: str, labels: dict[str, str], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
