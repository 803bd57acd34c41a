"""The steps of a TrainJob: which there are, and which pod is which of its initializers and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.api.jobset.names import REPLICATED_JOB_NAME
from shoal.api.trainer import TrainJob
from shoal.api.trainer.names import DATASET_INITIALIZER, LAUNCHER, MODEL_INITIALIZER, NODE

if TYPE_CHECKING:
    from shoal.api.core import ContainerStatus, Pod
    from shoal.api.jobset import JobSet, ReplicatedJob

_INITIALIZERS = (DATASET_INITIALIZER, MODEL_INITIALIZER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which steps a TrainJob has, whether or not they have pods by now."""

    initializers: tuple[str, ...] = ()
    has_launcher: bool = False
    ranks: int | None = None
    """How many there are; None where only the JobSet would know, and it is not to be had."""

    @classmethod
    def of(cls, job_set: JobSet) -> Plan:
        """What the JobSet is to run. Its pods come one after another, a launcher's last: they do not tell."""
        jobs = job_set.spec.replicated_jobs
        return cls(
            initializers=tuple(name for name in _INITIALIZERS if any(job.name == name for job in jobs)),
            has_launcher=any(job.name == LAUNCHER for job in jobs),
            ranks=sum(_count(job) for job in jobs if job.name in (NODE, LAUNCHER)),
        )

    @classmethod
    def guessed(cls, train_job: TrainJob | None, pods: Iterable[Pod]) -> Plan:
        """What can be known without the JobSet."""
        told = {one.name for one in train_job.status.jobs_status} if train_job is not None else set()
        return cls(has_launcher=LAUNCHER in told | {_place(pod)[0] for pod in pods})

    @property
    def steps(self) -> str:
        """All of them, in words."""
        nodes = [f"{NODE}-0"] if self.ranks else []
        if (self.ranks or 0) > 1:
            nodes = [f"{NODE}-0 to {NODE}-{(self.ranks or 0) - 1}"]
        return ", ".join([*self.initializers, *nodes]) or "none"

    def has(self, step: str) -> bool:
        """Whether there is a step of that name, as far as is known."""
        if self.ranks is None or step in self.initializers:
            return True
        kind, _, rank = step.rpartition("-")
        return kind == NODE and rank.isdecimal() and int(rank) < self.ranks


@dataclass(frozen=True, slots=True)
class Step:
    """One pod's part of a TrainJob."""

    name: str
    """``dataset-initializer``, ``model-initializer`` or ``node-<rank>``, as the Kubeflow SDK calls them."""
    rank: int | None
    """None for initializers."""
    container: str
    pod: Pod

    @property
    def status(self) -> ContainerStatus | None:
        """How the container is that does the step's work."""
        return next((one for one in self.pod.status.container_statuses if one.name == self.container), None)

    @property
    def life(self) -> tuple[str, int] | None:
        """What tells one life of the container from the next; None before the first begins.

        One that waits to be restarted counts as what it was: its last words are there to be read.
        """
        status = self.status
        if status is None:
            return None
        has_begun = status.state.running or status.state.terminated or status.last_state.terminated
        return (self.pod.metadata.uid, status.restart_count) if has_begun else None


def steps_of(pods: Iterable[Pod], plan: Plan) -> list[Step]:
    """The steps that have a pod, initializers first, then nodes by rank; of several pods for one step the newest.

    Where a launcher starts the others it is the first of them.
    """
    steps = [_step(job, index, pod, has_launcher=plan.has_launcher) for (job, index), pod in newest_pods(pods).items()]
    return sorted(
        (step for step in steps if step is not None),
        key=lambda step: (step.rank is not None, step.rank or 0, step.name),
    )


def newest_pods(pods: Iterable[Pod]) -> Mapping[tuple[str, int], Pod]:
    """The pod that counts for each replicated job and index: the last that was made."""
    return {_place(pod): pod for pod in sorted(pods, key=_age_order)}


def _step(job: str, index: int, pod: Pod, *, has_launcher: bool) -> Step | None:
    if job in _INITIALIZERS:
        return Step(job, None, job, pod)
    if job == LAUNCHER:
        rank = 0
    elif job == NODE:
        rank = index + has_launcher
    else:
        return None
    return Step(f"{NODE}-{rank}", rank, NODE, pod)


def _count(job: ReplicatedJob) -> int:
    told = (job.job_spec.get(name) for name in ("completions", "parallelism"))
    return next((count for count in told if count is not None), 1)


def _place(pod: Pod) -> tuple[str, int]:
    from shoal.api.batch import COMPLETION_INDEX  # noqa: PLC0415 - most answers need no pods

    labels = pod.metadata.labels
    index = labels.get(COMPLETION_INDEX, "")
    return labels.get(REPLICATED_JOB_NAME, ""), int(index) if index.isdecimal() else 0


def _age_order(pod: Pod) -> tuple[float, str]:
    created = pod.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0, pod.metadata.uid
