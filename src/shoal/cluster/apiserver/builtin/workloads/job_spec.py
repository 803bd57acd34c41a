"""The specification of a Job: how many pods, what failures mean, and when it is a success."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import qualified_name_problems
from shoal.cluster.apiserver.builtin.workloads.job_indexes import InvalidIndexes, count_indexes
from shoal.cluster.apiserver.builtin.workloads.pod_spec import template_problems
from shoal.cluster.apiserver.builtin.workloads.templates import count_problems
from shoal.cluster.apiserver.builtin.workloads.texts import domain_path_problems, nonnegative_problems
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.kube.admission.fields import (
    FieldProblem,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)

_HUNDRED_THOUSAND = 100_000
_TEN_THOUSAND = 10_000
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES = ("False", "True", "Unknown")
_LONGEST_INDEXES = 64 * 1024


def job_spec_problems(spec: Object, path: str) -> list[FieldProblem]:
    """What is wrong with a Job, or with the template of one; selectors are looked at elsewhere."""
    problems = count_problems(
        spec,
        path,
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    )
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        problems.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if (manager := spec.get("managedBy")) is not None:
        problems += domain_path_problems(manager, f"{path}.managedBy")
        if len(manager) > 63:
            problems.append(too_long(f"{path}.managedBy", 63))
    problems += _mode_problems(spec, path)
    if (policy := spec.get("podFailurePolicy")) is not None:
        problems += _failure_problems(spec, policy, f"{path}.podFailurePolicy")
    if (policy := spec.get("successPolicy")) is not None:
        if spec.get("completionMode", "NonIndexed") != "Indexed":
            shown = _shown_success(policy)
            problems.append(invalid(f"{path}.successPolicy", shown, "requires indexed completion mode"))
        else:
            problems += _success_problems(spec, policy, f"{path}.successPolicy")
    problems += _replacement_problems(spec, f"{path}.podReplacementPolicy")
    template = spec.get("template") or {}
    problems += template_problems(template, f"{path}.template")
    return problems + _restart_problems(spec, template, f"{path}.template.spec.restartPolicy")


def _mode_problems(spec: Object, path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    mode = spec.get("completionMode")
    if mode not in (None, "NonIndexed", "Indexed"):
        problems.append(not_supported(f"{path}.completionMode", mode, ["NonIndexed", "Indexed"]))
    if mode == "Indexed":
        return problems + _indexed_problems(spec, path)
    if mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if field in spec:
                problems.append(invalid(f"{path}.{field}", spec[field], "requires indexed completion mode"))
    return problems


def _indexed_problems(spec: Object, path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    completions, parallelism, most = (spec.get(each) for each in ("completions", "parallelism", "maxFailedIndexes"))
    if completions is None:
        problems.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism is not None and parallelism > _HUNDRED_THOUSAND:
        words = f"must be less than or equal to {_HUNDRED_THOUSAND} when completion mode is Indexed"
        problems.append(invalid(f"{path}.parallelism", parallelism, words))
    if completions is not None and most is not None and most > completions:
        problems.append(invalid(f"{path}.maxFailedIndexes", most, "must be less than or equal to completions"))
    if most is not None and most > _HUNDRED_THOUSAND:
        words = f"must be less than or equal to {_HUNDRED_THOUSAND}"
        problems.append(invalid(f"{path}.maxFailedIndexes", most, words))
    if completions is not None and completions > _HUNDRED_THOUSAND and "backoffLimitPerIndex" in spec:
        if most is None:
            words = f"must be specified when completions is above {_HUNDRED_THOUSAND}"
            problems.append(required(f"{path}.maxFailedIndexes", words))
        words = (
            f"must be less than or equal to {_TEN_THOUSAND} when completions are above {_HUNDRED_THOUSAND} "
            "and used with backoff limit per index"
        )
        for field, value in (("parallelism", parallelism), ("maxFailedIndexes", most)):
            if value is not None and value > _TEN_THOUSAND:
                problems.append(invalid(f"{path}.{field}", value, words))
    return problems


def _replacement_problems(spec: Object, path: str) -> list[FieldProblem]:
    policy = spec.get("podReplacementPolicy")
    known = ["Failed"] if spec.get("podFailurePolicy") is not None else ["Failed", "TerminatingOrFailed"]
    return [] if policy is None or policy in known else [not_supported(path, policy, known)]


def _restart_problems(spec: Object, template: Object, path: str) -> list[FieldProblem]:
    policy = (template.get("spec") or {}).get("restartPolicy", "")
    if policy in ("Always", ""):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ["OnFailure", "Never"])]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _failure_problems(spec: Object, policy: Object, path: str) -> list[FieldProblem]:
    rules = policy.get("rules") or ()
    problems = [too_many(f"{path}.rules", len(rules), 20)] if len(rules) > 20 else []
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {
        container.get("name", "") for field in ("containers", "initContainers") for container in pod.get(field) or ()
    }
    for index, rule in enumerate(rules):
        problems += _rule_problems(spec, rule, names, f"{path}.rules[{index}]")
    return problems


def _rule_problems(spec: Object, rule: Object, names: set[str], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    action, codes, patterns = rule.get("action", ""), rule.get("onExitCodes"), rule.get("onPodConditions")
    if not action:
        problems.append(required(f"{path}.action", f"valid values: {_quoted(_ACTIONS)}"))
    elif action == "FailIndex":
        if "backoffLimitPerIndex" not in spec:
            words = "requires the backoffLimitPerIndex to be set"
            problems.append(invalid(f"{path}.action", action, words))
    elif action not in _ACTIONS:
        problems.append(not_supported(f"{path}.action", action, _ACTIONS))
    if codes is not None:
        problems += _exit_code_problems(codes, names, f"{path}.onExitCodes")
    if patterns:
        problems += _pattern_problems(patterns, f"{path}.onPodConditions")
    if codes is not None and patterns:
        words = "specifying both OnExitCodes and OnPodConditions is not supported"
        problems.append(FieldProblem(path, words))
    if codes is None and not patterns:
        words = "specifying one of OnExitCodes and OnPodConditions is required"
        problems.append(FieldProblem(path, words))
    return problems


def _exit_code_problems(codes: Object, names: set[str], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    operator, container, values = codes.get("operator", ""), codes.get("containerName"), codes.get("values") or []
    if operator not in ("In", "NotIn"):
        here, known = f"{path}.operator", ("In", "NotIn")
        words = f"valid values: {_quoted(known)}"
        problems.append(not_supported(here, operator, known) if operator else required(here, words))
    if container is not None and container not in names:
        words = "must be one of the container or initContainer names in the pod template"
        problems.append(invalid(f"{path}.containerName", container, words))
    if not values:
        problems.append(invalid(f"{path}.values", codes.get("values"), "at least one value is required"))
    elif len(values) > 255:
        problems.append(too_many(f"{path}.values", len(values), 255))
    seen: set[int] = set()
    for index, code in enumerate(values):
        here = f"{path}.values[{index}]"
        if operator == "In" and code == 0:
            problems.append(invalid(here, code, "must not be 0 for the In operator"))
        if code in seen:
            problems.append(duplicate(here, code))
        seen.add(code)
    if values != sorted(values):
        problems.append(invalid(f"{path}.values", values, "must be ordered"))
    return problems


def _pattern_problems(patterns: list[dict[str, Any]], path: str) -> list[FieldProblem]:
    problems = [too_many(path, len(patterns), 20)] if len(patterns) > 20 else []
    for index, pattern in enumerate(patterns):
        here, kind, status = f"{path}[{index}]", pattern.get("type", ""), pattern.get("status", "")
        problems += [invalid(f"{here}.type", kind, each) for each in qualified_name_problems(kind)]
        if status not in _STATUSES:
            where, words = f"{here}.status", f"valid values: {_quoted(_STATUSES)}"
            problems.append(not_supported(where, status, _STATUSES) if status else required(where, words))
    return problems


def _success_problems(spec: Object, policy: Object, path: str) -> list[FieldProblem]:
    rules = policy.get("rules") or ()
    problems: list[FieldProblem] = []
    if not rules:
        words = "at least one rules must be specified when the successPolicy is specified"
        problems.append(required(f"{path}.rules", words))
    if len(rules) > 20:
        problems.append(too_many(f"{path}.rules", len(rules), 20))
    for index, rule in enumerate(rules):
        problems += _success_rule_problems(spec.get("completions") or 0, rule, f"{path}.rules[{index}]")
    return problems


def _success_rule_problems(completions: int, rule: Object, path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        words = "at least one of succeededCount or succeededIndexes must be specified"
        problems.append(required(path, words))
    listed = 0
    if indexes is not None:
        here = f"{path}.succeededIndexes"
        if len(indexes) > _LONGEST_INDEXES:
            problems.append(too_long(here, _LONGEST_INDEXES))
        try:
            listed = count_indexes(indexes, completions)
        except InvalidIndexes as error:
            problems.append(invalid(here, indexes, f"error parsing succeededIndexes: {error}"))
    if count is not None:
        here = f"{path}.succeededCount"
        problems += nonnegative_problems(count, here)
        if count > completions:
            words = f"must be less than or equal to {completions} (the number of specified completions)"
            problems.append(invalid(here, count, words))
        if indexes is not None and count > listed:
            words = (
                f"must be less than or equal to {listed} "
                "(the number of indexes in the specified succeededIndexes field)"
            )
            problems.append(invalid(here, count, words))
    return problems


def _shown_success(policy: Object) -> Object:
    rules = policy.get("rules")
    if rules is None:
        return {"Rules": None}
    return {
        "Rules": [
            {"SucceededIndexes": each.get("succeededIndexes"), "SucceededCount": each.get("succeededCount")}
            for each in rules
        ]
    }


def _quoted(known: tuple[str, ...]) -> str:
    return f"[{' '.join(chr(34) + each + chr(34) for each in known)}]"
