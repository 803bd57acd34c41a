"""Jobs: pods that run to their end."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import label_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.selectors import label_selector_problems
from shoal.cluster.apiserver.builtin.workloads.conditions import has_condition
from shoal.cluster.apiserver.builtin.workloads.defaults import default_template
from shoal.cluster.apiserver.builtin.workloads.deployments import prepare_update, template_spec
from shoal.cluster.apiserver.builtin.workloads.features import drop_disabled
from shoal.cluster.apiserver.builtin.workloads.job_spec import job_spec_problems
from shoal.cluster.apiserver.builtin.workloads.job_status import validate_job_status
from shoal.cluster.apiserver.builtin.workloads.matching import is_usable, selector_matches, shown_selector
from shoal.cluster.apiserver.builtin.workloads.templates import (
    STATUS_RESETS,
    keep_spec,
    labels_of,
    mismatch,
    selector_change_problems,
    unchanged_problems,
)
from shoal.cluster.apiserver.builtin.workloads.warnings import name_warnings, pod_warnings
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, immutable, invalid, required

_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_SELECTED = "batch.kubernetes.io/controller-uid"
_NEVER_CHANGED = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_SOFT_LIMIT = 100_000
_PARALLEL_LIMIT = 10_000


def _default_job(job: Object) -> None:
    spec = job.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    template = spec.setdefault("template", {})
    labels = labels_of(template)
    metadata = job.setdefault("metadata", {})
    if labels and not metadata.get("labels"):
        # One map for both, until the Job is prepared: the labels that are then added are meant to be in both. A Job
        # whose name is still to be made is copied for each name that is tried, and has two maps from then on.
        metadata["labels"] = labels if metadata.get("name") else {**labels}
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    default_job_spec(spec)


def default_job_spec(spec: Object) -> None:
    """What a Job and the template of one have in common."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"
    default_template(spec.setdefault("template", {}))


def _prepare_create(job: Object) -> None:
    drop_disabled(template_spec(job))
    metadata, spec = job.setdefault("metadata", {}), job["spec"]
    template = spec.setdefault("template", {})
    labels = labels_of(template)
    is_shared = not metadata.get("labels") or metadata["labels"] is labels
    if not spec.get("manualSelector"):
        name, uid = metadata.get("name", ""), metadata.get("uid", "")
        labels = {**dict.fromkeys(_NAME_LABELS, name), **dict.fromkeys(_UID_LABELS, uid), **labels}
        template.setdefault("metadata", {})["labels"] = labels
        selector = spec.setdefault("selector", {})
        selector["matchLabels"] = {_SELECTED: uid, **(selector.get("matchLabels") or {})}
    if is_shared and labels:
        metadata["labels"] = {**labels}


def _validate_create(job: Object) -> list[FieldProblem]:
    return _generated_problems(job) + _job_problems(job)


def _job_problems(job: Object) -> list[FieldProblem]:
    spec = job.get("spec") or {}
    problems = _spec_problems(spec)
    name, completions = (job.get("metadata") or {}).get("name", ""), spec.get("completions", 0)
    if spec.get("completionMode") == "Indexed" and completions > 0:
        longest = f"{name}-{completions - 1}"
        if label_problems(longest):
            words = f"will not able to create pod with invalid DNS label: {longest}"
            problems.append(invalid("metadata.name", name, words))
    return problems


def _spec_problems(spec: Object) -> list[FieldProblem]:
    problems = job_spec_problems(spec, "spec")
    selector, labels = spec.get("selector"), labels_of(spec.get("template") or {})
    if selector is None:
        problems.append(required("spec.selector"))
    else:
        problems += label_selector_problems(selector, "spec.selector")
    if is_usable(selector) and not selector_matches(selector, labels):
        problems.append(mismatch("spec.template", labels))
    return problems


def _generated_problems(job: Object) -> list[FieldProblem]:
    """A selector that the server makes must be the one that it would make."""
    metadata, spec = job.get("metadata") or {}, job.get("spec") or {}
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    problems: list[FieldProblem] = []
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    if not uid:
        problems.append(required("metadata.uid"))
    labels = labels_of(spec.get("template") or {})
    wanted = {_UID_LABELS[0]: uid, _NAME_LABELS[0]: name, _UID_LABELS[1]: uid, _NAME_LABELS[1]: name}
    for key, value in wanted.items():
        here = "spec.template.metadata.labels"
        if key not in labels:
            problems.append(required(f"{here}[{key}]", f"must be '{value}'"))
        elif labels[key] != value:
            problems.append(invalid(f"{here}[{key}]", dict(sorted(labels.items())), f"must be '{value}'"))
    if is_usable(selector) and not selector_matches(selector, wanted):
        problems.append(invalid("spec.selector", shown_selector(selector), "`selector` not auto-generated"))
    return problems


def _validate_update(new: Object, old: Object) -> list[FieldProblem]:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    problems = _validate_create(new) + _spec_problems(spec)
    problems += _completions_problems(spec, before)
    problems += selector_change_problems(new, old)
    problems += _template_change(spec, before, may_adapt=_may_adapt(old))
    for field in _NEVER_CHANGED:
        problems += unchanged_problems(spec.get(field), before.get(field), f"spec.{field}")
    return problems


def _completions_problems(spec: Object, before: Object) -> list[FieldProblem]:
    new, old, path = spec.get("completions"), before.get("completions"), "spec.completions"
    if spec.get("completionMode") != "Indexed":
        return unchanged_problems(new, old, path)
    if new == old or new is None or new == spec.get("parallelism"):
        return []
    return [invalid(path, new, "can only be modified in tandem with spec.parallelism")]


def _may_adapt(job: Object) -> bool:
    """Whether nothing of a Job runs, so that others may still say where and how large its pods will be."""
    spec, status = job.get("spec") or {}, job.get("status") or {}
    has_stopped = status.get("startTime") is None or has_condition(status, "Suspended")
    return bool(spec.get("suspend")) and has_stopped and not status.get("active")


def _template_change(spec: Object, before: Object, *, may_adapt: bool) -> list[FieldProblem]:
    template, earlier = spec.get("template") or {}, before.get("template") or {}
    if not may_adapt:
        return [] if template == earlier else [immutable("spec.template", template)]
    pod, old_pod = template.get("spec") or {}, {**(earlier.get("spec") or {})}
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        _take_over(old_pod, pod, field)
    affinity = {**(old_pod.get("affinity") or {})}
    _take_over(affinity, pod.get("affinity") or {}, "nodeAffinity")
    if affinity or ("affinity" in pod and "affinity" in old_pod):
        old_pod["affinity"] = affinity
    elif "affinity" in pod:
        old_pod["affinity"] = {}
    else:
        old_pod.pop("affinity", None)
    for field in ("containers", "initContainers"):
        containers, old_containers = pod.get(field) or [], old_pod.get(field) or []
        if len(containers) == len(old_containers) and containers:
            old_pod[field] = [_with_resources(*each) for each in zip(containers, old_containers, strict=True)]
    return [] if pod == old_pod else [immutable("spec.template.spec", pod)]


def _take_over(old: dict[str, Any], new: dict[str, Any], field: str) -> None:
    if field in new:
        old[field] = new[field]
    else:
        old.pop(field, None)


def _with_resources(new: Object, old: Object) -> Object:
    return {**old, "resources": new.get("resources") or {}} if new.get("name") == old.get("name") else old


def job_warnings(spec: Object, path: str) -> list[str]:
    """What the server remarks about a Job's specification."""
    warnings = []
    is_large = spec.get("completions", 0) > _SOFT_LIMIT and spec.get("parallelism", 0) > _PARALLEL_LIMIT
    if spec.get("completionMode") == "Indexed" and is_large:
        warnings.append(
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
            "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    return warnings + pod_warnings(spec.get("template") or {}, f"{path}.template")


def _warnings(job: Object) -> list[str]:
    names = name_warnings(job, label_problems, "Pod names and hostnames")
    return names + job_warnings(job.get("spec") or {}, "spec")


JOB = Rules(
    name_problems=subdomain_problems,
    defaults=_default_job,
    prepare_create=_prepare_create,
    prepare_update=prepare_update,
    prepare_status=keep_spec,
    validate_create=_validate_create,
    validate_update=_validate_update,
    validate_status=validate_job_status,
    warnings=_warnings,
    resets=STATUS_RESETS,
    fields={"status.successful": lambda job: str((job.get("status") or {}).get("succeeded", 0))},
)
