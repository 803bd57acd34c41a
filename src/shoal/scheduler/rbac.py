"""What the scheduler and the controllers beside it may do in a cluster: the rules of ClusterRoles, as data.

``PARTS`` holds what each part needs, for those who run the parts apart; ``RULES`` is all of it, each resource once, for
the one account of a process that runs them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from shoal.kube.rights import Rule, account_with_rights, rule
from shoal.scheduler.grouper.rbac import RULES as GROUPER_RULES

NAME: Final = "kai-scheduler"
ACCOUNT: Final = "kai-scheduler"

_READ: Final = ("get", "list", "watch")
_WRITE: Final = (*_READ, "create", "update", "patch", "delete")
_STATUS: Final = ("get", "update", "patch")
_EVENTS: Final = ("create", "patch")
_ORDER: Final = (*_WRITE, "deletecollection")

_CORE, _KAI, _RUN_AI = "", "kai.scheduler", "scheduling.run.ai"
_SCHEDULING, _DEVICES, _STORAGE = "scheduling.k8s.io", "resource.k8s.io", "storage.k8s.io"


_OTHER_GANGS: Final = (
    rule(_SCHEDULING, ["workloads", "podgroups", "compositepodgroups"], _READ),
    rule(_SCHEDULING, ["workloads/status", "podgroups/status", "compositepodgroups/status"], _STATUS),
    rule("scheduling.sigs.k8s.io", ["podgroups"], _READ),
    rule("scheduling.x-k8s.io", ["podgroups"], _READ),
    rule("scheduling.sigs.k8s.io", ["podgroups/status"], _STATUS),
    rule("scheduling.volcano.sh", ["podgroups", "queues"], _READ),
    rule("scheduling.volcano.sh", ["podgroups/status"], _STATUS),
)
"""Gangs in the words of others: they are read, and told how they fare."""

PARTS: Final[Mapping[str, tuple[Rule, ...]]] = {
    "scheduler": (
        rule(_CORE, ["configmaps", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes"], _READ),
        rule(_CORE, ["pods"], (*_READ, "patch", "update", "delete")),
        rule(_CORE, ["pods/status"], _STATUS),
        rule(_CORE, ["events"], _EVENTS),
        rule(_KAI, ["topologies", "schedulingshards", "configs"], _READ),
        rule("topology.node.k8s.io", ["noderesourcetopologies"], _READ),
        rule(_DEVICES, ["deviceclasses", "resourceclaims", "resourceslices"], _READ),
        rule(_SCHEDULING, ["priorityclasses"], _READ),
        rule(_RUN_AI, ["queues"], _READ),
        rule(_RUN_AI, ["podgroups"], (*_READ, "patch", "update")),
        rule(_RUN_AI, ["podgroups/status"], _STATUS),
        rule(_RUN_AI, ["bindrequests"], _WRITE),
        rule(_STORAGE, ["csidrivers", "csinodes", "csistoragecapacities", "storageclasses"], _READ),
        *_OTHER_GANGS,
    ),
    "binder": (
        rule(_CORE, ["configmaps", "pods"], _WRITE),
        rule(_CORE, ["pods/binding"], ["create"]),
        rule(_CORE, ["pods/status"], _STATUS),
        rule(_CORE, ["events"], _EVENTS),
        rule(_CORE, ["namespaces", "serviceaccounts"], (*_READ, "create")),
        rule("rbac.authorization.k8s.io", ["roles", "rolebindings"], (*_READ, "create")),
        rule(_CORE, ["nodes"], _READ),
        rule(_CORE, ["persistentvolumes", "persistentvolumeclaims"], (*_READ, "patch", "update")),
        rule(_DEVICES, ["deviceclasses", "resourceslices"], _READ),
        rule(_DEVICES, ["resourceclaims"], (*_READ, "create", "patch", "update")),
        rule(_DEVICES, ["resourceclaims/status"], _STATUS),
        rule(_DEVICES, ["resourceclaims/binding"], ["patch", "update"]),
        rule(_RUN_AI, ["bindrequests"], (*_READ, "patch", "update", "delete")),
        rule(_RUN_AI, ["bindrequests/status"], _STATUS),
        rule(_STORAGE, ["csidrivers", "csinodes", "csistoragecapacities", "storageclasses"], _READ),
    ),
    "grouper": GROUPER_RULES,
    "queues": (
        rule(_CORE, ["events"], _EVENTS),
        rule(_RUN_AI, ["queues", "podgroups"], _READ),
        rule(_RUN_AI, ["queues/status"], _STATUS),
    ),
    "podgroups": (
        rule(_CORE, ["events"], _EVENTS),
        rule(_CORE, ["nodes", "pods"], _READ),
        rule(_SCHEDULING, ["priorityclasses"], _READ),
        rule(_RUN_AI, ["podgroups"], _READ),
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
    "admission": (
        rule(_RUN_AI, ["queues"], _READ),
        rule(
            "admissionregistration.k8s.io",
            ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
            _WRITE,
        ),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], _READ),
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


def manifests(namespace: str) -> list[dict[str, Any]]:
    """The account, its rights in the cluster, and its right to a lease and a certificate in its own namespace."""
    own = (rule("coordination.k8s.io", ["leases"], _WRITE), rule(_CORE, ["secrets"], (*_READ, "create", "update")))
    return account_with_rights(ACCOUNT, namespace, role=NAME, rules=RULES, own_role=NAME, own_rules=own)
