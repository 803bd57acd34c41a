"""What the operator of gangs may do in a cluster: the rules of its ClusterRole, as data.

``deploy/operator.yaml`` holds the objects that this module makes; a test runs the operator with exactly these rights.
"""

from __future__ import annotations

from typing import Any

from shoal.gangs.backends.rbac import RULES as BACKEND_RULES
from shoal.kube.rights import Rule, account_with_rights, rule

NAME = "grove:system:grove-operator"
ACCOUNT = "grove-operator"

_READ = ("get", "list", "watch")
_WRITE = (*_READ, "create", "update", "patch", "delete", "deletecollection")


RULES: tuple[Rule, ...] = (
    rule(
        "grove.io",
        [
            f"{kind}{part}"
            for kind in ("podcliquesets", "podcliques", "podcliquescalinggroups", "clustertopologybindings")
            for part in ("", "/status", "/finalizers")
        ],
        _WRITE,
    ),
    rule("scheduler.grove.io", ["podgangs", "podgangs/status", "podgangs/finalizers"], _WRITE),
    rule("", ["pods", "pods/status", "serviceaccounts", "services", "secrets"], _WRITE),
    rule("", ["events"], ["create", "patch", *_READ]),
    rule("", ["nodes"], _READ),
    rule("autoscaling", ["horizontalpodautoscalers"], _WRITE),
    rule("resource.k8s.io", ["resourceclaims"], _WRITE),
    rule("resource.k8s.io", ["resourceclaimtemplates"], _READ),
    rule("rbac.authorization.k8s.io", ["roles", "rolebindings"], _WRITE),
    rule("kai.scheduler", ["topologies"], _WRITE),
    rule("resource.nvidia.com", ["computedomains"], _WRITE),
    rule("apiextensions.k8s.io", ["customresourcedefinitions"], _READ),
    rule(
        "admissionregistration.k8s.io",
        ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        [*_READ, "create", "update", "patch", "delete"],
    ),
    *BACKEND_RULES,
)
"""Roles that the operator makes for a set's pods grant what it must have itself: reading pods."""


def manifests(namespace: str) -> list[dict[str, Any]]:
    """The account, its rights in the cluster, and its right to hold a lease in its own namespace."""
    lease = rule("coordination.k8s.io", ["leases"], ["get", "list", "watch", "create", "update", "patch"])
    return account_with_rights(ACCOUNT, namespace, role=NAME, rules=RULES, own_role=f"{NAME}-lease", own_rules=[lease])
