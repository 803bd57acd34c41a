"""TrainJobs and runtimes as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from shoal.api.meta import is_true
from shoal.api.trainer import ClusterTrainingRuntime, TrainingRuntime, TrainJob
from shoal.api.trainer.names import COMPLETE, FRAMEWORK_LABEL
from shoal.cli.output import Table
from shoal.cli.training.fitting import NOTHING
from shoal.cli.training.states import RUNNING, Standing

AGE, STATE = "age", "state"
CUT_FIRST = {"metrics": 12, "runtime": 12, STATE: 16, "progress": 8}
"""The columns that give way in a narrow terminal, and what is left of them."""
_METRICS_SHOWN = 3
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def train_jobs_table(
    jobs: Sequence[tuple[TrainJob, Standing]], now: datetime, *, with_namespace: bool, is_wide: bool
) -> Table:
    """How each training run is, and how far; where there is room for it also why."""
    heading = ["name", "runtime", STATE, "progress", "metrics", AGE]
    rows = [
        [
            job.metadata.name,
            job.spec.runtime_ref.name,
            standing.state,
            progress_of(job, standing),
            metrics_of(job, most=None if is_wide else _METRICS_SHOWN),
            _age(job.metadata.creation_timestamp, now),
        ]
        for job, standing in jobs
    ]
    if with_namespace:
        heading.insert(0, "namespace")
        rows = [[job.metadata.namespace, *row] for (job, _), row in zip(jobs, rows, strict=True)]
    if is_wide:
        heading.append("reason")
        rows = [[*row, _line(standing.reason)] for (_, standing), row in zip(jobs, rows, strict=True)]
    return Table(rows, heading)


def runtimes_table(runtimes: Iterable[TrainingRuntime | ClusterTrainingRuntime]) -> Table:
    """What can be trained with."""
    rows = [
        (
            runtime.metadata.name,
            runtime.metadata.namespace or "all",
            runtime.metadata.labels.get(FRAMEWORK_LABEL, NOTHING),
            policy.num_nodes if (policy := runtime.spec.ml_policy) is not None and policy.num_nodes is not None else 1,
        )
        for runtime in runtimes
    ]
    return Table(rows, ("name", "namespace", "framework", "nodes"))


def hints(jobs: Sequence[tuple[TrainJob, Standing]], options: str) -> list[str]:
    """What to ask next about runs that do not get on; ``options`` name the cluster in the command to type."""
    said = []
    waiting = [job for job, standing in jobs if standing.waits_for_room]
    if waiting:
        who = f"{_names(waiting)} {'waits' if len(waiting) == 1 else 'wait'} for room"
        said.append(f"{who}: ask shoal explain {asked_about(waiting[0])}{options}")
    troubled = [job for job, standing in jobs if standing.is_trouble]
    if troubled:
        said.append(f"-o wide says what is wrong with {_names(troubled)}")
    return said


def asked_about(job: TrainJob) -> str:
    """How a run is named to ``shoal explain``."""
    namespace = job.metadata.namespace
    return f"trainjob/{job.metadata.name}" + (f" -n {namespace}" if namespace != "default" else "")


def progress_of(job: TrainJob, standing: Standing) -> str:
    """What the training program says of how far it is; how long it takes still, only while it runs."""
    status = job.status.trainer_status
    if status is None or status.progress_percentage is None:
        return "100%" if is_true(job.status.conditions, COMPLETE) else NOTHING
    left = status.estimated_remaining_seconds
    rest = f", {span(left)} left" if left and standing.state == RUNNING else ""
    return f"{status.progress_percentage}%{rest}"


def metrics_of(job: TrainJob, *, most: int | None) -> str:
    """The first figures that it reports, or all."""
    status = job.status.trainer_status
    shown = [f"{metric.name}={metric.value}" for metric in (status.metrics if status else [])[:most]]
    return " ".join(shown) or NOTHING


def span(seconds: float) -> str:
    """A length of time in its largest unit, as kubectl tells ages."""
    for unit, letter in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if seconds >= 2 * unit:
            return f"{int(seconds // unit)}{letter}"
    return f"{max(0, int(seconds))}s"


def _age(created: datetime | None, now: datetime) -> str:
    return span((now - created).total_seconds()) if created is not None else NOTHING


def _line(text: str) -> str:
    return " ".join(text.split()) or NOTHING


def _names(jobs: Sequence[TrainJob]) -> str:
    first, *others = [job.metadata.name for job in jobs]
    return f"{first} and {len(others)} more" if len(others) > 1 else " and ".join([first, *others])
