"""What all workloads that hold a pod template and a selector have in common."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import percent_problems
from shoal.cluster.apiserver.builtin.selectors import label_selector_problems
from shoal.cluster.apiserver.builtin.workloads.matching import is_usable, selector_matches, shown_selector
from shoal.cluster.apiserver.builtin.workloads.pod_spec import template_problems
from shoal.cluster.apiserver.builtin.workloads.texts import nonnegative_problems
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.kube.admission.fields import FieldProblem, forbidden, immutable, invalid, not_supported, required

MISMATCH = "`selector` does not match template `labels`"


def selector_problems(spec: Object, path: str, *, kind: str) -> list[FieldProblem]:
    """A selector that must be there and must select something; ``kind`` is what messages call the workload."""
    selector = spec.get("selector")
    if selector is None:
        return [required(f"{path}.selector")]
    problems = label_selector_problems(selector, f"{path}.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        problems.append(invalid(f"{path}.selector", shown_selector(selector), f"empty selector is invalid for {kind}"))
    return problems


def running_template_problems(spec: Object, path: str, *, kind: str) -> list[FieldProblem]:
    """The template of a workload whose pods run for ever, and whether its pods are its own."""
    selector, template = spec.get("selector"), spec.get("template") or {}
    if not is_usable(selector):
        return [invalid(f"{path}.selector", shown_selector(selector), "invalid label selector")]
    problems: list[FieldProblem] = []
    labels = labels_of(template)
    if not is_empty(selector) and not selector_matches(selector, labels):
        problems.append(mismatch(f"{path}.template", labels))
    problems += template_problems(template, f"{path}.template")
    return problems + always_problems(template, f"{path}.template", kind=kind)


def always_problems(template: Object, path: str, *, kind: str) -> list[FieldProblem]:
    """Pods that run for ever restart always, and have no deadline."""
    spec = template.get("spec") or {}
    problems: list[FieldProblem] = []
    if (policy := spec.get("restartPolicy", "")) != "Always":
        problems.append(not_supported(f"{path}.spec.restartPolicy", policy, ["Always"]))
    if spec.get("activeDeadlineSeconds") is not None:
        words = f"activeDeadlineSeconds in {kind} is not Supported"
        problems.append(forbidden(f"{path}.spec.activeDeadlineSeconds", words))
    return problems


def mismatch(path: str, labels: dict[str, str]) -> FieldProblem:
    """Labels of a template that its own workload would not select."""
    return invalid(f"{path}.metadata.labels", dict(sorted(labels.items())) or None, MISMATCH)


def labels_of(template: Object) -> dict[str, str]:
    """The labels that the pods of a template get."""
    return (template.get("metadata") or {}).get("labels") or {}


def is_empty(selector: Object | None) -> bool:
    """Whether a selector is there and takes everything."""
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")


def unchanged_problems(new: Any, old: Any, path: str) -> list[FieldProblem]:
    """A field that is set once."""
    return [] if new == old else [immutable(path, new)]


def selector_change_problems(new: Object, old: Object) -> list[FieldProblem]:
    """The selector of a workload, which is set once."""
    selector, before = ((each.get("spec") or {}).get("selector") for each in (new, old))
    return [] if selector == before else [immutable("spec.selector", shown_selector(selector))]


def count_problems(holder: Object, path: str, *fields: str) -> list[FieldProblem]:
    """Counts, none of which may be below zero."""
    problems: list[FieldProblem] = []
    for field in fields:
        problems += nonnegative_problems(holder.get(field), f"{path}.{field}")
    return problems


def at_most_problems(status: Object, fields: tuple[str, ...], bound: str, words: str) -> list[FieldProblem]:
    """Counts in a status that another bounds."""
    limit = status.get(bound, 0)
    return [invalid(f"status.{field}", status.get(field, 0), words) for field in fields if status.get(field, 0) > limit]


def decrement_problems(new: Object, old: Object) -> list[FieldProblem]:
    """The count of collisions of names, which only rises."""
    before, after = old.get("collisionCount"), new.get("collisionCount")
    if before is None or (after is not None and after >= before):
        return []
    return [invalid("status.collisionCount", after or 0, "cannot be decremented")]


def share_problems(value: int | str, path: str) -> list[FieldProblem]:
    """A count or a percentage, and neither negative."""
    if isinstance(value, str):
        return [invalid(path, value, each) for each in percent_problems(value)]
    return nonnegative_problems(value, path)


def over_hundred_problems(value: int | str, path: str) -> list[FieldProblem]:
    """A percentage of which there is no more than the whole."""
    if isinstance(value, str) and not percent_problems(value) and int(value[:-1]) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def share_value(value: int | str) -> int:
    """The number in a count or percentage; none where it is neither."""
    if isinstance(value, int):
        return value
    text = value[:-1] if not percent_problems(value) else value
    return int(text) if text.lstrip("+-").isdigit() and text.isascii() else 0


def keep_spec(new: Object, old: Object) -> None:
    """A write of the status leaves the specification as it was."""
    new["spec"] = old.get("spec") or {}


STATUS_RESETS = {"": (("status",),), "status": (("spec",),)}
