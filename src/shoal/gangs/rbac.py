"""What the operator of gangs may do in a cluster: the rules of its ClusterRole, as data.

``deploy/operator.yaml`` holds the objects that this module makes; a test runs the operator with exactly these rights.
"""

from __future__ import annotations

from typing import Any

from shoal.gangs.admission.webhooks import CONFIGURATIONS
from shoal.gangs.backends.rbac import RULES as BACKEND_RULES
from shoal.kube.rights import Rule, account_of_webhooks, account_with_rights, holding_lease, registering, rule

NAME = "grove:system:grove-operator"
ACCOUNT = "grove-operator"
WEBHOOKS_NAME = "shoal:system:shoal-webhooks"
WEBHOOKS_ACCOUNT = "shoal-webhooks"
WEBHOOKS_CERTIFICATES = ("shoal-webhook-cert", "grove-webhook-server-cert")
"""Secrets: the usual one, and the one that Grove's configuration file names where it names no other."""

_FOLLOW = ("list", "watch")
_READ = ("get", *_FOLLOW)
_OWN = (*_READ, "create", "patch", "delete")
_LISTED = (*_OWN, "update")
"""What Grove's document on backends lists for PodGangs, whether this operator uses it or not."""


_KINDS = ("podcliquesets", "podcliques", "podcliquescalinggroups", "clustertopologybindings")

RULES: tuple[Rule, ...] = (
    rule("grove.io", ["podcliquesets"], [*_FOLLOW, "patch"]),
    rule("grove.io", ["podcliques", "podcliquescalinggroups"], _OWN),
    rule("grove.io", ["clustertopologybindings"], _FOLLOW),
    rule("grove.io", [f"{kind}/status" for kind in _KINDS], ["patch"]),
    # Children block the deletion of their owner, which asks for this right.
    rule("grove.io", [f"{kind}/finalizers" for kind in _KINDS], ["update"]),
    rule("scheduler.grove.io", ["podgangs", "podgangs/status"], _LISTED),
    rule("scheduler.grove.io", ["podgangs/finalizers"], ["update"]),
    rule("", ["pods", "serviceaccounts", "services", "secrets"], _OWN),
    rule("", ["pods/status"], _READ),
    rule("", ["events"], ["create", "patch"]),
    rule("autoscaling", ["horizontalpodautoscalers"], _OWN),
    rule("resource.k8s.io", ["resourceclaims"], _OWN),
    rule("resource.k8s.io", ["resourceclaimtemplates"], _FOLLOW),
    rule("rbac.authorization.k8s.io", ["roles", "rolebindings"], _OWN),
    rule("kai.scheduler", ["topologies"], [*_FOLLOW, "create", "delete"]),
    rule("resource.nvidia.com", ["computedomains"], _OWN),
    rule("apiextensions.k8s.io", ["customresourcedefinitions"], _FOLLOW),
    *BACKEND_RULES,
)
"""Roles that the operator makes for a set's pods grant what it must have itself: reading pods and their status."""

WEBHOOK_RULES: tuple[Rule, ...] = (
    rule("grove.io", ["podcliquesets"], _READ),
    rule("grove.io", ["clustertopologybindings"], ["get"]),
    *registering(CONFIGURATIONS.values()),
)
"""What the webhooks need, which run as an account of their own."""


def manifests(namespace: str) -> list[dict[str, Any]]:
    """The accounts of the operator and of the webhooks, and their rights in the cluster and their own namespace."""
    return [
        *account_with_rights(
            ACCOUNT, namespace, role=NAME, rules=RULES, own_role=f"{NAME}-lease", own_rules=[holding_lease()]
        ),
        *account_of_webhooks(
            WEBHOOKS_ACCOUNT, namespace, role=WEBHOOKS_NAME, rules=WEBHOOK_RULES, certificates=WEBHOOKS_CERTIFICATES
        ),
    ]
