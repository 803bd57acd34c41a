"""The scheduling group: PriorityClass, whose value never changes, and Workload, whose pods are scheduled together."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import label_problems, path_segment_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.values import named, required_one_of
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, duplicate, forbidden, immutable, invalid, required, too_many

GROUP = "scheduling.k8s.io"
HIGHEST = 1_000_000_000
SYSTEM = {"system-cluster-critical": 2 * HIGHEST, "system-node-critical": 2 * HIGHEST + 1000}
MAX_POD_GROUPS = 8


def default_priority(new: Object) -> None:
    """Pods of a class preempt others where nothing else is said."""
    new.setdefault("preemptionPolicy", "PreemptLowerPriority")


def prepare_priority(new: Object) -> None:
    """Its generation is one for ever: what could change it cannot change."""
    new["metadata"]["generation"] = 1


def priority_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a PriorityClass."""
    name, value = new["metadata"].get("name", ""), new.get("value", 0)
    problems: list[FieldProblem] = []
    if name.startswith("system-"):
        if why := _not_system(name, value, bool(new.get("globalDefault"))):
            words = f"priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            problems.append(forbidden("metadata.name", words))
    elif value > HIGHEST:
        words = f"maximum allowed value of a user defined priority is {HIGHEST}"
        problems.append(forbidden("value", words))
    if (policy := new.get("preemptionPolicy")) is not None:
        problems += required_one_of("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))
    return problems


def validate_priority_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a change of one."""
    problems: list[FieldProblem] = []
    if new.get("value", 0) != old.get("value", 0):
        problems.append(forbidden("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        problems.append(immutable("preemptionPolicy", new.get("preemptionPolicy")))
    return problems


def workload_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a Workload."""
    spec = new.get("spec") or {}
    problems: list[FieldProblem] = []
    if (controller := spec.get("controllerRef")) is not None:
        if group := controller.get("apiGroup"):
            problems += named("spec.controllerRef.apiGroup", group, subdomain_problems)
        for field in ("kind", "name"):
            if value := controller.get(field):
                problems += named(f"spec.controllerRef.{field}", value, path_segment_problems)
            else:
                problems.append(required(f"spec.controllerRef.{field}"))
    groups = spec.get("podGroups") or ()
    if not groups:
        problems.append(required("spec.podGroups"))
    if len(groups) > MAX_POD_GROUPS:
        return [*problems, too_many("spec.podGroups", len(groups), MAX_POD_GROUPS)]
    names: set[str] = set()
    for index, group in enumerate(groups):
        problems += _pod_group_problems(group, f"spec.podGroups[{index}]", names)
    return problems


def validate_workload_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a change of one: its groups stay, and so does its controller once it is known."""
    problems = workload_problems(new)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if before.get("controllerRef") is not None and spec.get("controllerRef") != before["controllerRef"]:
        problems.append(immutable("spec.controllerRef", spec.get("controllerRef")))
    if spec.get("podGroups") != before.get("podGroups"):
        problems.append(immutable("spec.podGroups", spec.get("podGroups")))
    return problems


def _not_system(name: str, value: int, is_default: bool) -> str:
    wanted = SYSTEM.get(name)
    if wanted is None:
        return f"{name} is not a known system priority class"
    if value != wanted:
        return f"value of {name} PriorityClass must be {wanted}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def _pod_group_problems(group: dict[str, Any], path: str, names: set[str]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    name, policy = group.get("name", ""), group.get("policy") or {}
    if not name:
        problems.append(required(f"{path}.name"))
    else:
        problems += named(f"{path}.name", name, label_problems)
        if name in names:
            problems.append(duplicate(path, {"name": name}))
        names.add(name)
    given = [each for each in ("basic", "gang") if policy.get(each) is not None]
    if not given:
        problems.append(invalid(f"{path}.policy", "", "must specify one of: `basic`, `gang`"))
    elif len(given) > 1:
        problems.append(invalid(f"{path}.policy", "{basic, gang}", "must specify exactly one of: `basic`, `gang`"))
    if "gang" in given:
        count = policy["gang"].get("minCount", 0)
        if count == 0:
            problems.append(required(f"{path}.policy.gang.minCount"))
        elif count < 1:
            problems.append(invalid(f"{path}.policy.gang.minCount", count, "must be greater than or equal to 1"))
    return problems


RULES = {
    (GROUP, "PriorityClass"): Rules(
        name_problems=subdomain_problems,
        defaults=default_priority,
        prepare_create=prepare_priority,
        validate_create=priority_problems,
        validate_update=validate_priority_update,
        has_generation=False,
    ),
    (GROUP, "Workload"): Rules(
        name_problems=subdomain_problems,
        validate_create=workload_problems,
        validate_update=validate_workload_update,
        has_generation=False,
    ),
}
