"""The RBAC kinds: rules that make sense, and bindings whose role never changes."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import path_segment_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.selectors import label_selector_problems
from shoal.cluster.apiserver.builtin.values import named
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, invalid, not_supported, required

GROUP = "rbac.authorization.k8s.io"


def default_binding(new: Object) -> None:
    """References are to this group, but for service accounts."""
    reference = new.setdefault("roleRef", {})
    if not reference.get("apiGroup"):
        reference["apiGroup"] = GROUP
    for subject in new.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = GROUP


def role_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a Role."""
    return _rules_problems(new, namespaced=True)


def cluster_role_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a ClusterRole."""
    problems = _rules_problems(new, namespaced=False)
    aggregation = new.get("aggregationRule")
    if aggregation is None:
        return problems
    path, selectors = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors") or ()
    if not selectors:
        words = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        problems.append(required(path, words))
    for index, selector in enumerate(selectors):
        problems += label_selector_problems(selector, f"{path}[{index}]")
    return problems


def binding_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a RoleBinding."""
    return _binding_problems(new, namespaced=True)


def cluster_binding_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a ClusterRoleBinding."""
    return _binding_problems(new, namespaced=False)


def _rules_problems(new: Object, *, namespaced: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for index, rule in enumerate(new.get("rules") or ()):
        here, urls = f"rules[{index}]", rule.get("nonResourceURLs")
        if not rule.get("verbs"):
            problems.append(required(f"{here}.verbs", "verbs must contain at least one value"))
        if urls:
            if namespaced:
                words = "namespaced rules cannot apply to non-resource URLs"
                problems.append(invalid(f"{here}.nonResourceURLs", urls, words))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                words = "rules cannot apply to both regular resources and non-resource URLs"
                problems.append(invalid(f"{here}.nonResourceURLs", urls, words))
            continue
        if not rule.get("apiGroups"):
            problems.append(required(f"{here}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            problems.append(required(f"{here}.resources", "resource rules must supply at least one resource"))
    return problems


def _binding_problems(new: Object, *, namespaced: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    reference = new.get("roleRef") or {}
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if reference.get("apiGroup") != GROUP:
        problems.append(not_supported("roleRef.apiGroup", reference.get("apiGroup", ""), [GROUP]))
    if reference.get("kind") not in kinds:
        problems.append(not_supported("roleRef.kind", reference.get("kind", ""), kinds))
    if name := reference.get("name"):
        problems += named("roleRef.name", name, path_segment_problems)
    else:
        problems.append(required("roleRef.name"))
    for index, subject in enumerate(new.get("subjects") or ()):
        problems += _subject_problems(subject, f"subjects[{index}]", namespaced)
    return problems


def _subject_problems(subject: dict[str, Any], path: str, namespaced: bool) -> list[FieldProblem]:
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
    problems = [] if name else [required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            problems += named(f"{path}.name", name, subdomain_problems)
        if group:
            problems.append(not_supported(f"{path}.apiGroup", group, [""]))
        if not namespaced and not subject.get("namespace"):
            problems.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            problems.append(not_supported(f"{path}.apiGroup", group, [GROUP]))
    else:
        problems.append(not_supported(f"{path}.kind", kind, ["ServiceAccount", "User", "Group"]))
    return problems


def _changed_role(new: Object, old: Object) -> list[FieldProblem]:
    reference = new.get("roleRef") or {}
    if reference == (old.get("roleRef") or {}):
        return []
    shown = {
        "APIGroup": reference.get("apiGroup", ""),
        "Kind": reference.get("kind", ""),
        "Name": reference.get("name", ""),
    }
    return [invalid("roleRef", shown, "cannot change roleRef")]


RULES = {
    (GROUP, "Role"): Rules(
        name_problems=path_segment_problems,
        validate_create=role_problems,
        validate_update=lambda new, _old: role_problems(new),
        has_generation=False,
        create_on_update=True,
    ),
    (GROUP, "ClusterRole"): Rules(
        name_problems=path_segment_problems,
        validate_create=cluster_role_problems,
        validate_update=lambda new, _old: cluster_role_problems(new),
        has_generation=False,
        create_on_update=True,
    ),
    (GROUP, "RoleBinding"): Rules(
        name_problems=path_segment_problems,
        defaults=default_binding,
        validate_create=binding_problems,
        validate_update=lambda new, old: binding_problems(new) + _changed_role(new, old),
        has_generation=False,
        create_on_update=True,
    ),
    (GROUP, "ClusterRoleBinding"): Rules(
        name_problems=path_segment_problems,
        defaults=default_binding,
        validate_create=cluster_binding_problems,
        validate_update=lambda new, old: cluster_binding_problems(new) + _changed_role(new, old),
        has_generation=False,
        create_on_update=True,
    ),
}
