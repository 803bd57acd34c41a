"""How bindings, signing requests and admission webhooks are printed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.tables.ages import age, human_duration
from shoal.cluster.apiserver.tables.printer import (
    AGE,
    NAME,
    Printer,
    Printers,
    column,
    metadata_of,
    number,
    part_of,
    wide,
)
from shoal.cluster.apiserver.tables.wording import NONE


def _binding(value: Object, now: datetime) -> list[Any]:
    metadata, role = metadata_of(value), part_of(value, "roleRef")
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in value.get("subjects") or ():
        kind, name = subject.get("kind") or "", subject.get("name") or ""
        if kind in subjects:
            subjects[kind].append(f"{subject.get('namespace') or ''}/{name}" if kind == "ServiceAccount" else name)
    return [
        metadata.get("name") or "",
        f"{role.get('kind') or ''}/{role.get('name') or ''}",
        age(metadata.get("creationTimestamp"), now),
        *(", ".join(names) for names in subjects.values()),
    ]


def _signing_request(value: Object, now: datetime) -> list[Any]:
    metadata, spec = metadata_of(value), part_of(value, "spec")
    seconds = spec.get("expirationSeconds")
    return [
        metadata.get("name") or "",
        age(metadata.get("creationTimestamp"), now),
        spec.get("signerName") or NONE,
        spec.get("username") or "",
        NONE if seconds is None else human_duration(seconds),
        _signing_state(part_of(value, "status")),
    ]


def _signing_state(status: Object) -> str:
    conditions = {condition.get("type") for condition in status.get("conditions") or ()}
    state = "Denied" if "Denied" in conditions else "Approved" if "Approved" in conditions else "Pending"
    if "Failed" in conditions:
        state += ",Failed"
    return f"{state},Issued" if status.get("certificate") else state


def _webhooks(value: Object, now: datetime) -> list[Any]:
    metadata = metadata_of(value)
    count = len(value.get("webhooks") or ())
    return [metadata.get("name") or "", count, age(metadata.get("creationTimestamp"), now)]


_BINDING = Printer(
    [
        NAME,
        column("Role", "The role that is given."),
        AGE,
        wide("Users", "Users that it is given to."),
        wide("Groups", "Groups that it is given to."),
        wide("ServiceAccounts", "Service accounts that it is given to."),
    ],
    _binding,
)
_WEBHOOKS = Printer([NAME, number("Webhooks", "Webhooks that are registered in it."), AGE], _webhooks)

PRINTERS: Printers = {
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("certificates.k8s.io", "CertificateSigningRequest"): Printer(
        [
            NAME,
            AGE,
            column("SignerName", "Who is asked to sign."),
            column("Requestor", "Who asked."),
            column("RequestedDuration", "For how long the certificate shall hold."),
            column("Condition", "What became of the request."),
        ],
        _signing_request,
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
}
