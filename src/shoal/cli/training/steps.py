"""Which pod is which step of a TrainJob: its initializers, and its nodes by their rank."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shoal.api.batch import COMPLETION_INDEX
from shoal.api.core import ContainerStatus, Pod
from shoal.api.jobset.names import REPLICATED_JOB_NAME
from shoal.api.trainer.names import DATASET_INITIALIZER, LAUNCHER, MODEL_INITIALIZER, NODE

_INITIALIZERS = (DATASET_INITIALIZER, MODEL_INITIALIZER)


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


def steps_of(pods: Iterable[Pod]) -> list[Step]:
    """The steps that have a pod, initializers first, then nodes by rank; of several pods for one step the newest.

    Where a launcher starts the others it is the first of them.
    """
    newest: dict[tuple[str, int], Pod] = {}
    for pod in sorted(pods, key=_age_order):
        newest[_place(pod)] = pod
    has_launcher = any(job == LAUNCHER for job, _ in newest)
    steps = [_step(job, index, pod, has_launcher=has_launcher) for (job, index), pod in newest.items()]
    return sorted(
        (step for step in steps if step is not None),
        key=lambda step: (step.rank is not None, step.rank or 0, step.name),
    )


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


def _place(pod: Pod) -> tuple[str, int]:
    labels = pod.metadata.labels
    index = labels.get(COMPLETION_INDEX, "")
    return labels.get(REPLICATED_JOB_NAME, ""), int(index) if index.isdecimal() else 0


def _age_order(pod: Pod) -> tuple[float, str]:
    created = pod.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0, pod.metadata.uid
