"""The status of a Job, which others than Kubernetes' own controller may write as well."""

from __future__ import annotations

from shoal.api.meta import parse_time
from shoal.cluster.apiserver.builtin.workloads.conditions import has_condition
from shoal.cluster.apiserver.builtin.workloads.job_indexes import InvalidIndexes, count_indexes, first_overlap
from shoal.cluster.apiserver.builtin.workloads.templates import count_problems
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.kube.admission.fields import FieldProblem, duplicate, invalid, required

_CONDITIONS = "status.conditions"


def validate_job_status(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a new status; most rules hold only for what the write changes."""
    spec, status, earlier = new.get("spec") or {}, new.get("status") or {}, old.get("status") or {}
    problems = count_problems(status, "status", "active", "succeeded", "failed", "ready", "terminating")
    problems += _uncounted_problems(status)
    problems += _time_problems(spec, status, earlier)
    problems += _condition_problems(status, earlier)
    problems += _finished_problems(spec, status, earlier)
    problems += _index_problems(spec, status, earlier)
    problems += _terminating_problems(status, earlier)
    ready = status.get("ready")
    if ready is not None and ready > status.get("active", 0) and _changed(status, earlier, "ready", "active"):
        problems.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
    problems += _success_problems(spec, status)
    return problems + _change_problems(spec, status, earlier)


def _uncounted_problems(status: Object) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    uncounted = status.get("uncountedTerminatedPods") or {}
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(field) or ()):
            here = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                problems.append(invalid(here, uid, "must not be empty"))
            elif uid in seen:
                problems.append(duplicate(here, uid))
            seen.add(uid)
    return problems


def _condition_problems(status: Object, earlier: Object) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    changed = {
        kind: has_condition(status, kind) != has_condition(earlier, kind)
        for kind in ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
    }
    is_complete, is_failed = has_condition(status, "Complete"), has_condition(status, "Failed")
    is_failing = has_condition(status, "FailureTarget")
    if (changed["Complete"] or changed["Failed"]) and is_complete and is_failed:
        problems.append(FieldProblem(_CONDITIONS, "cannot set Complete=True and Failed=true conditions"))
    if (changed["Complete"] or changed["FailureTarget"]) and is_complete and is_failing:
        problems.append(FieldProblem(_CONDITIONS, "cannot set Complete=True and FailureTarget=true conditions"))
    if (changed["Failed"] or _changed(status, earlier, "failedIndexes")) and is_failed and not is_failing:
        words = "cannot set Failed=True condition without the FailureTarget=true condition"
        problems.append(FieldProblem(_CONDITIONS, words))
    is_met = has_condition(status, "SuccessCriteriaMet")
    if (changed["Complete"] or changed["SuccessCriteriaMet"]) and is_complete and not is_met:
        words = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        problems.append(FieldProblem(_CONDITIONS, words))
    return problems


def _time_problems(spec: Object, status: Object, earlier: Object) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    started, completed = status.get("startTime"), status.get("completionTime")
    is_complete = has_condition(status, "Complete")
    is_touched = is_complete != has_condition(earlier, "Complete") or _changed(status, earlier, "completionTime")
    here = "status.completionTime"
    if is_touched and completed is not None and not is_complete:
        words = "cannot set completionTime when there is no Complete=True condition"
        problems.append(invalid(here, completed, words))
    if is_touched and completed is None and is_complete:
        problems.append(required(here, "completionTime is required for Complete jobs"))
    is_touched = _changed(status, earlier, "startTime", "completionTime")
    if is_touched and started and completed and parse_time(completed) < parse_time(started):
        problems.append(invalid(here, completed, "must be equal to or after `startTime`"))
    return problems


def _finished_problems(spec: Object, status: Object, earlier: Object) -> list[FieldProblem]:
    if not _is_finished(status):
        return []
    problems: list[FieldProblem] = []
    is_new = not _is_finished(earlier)
    if status.get("active", 0) > 0 and (is_new or _changed(status, earlier, "active")):
        problems.append(invalid("status.active", status["active"], "active>0 is invalid for finished job"))
    never_ran = spec.get("suspend") is True and spec.get("completions") == 0
    is_touched = (is_new or _changed(status, earlier, "startTime")) and not never_ran
    if status.get("startTime") is None and is_touched:
        problems.append(required("status.startTime", "startTime is required for finished job"))
    uncounted = status.get("uncountedTerminatedPods") or {}
    if (uncounted.get("succeeded") or uncounted.get("failed")) and (
        is_new or _changed(status, earlier, "uncountedTerminatedPods")
    ):
        shown = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        problems.append(invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job"))
    return problems


def _terminating_problems(status: Object, earlier: Object) -> list[FieldProblem]:
    is_touched = not _is_finished(earlier) or _changed(status, earlier, "terminating")
    if not _is_finished(status) or status.get("terminating", 0) <= 0 or not is_touched:
        return []
    return [invalid("status.terminating", status["terminating"], "terminating>0 is invalid for finished job")]


def _index_problems(spec: Object, status: Object, earlier: Object) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    completions, per_index = spec.get("completions"), spec.get("backoffLimitPerIndex")
    completed, failed = status.get("completedIndexes", ""), status.get("failedIndexes")
    completed_changed, failed_changed = (
        _changed(status, earlier, each) for each in ("completedIndexes", "failedIndexes")
    )
    if completed_changed and completions is not None:
        problems += _format_problems("completedIndexes", completed, completions)
    if failed_changed and completions is not None and per_index is not None and failed is not None:
        problems += _format_problems("failedIndexes", failed, completions)
    if completed_changed and completed and spec.get("completionMode", "NonIndexed") != "Indexed":
        words = "cannot set non-empty completedIndexes when non-indexed completion mode"
        problems.append(invalid("status.completedIndexes", completed, words))
    if failed_changed and per_index is None and failed is not None:
        words = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        problems.append(invalid("status.failedIndexes", failed, words))
    if (failed_changed or completed_changed) and completions is not None and failed is not None:
        overlap = first_overlap(completed, failed, completions)
        if overlap is not None:
            words = f"failedIndexes and completedIndexes overlap at index: {overlap}"
            problems.append(invalid("status.failedIndexes", failed, words))
    return problems


def _format_problems(field: str, text: str, completions: int) -> list[FieldProblem]:
    try:
        count_indexes(text, completions)
    except InvalidIndexes as error:
        return [invalid(f"status.{field}", text, f"error parsing {field}: {error}")]
    return []


def _success_problems(spec: Object, status: Object) -> list[FieldProblem]:
    is_met = has_condition(status, "SuccessCriteriaMet")
    problems: list[FieldProblem] = []
    for other in ("Failed", "FailureTarget"):
        if is_met and has_condition(status, other):
            words = f"cannot set SuccessCriteriaMet=True and {other}=true conditions"
            problems.append(FieldProblem(_CONDITIONS, words))
    if spec.get("successPolicy") is not None and not is_met and has_condition(status, "Complete"):
        words = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        problems.append(FieldProblem(_CONDITIONS, words))
    return problems


def _change_problems(spec: Object, status: Object, earlier: Object) -> list[FieldProblem]:
    """What may only go forward."""
    problems: list[FieldProblem] = []
    for kind in ("Failed", "Complete", "FailureTarget"):
        if has_condition(earlier, kind) and not has_condition(status, kind):
            problems.append(FieldProblem(_CONDITIONS, f"cannot disable the terminal {kind}=True condition"))
    is_elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for field in ("failed", "succeeded"):
        if status.get(field, 0) < earlier.get(field, 0) and not (field == "succeeded" and is_elastic):
            words = f"cannot decrease the {field} counter"
            problems.append(invalid(f"status.{field}", status.get(field, 0), words))
    before, after = earlier.get("completionTime"), status.get("completionTime")
    if before and after and before != after:
        problems.append(invalid("status.completionTime", after, "field is immutable"))
    is_resuming = has_condition(earlier, "Suspended") and has_condition(status, "Suspended", "False")
    before, after = earlier.get("startTime"), status.get("startTime")
    if before and before != after and not is_resuming and not spec.get("suspend"):
        words = "field is immutable for unsuspended job once set"
        problems.append(invalid("status.startTime", after, words))
    was_met, is_met = (has_condition(each, "SuccessCriteriaMet") for each in (earlier, status))
    if was_met and not is_met:
        problems.append(FieldProblem(_CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition"))
    if has_condition(earlier, "Complete") and not was_met and is_met:
        words = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        problems.append(FieldProblem(_CONDITIONS, words))
    return problems


def _is_finished(status: Object) -> bool:
    return has_condition(status, "Complete") or has_condition(status, "Failed")


def _changed(status: Object, earlier: Object, *fields: str) -> bool:
    return any((status.get(field) or None) != (earlier.get(field) or None) for field in fields)
