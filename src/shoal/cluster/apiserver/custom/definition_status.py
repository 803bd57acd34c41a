"""What a definition's status says: which of its names it got, whether it is served, what its objects are stored in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.cluster.apiserver.kinds.kind import Object

APPROVAL = "api-approved.kubernetes.io"


def definition_status(definition: Object, others: Iterable[Object], *, now: str) -> Object:
    """The status that a definition should have, given all others; ``now`` is when a condition changes, if one does."""
    spec, status = definition["spec"], definition.get("status") or {}
    accepted, condition = _accepted_names(spec, status.get("acceptedNames") or {}, others)
    is_established = any(
        each["type"] == "Established" and each["status"] == "True" for each in status.get("conditions") or ()
    )
    conditions = [condition]
    if condition["status"] == "True" or is_established:
        told = "the initial names have been accepted"
        conditions.append(_condition("Established", "True", "InitialNamesAccepted", told))
    else:
        conditions.append(_condition("Established", "False", "NotAccepted", "not all names are accepted"))
    approval = _approval_condition(definition)
    if approval is not None:
        conditions.append(approval)
    return {
        "conditions": _merged(status.get("conditions") or [], conditions, now),
        "acceptedNames": accepted,
        "storedVersions": stored_versions(definition),
    }


def stored_versions(definition: Object) -> list[str]:
    """The versions in which objects may be stored: those there were, and the one that is now."""
    known = list((definition.get("status") or {}).get("storedVersions") or [])
    for version in definition["spec"].get("versions") or ():
        if version.get("storage"):
            return known if version["name"] in known else [*known, version["name"]]
    return known


def _condition(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _merged(known: list[Object], wanted: list[Object], now: str) -> list[Object]:
    by_type = {each["type"]: each for each in known}
    for each in wanted:
        before = by_type.get(each["type"])
        is_same = before is not None and before["status"] == each["status"]
        moment = before.get("lastTransitionTime", now) if before is not None and is_same else now
        by_type[each["type"]] = {"type": each["type"], "status": each["status"], "lastTransitionTime": moment} | {
            "reason": each["reason"],
            "message": each["message"],
        }
    return list(by_type.values())


def _accepted_names(spec: Object, accepted: Object, others: Iterable[Object]) -> tuple[Object, Object]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other["spec"].get("group") != spec.get("group"):
            continue
        taken = (other.get("status") or {}).get("acceptedNames") or {}
        resources |= {taken.get("plural", ""), taken.get("singular", ""), *(taken.get("shortNames") or ())}
        kinds |= {taken.get("kind", ""), taken.get("listKind", "")}
    wanted = spec.get("names") or {}
    names: Object = {key: value for key, value in accepted.items() if value}
    conflict: tuple[str, str] | None = None
    for field, used, reason in (
        ("plural", resources, "PluralConflict"),
        ("singular", resources, "SingularConflict"),
        ("shortNames", resources, "ShortNamesConflict"),
        ("kind", kinds, "KindConflict"),
        ("listKind", kinds, "ListKindConflict"),
    ):
        told = _conflict(wanted.get(field), accepted.get(field), used)
        if told:
            conflict = (reason, told)
        elif wanted.get(field):
            names[field] = wanted[field]
        else:
            names.pop(field, None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    else:
        names.pop("categories", None)
    ordered: Object = {
        field: names[field]
        for field in ("plural", "singular", "shortNames", "kind", "listKind", "categories")
        if field in names
    }
    ordered.setdefault("plural", "")
    ordered.setdefault("kind", "")
    if conflict is None:
        return ordered, _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
    return ordered, _condition("NamesAccepted", "False", *conflict)


def _conflict(wanted: Any, accepted: Any, used: set[str]) -> str:
    if wanted == accepted or not wanted:
        return ""
    if isinstance(wanted, list):
        taken = [each for each in wanted if each not in (accepted or ()) and each in used]
        told = [f'"{each}" is already in use' for each in dict.fromkeys(taken)]
        return told[0] if len(told) == 1 else f"[{', '.join(told)}]" if told else ""
    return f'"{wanted}" is already in use' if wanted in used else ""


def is_protected_group(group: str) -> bool:
    """Whether a group belongs to the Kubernetes project, whose definitions need its approval."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def approval_state(definition: Object) -> tuple[str, str]:
    """Whether the project has approved a definition in one of its groups, and how the API server says so."""
    text = ((definition.get("metadata") or {}).get("annotations") or {}).get(APPROVAL) or ""
    if not text:
        told = (
            f'protected groups must have approval annotation "{APPROVAL}", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        )
        return "Missing", told
    if text.startswith("unapproved"):
        return "Bypassed", f"not approved: {_go_quoted(text)}"
    scheme, colon, rest = text.partition("://")
    if colon and scheme.isalpha() and rest.partition("/")[0]:
        return "Approved", f"approved in {text}"
    told = (
        f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a reason starting with '
        '"unapproved", see https://github.com/kubernetes/enhancements/pull/1111'
    )
    return "Invalid", told


def _go_quoted(text: str) -> str:
    return f'"{text}"'


def _approval_condition(definition: Object) -> Object | None:
    if not is_protected_group(definition["spec"].get("group") or ""):
        return None
    state, told = approval_state(definition)
    status = "True" if state == "Approved" else "False"
    reasons = {"Bypassed": "UnapprovedAnnotation", "Approved": "ApprovedAnnotation"}
    reason = reasons.get(state, f"{state}Annotation")
    return _condition("KubernetesAPIApprovalPolicyConformant", status, reason, told)


CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that holds a definition until the last of its objects is gone."""


def mark_definition(definition: Object, now: str) -> None:
    """Notes on a definition that is to be deleted that its objects go first."""
    metadata, status = definition["metadata"], definition.setdefault("status", {})
    metadata["finalizers"] = [*(metadata.get("finalizers") or ()), CLEANUP]
    told = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    condition = {**_condition("Terminating", "True", "InstanceDeletionPending", told), "lastTransitionTime": now}
    status["conditions"] = [*(status.get("conditions") or ()), condition]
