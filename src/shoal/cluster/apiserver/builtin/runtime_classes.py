"""RuntimeClass: the handler that runs a pod, what it costs, and on which nodes it is."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import label_problems, label_value_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.nodes import EFFECTS
from shoal.cluster.apiserver.builtin.resource_names import amount_problems, container_resource_name_problems
from shoal.cluster.apiserver.builtin.selectors import label_key_problems, labels_problems
from shoal.cluster.apiserver.builtin.values import named, one_of
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, duplicate, immutable, invalid, not_supported, required


def class_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a RuntimeClass."""
    handler = new.get("handler", "")
    problems = named("handler", handler, label_problems) if handler else [required("handler")]
    for name, value in ((new.get("overhead") or {}).get("podFixed") or {}).items():
        here = f"overhead.limits[{name}]"
        problems += container_resource_name_problems(name, here) + amount_problems(name, value, here)
    scheduling = new.get("scheduling") or {}
    problems += labels_problems(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
    return problems + _tolerations_problems(scheduling.get("tolerations") or (), "scheduling.tolerations")


def validate_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a change: its handler stays."""
    return [] if new.get("handler") == old.get("handler") else [immutable("handler", new.get("handler", ""))]


def _tolerations_problems(tolerations: Any, path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[tuple[str, ...]] = set()
    for index, toleration in enumerate(tolerations):
        here = f"{path}[{index}]"
        problems += _toleration_problems(toleration, here)
        identity = tuple(toleration.get(each, "") for each in ("key", "operator", "value", "effect"))
        if identity in seen:
            shown = {
                "Key": identity[0],
                "Operator": identity[1],
                "Value": identity[2],
                "Effect": identity[3],
                "TolerationSeconds": toleration.get("tolerationSeconds"),
            }
            problems.append(duplicate(here, shown))
        seen.add(identity)
    return problems


def _toleration_problems(toleration: dict[str, Any], path: str) -> list[FieldProblem]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    problems: list[FieldProblem] = []
    if key:
        problems += label_key_problems(key, f"{path}.key")
    elif operator != "Exists":
        words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        problems.append(invalid(f"{path}.operator", operator, words))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        words = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        problems.append(invalid(f"{path}.effect", effect, words))
    if operator in ("Equal", ""):
        if found := label_value_problems(value):
            problems.append(invalid(f"{path}.operator", value, ";".join(found)))
    elif operator == "Exists":
        if value:
            problems.append(invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'"))
    else:
        known = ["Equal", "Exists", "Lt", "Gt"] if operator in ("Lt", "Gt") else ["Equal", "Exists"]
        problems.append(not_supported(f"{path}.operator", operator, known))
    return problems + (one_of(f"{path}.effect", effect, EFFECTS) if effect else [])


RULES = {
    ("node.k8s.io", "RuntimeClass"): Rules(
        name_problems=subdomain_problems,
        validate_create=class_problems,
        validate_update=validate_update,
        has_generation=False,
        unconditional_update=False,
        create_on_update=True,
    )
}
