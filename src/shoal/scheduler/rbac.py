"""What the scheduler and the controllers beside it may do in a cluster: the rules of ClusterRoles, as data.

``PARTS`` holds what each part needs, for those who run the parts apart; ``RULES`` is all of it, each resource once, for
the one account of a process that runs them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from shoal.kube.rights import Rule, account_of_webhooks, account_with_rights, holding_lease, registering, rule
from shoal.scheduler.admission.gpu_sharing.webhooks import MUTATING_NAME, VALIDATING_NAME
from shoal.scheduler.admission.webhooks import CONFIGURATIONS
from shoal.scheduler.grouper.rbac import RULES as GROUPER_RULES

NAME: Final = "kai-scheduler"
ACCOUNT: Final = "kai-scheduler"
WEBHOOKS_ACCOUNT: Final = "kai-admission"

_FOLLOW: Final = ("list", "watch")
_READ: Final = ("get", *_FOLLOW)
_WRITE: Final = (*_READ, "create", "patch", "delete")
_STATUS: Final = ("patch",)
_EVENTS: Final = ("create", "patch")
_ORDER: Final = (*_WRITE, "deletecollection")

_CORE, _KAI, _RUN_AI = "", "kai.scheduler", "scheduling.run.ai"
_SCHEDULING, _DEVICES, _STORAGE = "scheduling.k8s.io", "resource.k8s.io", "storage.k8s.io"


_OTHER_GANGS: Final = (
    rule(_SCHEDULING, ["workloads", "podgroups", "compositepodgroups"], _FOLLOW),
    rule(_SCHEDULING, ["workloads/status", "podgroups/status", "compositepodgroups/status"], _STATUS),
    rule("scheduling.sigs.k8s.io", ["podgroups"], _FOLLOW),
    rule("scheduling.x-k8s.io", ["podgroups"], _FOLLOW),
    rule("scheduling.sigs.k8s.io", ["podgroups/status"], _STATUS),
    rule("scheduling.volcano.sh", ["podgroups"], _FOLLOW),
    rule("scheduling.volcano.sh", ["podgroups/status"], _STATUS),
)
"""Gangs in the words of others: they are read, and told how they fare."""

PARTS: Final[Mapping[str, tuple[Rule, ...]]] = {
    "scheduler": (
        rule(_CORE, ["configmaps", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes"], _FOLLOW),
        rule(_CORE, ["pods"], (*_READ, "patch", "delete")),
        rule(_CORE, ["pods/status"], _STATUS),
        rule(_CORE, ["events"], _EVENTS),
        rule(_KAI, ["topologies"], _FOLLOW),
        rule("topology.node.k8s.io", ["noderesourcetopologies"], _FOLLOW),
        rule(_DEVICES, ["deviceclasses", "resourceclaims", "resourceslices"], _FOLLOW),
        rule(_SCHEDULING, ["priorityclasses"], _FOLLOW),
        rule(_RUN_AI, ["queues"], _FOLLOW),
        rule(_RUN_AI, ["podgroups"], (*_READ, "patch")),
        rule(_RUN_AI, ["podgroups/status"], _STATUS),
        rule(_RUN_AI, ["bindrequests"], (*_FOLLOW, "create", "delete")),
        rule(_STORAGE, ["csidrivers", "csinodes", "csistoragecapacities", "storageclasses"], _FOLLOW),
        *_OTHER_GANGS,
    ),
    "binder": (
        rule(_CORE, ["configmaps"], (*_FOLLOW, "create", "patch", "delete")),
        rule(_CORE, ["pods"], _WRITE),
        rule(_CORE, ["pods/binding"], ["create"]),
        rule(_CORE, ["pods/status"], _STATUS),
        rule(_CORE, ["events"], _EVENTS),
        rule(_CORE, ["namespaces"], (*_FOLLOW, "create")),
        rule(_CORE, ["serviceaccounts"], ["create"]),
        rule("rbac.authorization.k8s.io", ["roles", "rolebindings"], ["create"]),
        rule(_CORE, ["nodes"], _FOLLOW),
        rule(_CORE, ["persistentvolumes", "persistentvolumeclaims"], (*_FOLLOW, "patch")),
        rule(_DEVICES, ["deviceclasses", "resourceslices"], _FOLLOW),
        rule(_DEVICES, ["resourceclaims"], (*_READ, "create", "patch")),
        rule(_DEVICES, ["resourceclaims/status"], _STATUS),
        rule(_DEVICES, ["resourceclaims/binding"], ["patch"]),
        rule(_RUN_AI, ["bindrequests"], (*_FOLLOW, "patch", "delete")),
        rule(_RUN_AI, ["bindrequests/status"], _STATUS),
        rule(_STORAGE, ["csidrivers", "csinodes", "csistoragecapacities", "storageclasses"], _FOLLOW),
    ),
    "grouper": GROUPER_RULES,
    "queues": (
        rule(_CORE, ["events"], _EVENTS),
        rule(_RUN_AI, ["queues", "podgroups"], _FOLLOW),
        rule(_RUN_AI, ["queues/status"], _STATUS),
    ),
    "podgroups": (
        rule(_CORE, ["events"], _EVENTS),
        rule(_CORE, ["nodes", "pods"], _FOLLOW),
        rule(_SCHEDULING, ["priorityclasses"], _FOLLOW),
        rule(_RUN_AI, ["podgroups"], _FOLLOW),
        rule(_RUN_AI, ["podgroups/status"], _STATUS),
    ),
    "scale-adjuster": (
        rule(_CORE, ["pods"], (*_READ, "create", "patch", "delete")),
        rule(_CORE, ["events"], _EVENTS),
    ),
    "defaults": (
        rule(_CORE, ["namespaces"], ["get", "create"]),
        rule(_SCHEDULING, ["priorityclasses"], ["get", "create"]),
        rule(_RUN_AI, ["queues"], ["get", "create"]),
    ),
    "visualizer": (
        rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    ),
}
"""What each part needs. Leases, and the Secret of webhooks' certificates, are a matter of the part's own namespace."""


def merged(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The same rights with each resource named once, those with equal rights in one rule."""
    rights: dict[tuple[str, str], set[str]] = {}
    for one in rules:
        for group in one["apiGroups"]:
            for resource in one["resources"]:
                rights.setdefault((group, resource), set()).update(one["verbs"])
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), verbs in sorted(rights.items()):
        together.setdefault((group, tuple(sorted(verbs, key=_place))), []).append(resource)
    return tuple(rule(group, resources, verbs) for (group, verbs), resources in together.items())


def _place(verb: str) -> tuple[int, str]:
    return (_ORDER.index(verb) if verb in _ORDER else len(_ORDER), verb)


RULES: Final[tuple[Rule, ...]] = merged(rule for rules in PARTS.values() for rule in rules)
"""What a process needs that runs all parts."""

WEBHOOK_RULES: Final[tuple[Rule, ...]] = registering([*CONFIGURATIONS.values(), MUTATING_NAME, VALIDATING_NAME])
"""What the webhooks need, which run as an account of their own."""


def manifests(namespace: str) -> list[dict[str, Any]]:
    """The accounts of the scheduler and of the webhooks, and their rights in the cluster and their own namespace."""
    return [
        *account_with_rights(ACCOUNT, namespace, role=NAME, rules=RULES, own_role=NAME, own_rules=[holding_lease()]),
        *account_of_webhooks(
            WEBHOOKS_ACCOUNT,
            namespace,
            role=WEBHOOKS_ACCOUNT,
            rules=WEBHOOK_RULES,
            certificates=[f"{WEBHOOKS_ACCOUNT}-cert"],
        ),
    ]
