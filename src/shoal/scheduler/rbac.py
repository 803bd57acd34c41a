"""What the scheduler and the controllers beside it may do in a cluster: the rules of ClusterRoles, as data.

``PARTS`` holds what each part needs, for those who run the parts apart; ``RULES`` is all of it, each resource once, for
the one account of a process that runs them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from shoal.scheduler.grouper.rbac import RULES as GROUPER_RULES

Rule: TypeAlias = dict[str, list[str]]

NAME: Final = "kai-scheduler"
ACCOUNT: Final = "kai-scheduler"

_READ: Final = ("get", "list", "watch")
_WRITE: Final = (*_READ, "create", "update", "patch", "delete")
_STATUS: Final = ("get", "update", "patch")
_EVENTS: Final = ("create", "patch")
_ORDER: Final = (*_WRITE, "deletecollection")

_CORE, _KAI, _RUN_AI = "", "kai.scheduler", "scheduling.run.ai"
_SCHEDULING, _DEVICES, _STORAGE = "scheduling.k8s.io", "resource.k8s.io", "storage.k8s.io"


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Rule:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


_OTHER_GANGS: Final = (
    _rule(_SCHEDULING, ["workloads", "podgroups", "compositepodgroups"], _READ),
    _rule(_SCHEDULING, ["workloads/status", "podgroups/status", "compositepodgroups/status"], _STATUS),
    _rule("scheduling.sigs.k8s.io", ["podgroups"], _READ),
    _rule("scheduling.x-k8s.io", ["podgroups"], _READ),
    _rule("scheduling.sigs.k8s.io", ["podgroups/status"], _STATUS),
    _rule("scheduling.volcano.sh", ["podgroups", "queues"], _READ),
    _rule("scheduling.volcano.sh", ["podgroups/status"], _STATUS),
)
"""Gangs in the words of others: they are read, and told how they fare."""

PARTS: Final[Mapping[str, tuple[Rule, ...]]] = {
    "scheduler": (
        _rule(_CORE, ["configmaps", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes"], _READ),
        _rule(_CORE, ["pods"], (*_READ, "patch", "update", "delete")),
        _rule(_CORE, ["pods/status"], _STATUS),
        _rule(_CORE, ["events"], _EVENTS),
        _rule(_KAI, ["topologies", "schedulingshards", "configs"], _READ),
        _rule("topology.node.k8s.io", ["noderesourcetopologies"], _READ),
        _rule(_DEVICES, ["deviceclasses", "resourceclaims", "resourceslices"], _READ),
        _rule(_SCHEDULING, ["priorityclasses"], _READ),
        _rule(_RUN_AI, ["queues"], _READ),
        _rule(_RUN_AI, ["podgroups"], (*_READ, "patch", "update")),
        _rule(_RUN_AI, ["podgroups/status"], _STATUS),
        _rule(_RUN_AI, ["bindrequests"], _WRITE),
        _rule(_STORAGE, ["csidrivers", "csinodes", "csistoragecapacities", "storageclasses"], _READ),
        *_OTHER_GANGS,
    ),
    "binder": (
        _rule(_CORE, ["configmaps", "pods"], _WRITE),
        _rule(_CORE, ["pods/binding"], ["create"]),
        _rule(_CORE, ["pods/status"], _STATUS),
        _rule(_CORE, ["events"], _EVENTS),
        _rule(_CORE, ["namespaces", "serviceaccounts"], (*_READ, "create")),
        _rule("rbac.authorization.k8s.io", ["roles", "rolebindings"], (*_READ, "create")),
        _rule(_CORE, ["nodes"], _READ),
        _rule(_CORE, ["persistentvolumes", "persistentvolumeclaims"], (*_READ, "patch", "update")),
        _rule(_DEVICES, ["deviceclasses", "resourceslices"], _READ),
        _rule(_DEVICES, ["resourceclaims"], (*_READ, "create", "patch", "update")),
        _rule(_DEVICES, ["resourceclaims/status"], _STATUS),
        _rule(_DEVICES, ["resourceclaims/binding"], ["patch", "update"]),
        _rule(_RUN_AI, ["bindrequests"], (*_READ, "patch", "update", "delete")),
        _rule(_RUN_AI, ["bindrequests/status"], _STATUS),
        _rule(_STORAGE, ["csidrivers", "csinodes", "csistoragecapacities", "storageclasses"], _READ),
    ),
    "grouper": GROUPER_RULES,
    "queues": (
        _rule(_CORE, ["events"], _EVENTS),
        _rule(_RUN_AI, ["queues", "podgroups"], _READ),
        _rule(_RUN_AI, ["queues/status"], _STATUS),
    ),
    "podgroups": (
        _rule(_CORE, ["events"], _EVENTS),
        _rule(_CORE, ["nodes", "pods"], _READ),
        _rule(_SCHEDULING, ["priorityclasses"], _READ),
        _rule(_RUN_AI, ["podgroups"], _READ),
        _rule(_RUN_AI, ["podgroups/status"], _STATUS),
    ),
    "scale-adjuster": (
        _rule(_CORE, ["pods"], (*_READ, "create", "patch", "delete")),
        _rule(_CORE, ["events"], _EVENTS),
    ),
    "defaults": (
        _rule(_CORE, ["namespaces"], ["get", "create"]),
        _rule(_SCHEDULING, ["priorityclasses"], ["get", "create"]),
        _rule(_RUN_AI, ["queues"], ["get", "create"]),
    ),
    "admission": (
        _rule(_RUN_AI, ["queues"], _READ),
        _rule(
            "admissionregistration.k8s.io",
            ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
            _WRITE,
        ),
        _rule("apiextensions.k8s.io", ["customresourcedefinitions"], _READ),
    ),
}
"""What each part needs. Leases, and the Secret of webhooks' certificates, are a matter of the part's own namespace."""


def merged(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The same rights with each resource named once, those with equal rights in one rule."""
    rights: dict[tuple[str, str], set[str]] = {}
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                rights.setdefault((group, resource), set()).update(rule["verbs"])
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), verbs in sorted(rights.items()):
        together.setdefault((group, tuple(sorted(verbs, key=_place))), []).append(resource)
    return tuple(_rule(group, resources, verbs) for (group, verbs), resources in together.items())


def _place(verb: str) -> tuple[int, str]:
    return (_ORDER.index(verb) if verb in _ORDER else len(_ORDER), verb)


RULES: Final[tuple[Rule, ...]] = merged(rule for rules in PARTS.values() for rule in rules)
"""What a process needs that runs all parts."""


def manifests(namespace: str) -> list[dict[str, Any]]:
    """The account, its rights in the cluster, and its right to a lease and a certificate in its own namespace."""
    labels = {"app.kubernetes.io/name": ACCOUNT, "app.kubernetes.io/part-of": "shoal"}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    group = "rbac.authorization.k8s.io"
    own = (_rule("coordination.k8s.io", ["leases"], _WRITE), _rule(_CORE, ["secrets"], (*_READ, "create", "update")))
    return [
        _object("v1", "ServiceAccount", ACCOUNT, labels, namespace),
        _object(f"{group}/v1", "ClusterRole", NAME, labels) | {"rules": list(RULES)},
        _object(f"{group}/v1", "ClusterRoleBinding", NAME, labels)
        | {"roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": NAME}, "subjects": [subject]},
        _object(f"{group}/v1", "Role", NAME, labels, namespace) | {"rules": list(own)},
        _object(f"{group}/v1", "RoleBinding", NAME, labels, namespace)
        | {"roleRef": {"apiGroup": group, "kind": "Role", "name": NAME}, "subjects": [subject]},
    ]


def _object(api_version: str, kind: str, name: str, labels: dict[str, str], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
