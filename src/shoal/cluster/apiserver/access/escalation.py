"""Nobody grants what they do not hold: the checks before a role or a binding is written.

A user may put into a role only what the user may do already, and bind only a role whose rules the user has all, unless
the verb ``escalate`` or ``bind`` says otherwise. Each check passes in silence or raises the refusal.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.cluster.apiserver.access.authorization import GROUP, MASTERS, Authorizer, Query
from shoal.cluster.apiserver.access.rules import TooManyParts, uncovered
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.access.wording import aggregate, quoted, quoted_list
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import bad_request, forbidden, not_found

_EVERYTHING: list[Object] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
_NO_AGGREGATION = "must have cluster-admin privileges to use the aggregationRule"
# What the garbage collector changes: it need not hold what it cleans up after.
_UPKEEP = frozenset({"ownerReferences", "finalizers", "managedFields", "selfLink"})


def check_role(
    authorizer: Authorizer,
    user: User,
    new: Object,
    old: Object | None = None,
    *,
    resource: str,
    namespace: str = "",
    request_name: str = "",
) -> None:
    """Before a Role or ClusterRole is created or changed; the request's name is that of its path, empty on a POST."""
    if MASTERS in user.groups:
        return
    escalate = Query(
        user=user, verb="escalate", group=GROUP, resource=resource, namespace=namespace, name=request_name, version="*"
    )
    if authorizer.allowed(escalate) or (old is not None and is_upkeep(new, old)):
        return
    name = new["metadata"].get("name", "")
    if problem := _escalation(authorizer, user, namespace, new.get("rules") or ()):
        raise forbidden(resource, GROUP, name, problem)
    aggregates = _aggregates(new) or (old is not None and _aggregates(old))
    if aggregates and _escalation(authorizer, user, namespace, _EVERYTHING):
        raise forbidden(resource, GROUP, name, _NO_AGGREGATION)


def check_binding(
    authorizer: Authorizer, user: User, new: Object, old: Object | None = None, *, resource: str, namespace: str = ""
) -> None:
    """Before a RoleBinding or ClusterRoleBinding is created or changed."""
    if MASTERS in user.groups or (old is not None and is_upkeep(new, old)):
        return
    reference = new.get("roleRef") or {}
    kind, role_name = reference.get("kind", ""), reference.get("name", "")
    roles = {"ClusterRole": "clusterroles", "Role": "roles"}.get(kind, "")
    if not roles:
        return  # validation says what is wrong with the reference
    bind = Query(
        user=user,
        verb="bind",
        group=reference.get("apiGroup", ""),
        resource=roles,
        namespace=namespace,
        name=role_name,
        version="*",
    )
    if authorizer.allowed(bind):
        return
    if kind == "Role" and not namespace:
        raise bad_request("Namespace parameter required.")
    granted = authorizer.role(kind, namespace, role_name)
    if granted is None:
        raise not_found(resource, GROUP, role_name)  # Kubernetes names the binding's resource here, not the role's
    if problem := _escalation(authorizer, user, namespace, granted.get("rules") or ()):
        raise forbidden(resource, GROUP, new["metadata"].get("name", ""), problem)


def is_upkeep(new: Object, old: Object) -> bool:
    """Whether nothing changes but what garbage collection keeps in an object's metadata."""
    if {**new, "metadata": None} != {**old, "metadata": None}:
        return False
    return _without_upkeep(new["metadata"]) == _without_upkeep(old["metadata"])


def _without_upkeep(metadata: Object) -> Object:
    return {key: value for key, value in metadata.items() if key not in _UPKEEP}


def _escalation(authorizer: Authorizer, user: User, namespace: str, rules: Iterable[Object]) -> str:
    held = authorizer.held(user, namespace)
    try:
        missing = uncovered(held.rules, list(rules))
    except TooManyParts:
        return "the rules grant too many combinations of verbs, API groups, resources and names at once: split the role"
    if not missing:
        return ""
    shown = "\n".join(sorted({_described(rule) for rule in _joined(missing)}))
    who = f"user {quoted(user.name)} (groups={quoted_list(user.groups)})"
    said = f"{who} is attempting to grant RBAC permissions not currently held:\n{shown}"
    return f"{said}; resolution errors: [{aggregate(held.problems)}]" if held.problems else said


def _joined(parts: Iterable[Object]) -> list[Object]:
    """The parts of rules with those put together that differ in their verb alone."""
    joined: dict[tuple[str, ...], Object] = {}
    others: list[Object] = []
    for part in parts:
        if "resources" not in part:
            others.append(part)
            continue
        key = (*part["apiGroups"], *part["resources"], *part.get("resourceNames", ()))
        known = joined.setdefault(key, {**part, "verbs": []})
        known["verbs"] += part["verbs"]
    return others + list(joined.values())


def _described(rule: Object) -> str:
    fields = (
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("ResourceNames", "resourceNames"),
        ("Verbs", "verbs"),
    )
    return "{" + ", ".join(f"{label}:{quoted_list(rule[name])}" for label, name in fields if rule.get(name)) + "}"


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))
