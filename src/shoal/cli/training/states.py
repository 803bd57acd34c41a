"""How a training run is, in a word, and why: from its status, and from its pods where that does not tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.api.meta import find_condition, is_true
from shoal.api.trainer import TrainJob
from shoal.api.trainer.names import COMPLETE, FAILED, LAUNCHER, NODE, SUSPENDED
from shoal.cli.training.steps import Plan, newest_pods, steps_of

if TYPE_CHECKING:
    from shoal.api.core import ContainerStatus, Pod
    from shoal.api.core.pods import TerminatedState

RUNNING, ERROR, PENDING, STARTING, WAITING = "Running", "Error", "Pending", "Starting", "Waiting"
UNSCHEDULABLE = "Unschedulable"
_CRASHED = "CrashLoopBackOff"
_USUAL = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Why a container does not run for a moment when all is well."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps a pod from doing its work: Kubernetes' word for it, and what that means here."""

    word: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.word, self.message) if part)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a run is."""

    state: str
    reason: str = ""
    is_trouble: bool = False
    """Whether somebody should look at it."""
    waits_for_room: bool = False
    """Whether the scheduler can say what would let it start."""


def standing_of(job: TrainJob, pods: Iterable[Pod] = ()) -> Standing:
    """How a run is; its pods matter only where ``needs_pods`` says so."""
    conditions = job.status.conditions
    if is_true(conditions, FAILED):
        return Standing(FAILED, ending_of(job), is_trouble=True)
    for condition in (COMPLETE, SUSPENDED):
        if is_true(conditions, condition):
            return Standing(condition)
    error = job.status.last_error
    if _is_running(job):
        return Standing(RUNNING, error.message if error is not None else "")
    if error is not None:
        return Standing(ERROR, error.message, is_trouble=True)
    current = [pod for pod in pods if not pod.metadata.is_deleting]
    return _by_pods(job, current) or Standing(STARTING if _has_begun(job) or current else WAITING)


def needs_pods(job: TrainJob) -> bool:
    """Whether only its pods can tell how a run is."""
    return standing_of(job).state in (STARTING, WAITING)


def ending_of(job: TrainJob) -> str:
    """Why a run failed, as its condition says; empty where it did not."""
    found = find_condition(job.status.conditions, FAILED)
    return f"{found.reason}: {found.message}" if found is not None and is_true(job.status.conditions, FAILED) else ""


def trouble_of(pod: Pod) -> Trouble | None:
    """What is wrong with a pod that is not about to be well by itself."""
    statuses = [*pod.status.init_container_statuses, *pod.status.container_statuses]
    for status in statuses:
        if (found := blocking(status)) is not None:
            return found
    for status in statuses:
        ended = status.state.terminated
        if ended is not None and ended.exit_code:
            return Trouble(ended.reason or ERROR, _told(ended))
    if pod.status.phase == FAILED:
        return Trouble(pod.status.reason or FAILED, pod.status.message)
    return None


def blocking(status: ContainerStatus) -> Trouble | None:
    """What keeps a container from starting, or from starting again."""
    waiting = status.state.waiting
    if waiting is None or waiting.reason in _USUAL:
        return None
    last = status.last_state.terminated
    if waiting.reason != _CRASHED or last is None:
        return Trouble(waiting.reason, waiting.message)
    times = "once" if status.restart_count == 1 else f"{status.restart_count} times"
    return Trouble(waiting.reason, f"{_told(last)}, restarted {times}" if status.restart_count else _told(last))


def homelessness(pod: Pod) -> Trouble | None:
    """Why a pod has no node; None where it has one, or will not have one any more."""
    from shoal.api.core import is_finished, pod_condition  # noqa: PLC0415 - most answers need no pods

    if pod.spec.node_name or is_finished(pod):
        return None
    found = pod_condition(pod, "PodScheduled")
    if found is None or found.status == "True":
        return Trouble(PENDING, "")
    return Trouble(found.reason or PENDING, found.message)


def _by_pods(job: TrainJob, pods: list[Pod]) -> Standing | None:
    names = {step.pod.metadata.uid: step.name for step in steps_of(pods, Plan.guessed(job, pods))}
    newest = list(newest_pods(pods).values())
    for pod in newest:
        if (trouble := trouble_of(pod)) is not None:
            who = names.get(pod.metadata.uid, pod.metadata.name)
            return Standing(trouble.word, f"{who}: {trouble.message}" if trouble.message else who, is_trouble=True)
    homeless = [found for found in map(homelessness, newest) if found is not None]
    if not homeless:
        return None
    told = next((one for one in homeless if one.message), homeless[0])
    return Standing(PENDING, told.message, waits_for_room=told.word == UNSCHEDULABLE)


def _is_running(job: TrainJob) -> bool:
    nodes = [one for one in job.status.jobs_status if one.name in (NODE, LAUNCHER)]
    return bool(nodes) and all(one.ready or one.succeeded for one in nodes)


def _has_begun(job: TrainJob) -> bool:
    return any(one.active or one.ready or one.succeeded for one in job.status.jobs_status)


def _told(ended: TerminatedState) -> str:
    why = f" ({ended.reason})" if ended.reason not in ("", ERROR) else ""
    last_words = ended.message.strip().splitlines()[-1:]
    return ": ".join([f"exit code {ended.exit_code}{why}", *last_words])
