"""TrainJobs and runtimes as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from shoal.api.meta import is_true
from shoal.api.trainer import ClusterTrainingRuntime, TrainingRuntime, TrainJob, is_finished
from shoal.api.trainer.names import COMPLETE, FAILED, FRAMEWORK_LABEL, LAUNCHER, NODE, SUSPENDED
from shoal.cli.output import Table

_METRICS_SHOWN = 3
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def train_jobs_table(jobs: Sequence[TrainJob], now: datetime, *, with_namespace: bool) -> Table:
    """How each training run is, and how far."""
    heading = ("name", "runtime", "state", "progress", "metrics", "age")
    rows = [
        (
            job.metadata.name,
            job.spec.runtime_ref.name,
            state_of(job),
            progress_of(job),
            metrics_of(job),
            _age(job.metadata.creation_timestamp, now),
        )
        for job in jobs
    ]
    if not with_namespace:
        return Table(rows, heading)
    spaces = [job.metadata.namespace for job in jobs]
    return Table([(space, *row) for space, row in zip(spaces, rows, strict=True)], ("namespace", *heading))


def runtimes_table(runtimes: Iterable[TrainingRuntime | ClusterTrainingRuntime]) -> Table:
    """What can be trained with."""
    rows = [
        (
            runtime.metadata.name,
            runtime.metadata.namespace or "all",
            runtime.metadata.labels.get(FRAMEWORK_LABEL, "-"),
            policy.num_nodes if (policy := runtime.spec.ml_policy) is not None and policy.num_nodes is not None else 1,
        )
        for runtime in runtimes
    ]
    return Table(rows, ("name", "namespace", "framework", "nodes"))


def state_of(job: TrainJob) -> str:
    """One word for how it is."""
    conditions = job.status.conditions
    for condition in (FAILED, COMPLETE, SUSPENDED):
        if is_true(conditions, condition):
            return condition
    nodes = [one for one in job.status.jobs_status if one.name in (NODE, LAUNCHER)]
    if nodes and all(one.ready or one.succeeded for one in nodes):
        return "Running"
    if job.status.last_error is not None:
        return "Error"
    return "Starting" if any(one.active or one.ready or one.succeeded for one in job.status.jobs_status) else "Waiting"


def progress_of(job: TrainJob) -> str:
    """What the training program says of how far it is."""
    status = job.status.trainer_status
    if status is None or status.progress_percentage is None:
        return "100%" if is_true(job.status.conditions, COMPLETE) else "-"
    left = status.estimated_remaining_seconds
    rest = f", {span(left)} left" if left and not is_finished(job) else ""
    return f"{status.progress_percentage}%{rest}"


def metrics_of(job: TrainJob) -> str:
    """The first figures that it reports."""
    status = job.status.trainer_status
    shown = [f"{metric.name}={metric.value}" for metric in (status.metrics if status else [])[:_METRICS_SHOWN]]
    return " ".join(shown) or "-"


def span(seconds: float) -> str:
    """A length of time in its largest unit, as kubectl tells ages."""
    for unit, letter in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if seconds >= 2 * unit:
            return f"{int(seconds // unit)}{letter}"
    return f"{max(0, int(seconds))}s"


def _age(created: datetime | None, now: datetime) -> str:
    return span((now - created).total_seconds()) if created is not None else "-"
