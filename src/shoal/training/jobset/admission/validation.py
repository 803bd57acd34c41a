"""What is wrong with a JobSet that is about to be made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from shoal.api.batch import INDEXED
from shoal.api.jobset import FailurePolicy, FailureRule, JobSet, ReplicatedJob, names
from shoal.api.jobset.job_sets import IN_PLACE
from shoal.api.meta import dns1035_label_problems, dns1123_subdomain_problems, label_value_problems
from shoal.kube.admission import FieldProblem, Finding, Warn, duplicate, forbidden, invalid, not_supported, too_long
from shoal.training.jobset.admission.volumes import claim_problems
from shoal.training.jobset.failure import SINGLE_JOB_ACTIONS
from shoal.training.jobset.in_place import is_restarted_in_place
from shoal.training.jobset.jobs import coordinator_of
from shoal.training.jobset.patterns import is_pattern
from shoal.training.jobset.settings import JobSetSettings

JOBS: Final = "spec.replicatedJobs"
LARGEST: Final = 2**31 - 1
MANAGER_LIMIT: Final = 63
RULE_NAME_LIMIT: Final = 128
MOST_SINGLE_RESTARTS: Final = 1024
"""Jobs of a replicated job whose single restarts the status has room for."""
FAILURE_REASONS: Final = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)
_GENERATED: Final = "xxxxx"
_POD_SUFFIX: Final = "-xxxxx"
_RULE_NAME: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def job_set_findings(job_set: JobSet, settings: JobSetSettings) -> Iterator[Finding]:
    """What is wrong, or doubtful, with a new JobSet whose defaults are filled in."""
    name = name_of(job_set)
    yield from _network_problems(job_set)
    yield from _manager_problems(job_set)
    yield from _dependency_problems(job_set)
    for index, each in enumerate(job_set.spec.replicated_jobs):
        yield from _replicated_job_problems(name, each, f"{JOBS}[{index}]")
        if settings.restarts_in_place and is_restarted_in_place(job_set):
            yield from _in_place_problems(each, f"{JOBS}[{index}].template.spec")
    yield from _success_problems(job_set)
    if job_set.spec.failure_policy is not None:
        yield from _failure_findings(job_set, job_set.spec.failure_policy, settings)
    yield from _coordinator_problems(job_set, name)
    yield from claim_problems(job_set, name)


def name_of(job_set: JobSet) -> str:
    """The JobSet's name; one that the server will finish has what it will be as long as."""
    return job_set.metadata.name or (job_set.metadata.generate_name + _GENERATED)


def _network_problems(job_set: JobSet) -> Iterator[FieldProblem]:
    subdomain = job_set.spec.network.subdomain if job_set.spec.network else ""
    if subdomain:
        for problem in dns1035_label_problems(subdomain):
            yield invalid("spec.network.subdomain", subdomain, f"it is the name of a service: {problem}")


def _manager_problems(job_set: JobSet) -> Iterator[FieldProblem]:
    manager = job_set.spec.managed_by
    if manager is None:
        return
    domain, slash, path = manager.partition("/")
    if not slash or dns1123_subdomain_problems(domain) or not _PATH.fullmatch(path):
        yield invalid("spec.managedBy", manager, "must be a domain-prefixed path (such as acme.io/foo)")
    if len(manager) > MANAGER_LIMIT:
        yield too_long("spec.managedBy", MANAGER_LIMIT)


def _dependency_problems(job_set: JobSet) -> Iterator[FieldProblem]:
    earlier: set[str] = set()
    for index, each in enumerate(job_set.spec.replicated_jobs):
        place = f"{JOBS}[{index}].dependsOn"
        if index == 0 and each.depends_on:
            yield forbidden(place, "DependsOn can't be set for the first ReplicatedJob")
        else:
            for number, wanted in enumerate(each.depends_on):
                if wanted.name not in earlier:
                    said = f"{each.name} cannot depend on {wanted.name}: name a replicated job that comes before it"
                    yield invalid(f"{place}[{number}].name", wanted.name, said)
        earlier.add(each.name)


def _replicated_job_problems(job_set: str, each: ReplicatedJob, place: str) -> Iterator[FieldProblem]:
    spec = each.job_spec
    parallelism = spec.get("parallelism")
    if (1 if parallelism is None else parallelism) * each.count > LARGEST:
        yield invalid(f"{place}.replicas", each.count, f"times parallelism must not be more than {LARGEST}")
    for problem in dns1035_label_problems(each.group):
        yield invalid(f"{place}.groupName", each.group, problem)
    last = max(each.count - 1, 0)
    job = names.job_name(job_set, each.name, last)
    for problem in dns1035_label_problems(job):
        yield invalid(f"{place}.name", job, f"the names of its Jobs would not do: {problem}: shorten the JobSet's name")
    completions = spec.get("completions")
    if spec.get("completionMode") == INDEXED and completions is not None:
        pod = names.pod_host_name(job, max(completions - 1, 0)) + _POD_SUFFIX
        for problem in dns1035_label_problems(pod):
            said = f"the names of its pods would not do: {problem}: shorten the JobSet's name"
            yield invalid(f"{place}.name", pod, said)


def _in_place_problems(each: ReplicatedJob, place: str) -> Iterator[FieldProblem]:
    spec = each.job_spec
    if spec.get("backoffLimit") != LARGEST:
        yield invalid(f"{place}.backoffLimit", spec.get("backoffLimit"), f"must be {LARGEST} with InPlaceRestart")
    if spec.get("podReplacementPolicy") != "Failed":
        found = spec.get("podReplacementPolicy")
        yield invalid(f"{place}.podReplacementPolicy", found, "must be Failed with InPlaceRestart")
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    if completions is None or completions != parallelism:
        yield invalid(f"{place}.completions", completions, "must be set, and as parallelism is, with InPlaceRestart")


def _success_problems(job_set: JobSet) -> Iterator[FieldProblem]:
    targets = job_set.spec.success_policy.target_replicated_jobs if job_set.spec.success_policy else []
    yield from _target_problems(job_set, targets, "spec.successPolicy.targetReplicatedJobs")


def _failure_findings(job_set: JobSet, policy: FailurePolicy, settings: JobSetSettings) -> Iterator[Finding]:
    if policy.restart_strategy == IN_PLACE and not settings.restarts_in_place:
        yield forbidden("spec.failurePolicy.restartStrategy", "InPlaceRestart is not enabled: use Recreate")
    seen: set[str] = set()
    for index, rule in enumerate(policy.rules):
        place = f"spec.failurePolicy.rules[{index}]"
        yield from _rule_findings(job_set, rule, place, settings)
        if rule.name in seen:
            yield duplicate(f"{place}.name", rule.name)
        seen.add(rule.name)


def _rule_findings(job_set: JobSet, rule: FailureRule, place: str, settings: JobSetSettings) -> Iterator[Finding]:
    if not 1 <= len(rule.name) <= RULE_NAME_LIMIT:
        yield invalid(f"{place}.name", rule.name, f"must have 1 to {RULE_NAME_LIMIT} characters")
    if not _RULE_NAME.fullmatch(rule.name):
        said = "must begin with a letter, end with a letter, a digit or _, and have only those and , : between"
        yield invalid(f"{place}.name", rule.name, said)
    if rule.action in SINGLE_JOB_ACTIONS:
        if not settings.restarts_single_jobs:
            yield forbidden(f"{place}.action", f"{rule.action} is not enabled: use RestartJobSet")
        elif any(each.count > MOST_SINGLE_RESTARTS for each in job_set.spec.replicated_jobs):
            said = f"{rule.action} needs replicated jobs of no more than {MOST_SINGLE_RESTARTS} replicas"
            yield forbidden(f"{place}.action", said)
    yield from _target_problems(job_set, rule.target_replicated_jobs, f"{place}.targetReplicatedJobs")
    for number, reason in enumerate(rule.on_job_failure_reasons):
        if reason not in FAILURE_REASONS:
            yield not_supported(f"{place}.onJobFailureReasons[{number}]", reason, FAILURE_REASONS)
    for number, pattern in enumerate(rule.on_job_failure_message_patterns):
        if not is_pattern(pattern):
            yield Warn(
                f"{place}.onJobFailureMessagePatterns[{number}]: {pattern!r} is no RE2 pattern: it never matches"
            )


def _target_problems(job_set: JobSet, targets: list[str], place: str) -> Iterator[FieldProblem]:
    known = {each.name for each in job_set.spec.replicated_jobs}
    for index, target in enumerate(targets):
        if target not in known:
            said = f"invalid replicatedJob name '{target}' does not appear in .spec.ReplicatedJobs"
            yield invalid(f"{place}[{index}]", target, said)


def _coordinator_problems(job_set: JobSet, name: str) -> Iterator[FieldProblem]:
    coordinator = job_set.spec.coordinator
    if coordinator is None:
        return
    found = {each.name: each for each in job_set.spec.replicated_jobs}.get(coordinator.replicated_job)
    if found is None:
        said = f"coordinator replicatedJob {coordinator.replicated_job} does not exist"
        yield invalid("spec.coordinator.replicatedJob", coordinator.replicated_job, said)
    else:
        yield from _index_problems(found, coordinator.job_index or 0, coordinator.pod_index or 0)
    address = coordinator_of(job_set, name)
    for problem in label_value_problems(address):
        yield invalid("spec.coordinator", address, f"pods are labelled with it: {problem}: use shorter names")


def _index_problems(found: ReplicatedJob, job_index: int, pod_index: int) -> Iterator[FieldProblem]:
    if not 0 <= job_index < found.count:
        said = f"coordinator job index {job_index} is invalid for replicatedJob {found.name}"
        yield invalid("spec.coordinator.jobIndex", job_index, said)
    completions = found.job_spec.get("completions")
    if found.job_spec.get("completionMode") != INDEXED or completions is None:
        said = "job for coordinator pod must be indexed completion mode, and completions number must be set"
        yield invalid("spec.coordinator.replicatedJob", found.name, said)
    elif not 0 <= pod_index < completions:
        said = f"coordinator pod index {pod_index} is invalid for replicatedJob {found.name} job index {job_index}"
        yield invalid("spec.coordinator.podIndex", pod_index, said)
