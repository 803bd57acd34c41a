"""CronJobs: Jobs that are made by a schedule."""

from __future__ import annotations

import re
import zoneinfo

from shoal.cluster.apiserver.builtin.names import label_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.workloads.features import drop_disabled
from shoal.cluster.apiserver.builtin.workloads.job_spec import job_spec_problems
from shoal.cluster.apiserver.builtin.workloads.jobs import default_job_spec, job_warnings
from shoal.cluster.apiserver.builtin.workloads.templates import STATUS_RESETS, count_problems, keep_spec
from shoal.cluster.apiserver.builtin.workloads.warnings import name_warnings
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.cluster.schedules import schedule_problem
from shoal.kube.admission.fields import FieldProblem, invalid, not_supported, required

_POLICIES = ("Allow", "Forbid", "Replace")
_LONGEST_NAME = 52
_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}", re.ASCII).fullmatch


def _default(cron_job: Object) -> None:
    spec = cron_job.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    default_job_spec(spec.setdefault("jobTemplate", {}).setdefault("spec", {}))


def _job_spec(cron_job: Object) -> Object:
    spec: Object = ((cron_job.get("spec") or {}).get("jobTemplate") or {}).get("spec") or {}
    return spec


def _pod_spec(cron_job: Object) -> Object:
    spec: Object = (_job_spec(cron_job).get("template") or {}).get("spec") or {}
    return spec


def _validate_create(cron_job: Object) -> list[FieldProblem]:
    problems = _problems(cron_job, None)
    name = (cron_job.get("metadata") or {}).get("name", "")
    if len(name) > _LONGEST_NAME:
        problems.append(invalid("metadata.name", name, "must be no more than 52 characters"))
    return problems


def _problems(cron_job: Object, old: Object | None) -> list[FieldProblem]:
    spec, before = cron_job.get("spec") or {}, None if old is None else old.get("spec") or {}
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    problems: list[FieldProblem] = []
    if not schedule:
        problems.append(required("spec.schedule"))
    else:
        problems += _schedule_problems(schedule, zone, "TZ" in (before or {}).get("schedule", ""))
    problems += count_problems(spec, "spec", "startingDeadlineSeconds")
    if zone is not None and (before is None or before.get("timeZone") != zone):
        problems += _zone_problems(zone, "spec.timeZone")
    policy = spec.get("concurrencyPolicy", "")
    if policy not in _POLICIES:
        here = "spec.concurrencyPolicy"
        problems.append(not_supported(here, policy, _POLICIES) if policy else required(here))
    problems += _template_problems(_job_spec(cron_job), "spec.jobTemplate.spec")
    return problems + count_problems(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")


def _schedule_problems(schedule: str, zone: str | None, had_zone: bool) -> list[FieldProblem]:
    here = "spec.schedule"
    problems = [invalid(here, schedule, why)] if (why := schedule_problem(schedule)) else []
    if "TZ" in schedule:
        if not had_zone:
            words = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            problems.append(invalid(here, schedule, words))
        elif zone is not None:
            words = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            problems.append(invalid(here, schedule, words))
    return problems


def _zone_problems(zone: str, path: str) -> list[FieldProblem]:
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    if any(part in (".", "..") or part.startswith("-") or not _zone_part(part) for part in zone.split("/")):
        return [invalid(path, zone, f"unknown time zone {zone}")]
    problems: list[FieldProblem] = []
    if zone.lower() == "local":
        words = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        problems.append(invalid(path, zone, words))
    if zone != "Local" and not _is_zone(zone):
        problems.append(invalid(path, zone, f"unknown time zone {zone}"))
    return problems


def _is_zone(zone: str) -> bool:
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _template_problems(spec: Object, path: str) -> list[FieldProblem]:
    problems = job_spec_problems(spec, path)
    if (selector := spec.get("selector")) is not None:
        problems.append(invalid(f"{path}.selector", selector, "`selector` will be auto-generated"))
    if spec.get("manualSelector"):
        problems.append(not_supported(f"{path}.manualSelector", True, ["nil", "false"]))
    return problems


def _warnings(cron_job: Object) -> list[str]:
    names = name_warnings(cron_job, label_problems, "Pod names and hostnames")
    return names + job_warnings(_job_spec(cron_job), "spec.jobTemplate.spec")


CRON_JOB = Rules(
    name_problems=subdomain_problems,
    defaults=_default,
    prepare_create=lambda new: drop_disabled(_pod_spec(new)),
    prepare_update=lambda new, old: drop_disabled(_pod_spec(new), _pod_spec(old)),
    prepare_status=keep_spec,
    validate_create=_validate_create,
    validate_update=_problems,
    warnings=_warnings,
    resets=STATUS_RESETS,
)
