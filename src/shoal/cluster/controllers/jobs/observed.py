"""What a Job's pods say of it: who runs, who is going, who ended and is not counted yet, and which indexes are done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shoal.api.batch import (
    COMPLETION_INDEX,
    INDEX_FAILURE_COUNT,
    INDEX_IGNORED_FAILURE_COUNT,
    INDEXED,
    TRACKING_FINALIZER,
    Job,
    JobSpec,
    UncountedPods,
)
from shoal.api.core import FAILED, SUCCEEDED, Pod, is_active, is_finished, is_ready
from shoal.cluster.controllers.jobs.backoff import finished_at
from shoal.cluster.controllers.jobs.failure_policy import FAIL_INDEX, verdict_on
from shoal.cluster.controllers.jobs.indexes import Indexes

_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A Job's pods, sorted by what they mean to it."""

    pods: Sequence[Pod]
    active: Sequence[Pod]
    terminating: int
    ready: int
    new_succeeded: Sequence[Pod]
    """Ended well, and in no record yet."""
    new_failed: Sequence[Pod]
    succeeded: int
    """Successes in all, those included that are not in the status yet; of an Indexed Job, indexes."""
    failed: int
    """Failures in all that are held against the Job."""
    counted_indexes: Indexes = Indexes()
    """The indexes that the status knows as succeeded."""
    succeeded_indexes: Indexes = Indexes()
    failed_indexes: Indexes | None = None
    """None where indexes do not fail by themselves."""
    replaceable: Mapping[int, Pod] | None = None
    """For each index whose pod failed and is to be replaced, the last such pod: the next one carries its count on."""


def observe(job: Job, pods: Sequence[Pod]) -> Observed:
    """Sorts a Job's pods."""
    spec, status = job.spec, job.status
    uncounted = status.uncounted_terminated_pods or UncountedPods()
    active = [pod for pod in pods if is_active(pod)]
    in_range = [pod for pod in pods if is_tracked(pod) and _is_in_range(pod, spec)]
    known_good, known_bad = set(uncounted.succeeded), set(uncounted.failed)
    new_succeeded = [pod for pod in in_range if pod.status.phase == SUCCEEDED and pod.metadata.uid not in known_good]
    new_failed = [pod for pod in in_range if is_failed(pod, spec) and pod.metadata.uid not in known_bad]
    against = sum(verdict_on(pod, spec.pod_failure_policy).counts for pod in new_failed)
    succeeded = status.succeeded + len(new_succeeded) + len(uncounted.succeeded)
    counted = done = Indexes()
    failed_indexes: Indexes | None = None
    replaceable: dict[int, Pod] | None = None
    if is_indexed(spec):
        counted = Indexes.parse(status.completed_indexes, below=spec.completions or 0)
        done = counted | Indexes.of(_indexes_of(pod for pod in in_range if pod.status.phase == SUCCEEDED))
        succeeded = len(done)
        if spec.backoff_limit_per_index is not None:
            before = Indexes.parse(status.failed_indexes or "", below=spec.completions or 0)
            failed_indexes = before | Indexes.of(_indexes_of(pod for pod in in_range if _fails_index(pod, spec)))
            settled = set(_indexes_of(active))
            failed = [pod for pod in in_range if is_failed(pod, spec)]
            replaceable = _last_failed(
                pod
                for pod in failed
                if (index := completion_index(pod)) is not None
                and index not in settled
                and index not in done
                and index not in failed_indexes
            )
    return Observed(
        pods=pods,
        active=active,
        terminating=sum(is_terminating(pod) for pod in pods),
        ready=sum(is_ready(pod) for pod in active),
        new_succeeded=new_succeeded,
        new_failed=new_failed,
        succeeded=succeeded,
        failed=status.failed + against + len(uncounted.failed),
        counted_indexes=counted,
        succeeded_indexes=done,
        failed_indexes=failed_indexes,
        replaceable=replaceable,
    )


def is_indexed(spec: JobSpec) -> bool:
    """Whether each completion has a number."""
    return spec.completion_mode == INDEXED


def is_tracked(pod: Pod) -> bool:
    """Whether the pod waits to be counted."""
    return TRACKING_FINALIZER in pod.metadata.finalizers


def is_terminating(pod: Pod) -> bool:
    """Whether the pod is on its way out and may still run."""
    return pod.metadata.is_deleting and not is_finished(pod)


def replaces_only_failed(spec: JobSpec) -> bool:
    """Whether a pod that is on its way out is waited for before it counts as failed and is replaced."""
    return spec.pod_replacement_policy == "Failed" or spec.pod_failure_policy is not None


def is_failed(pod: Pod, spec: JobSpec) -> bool:
    """Whether the pod counts as failed; one that was deleted may never get the chance to say so itself."""
    if pod.status.phase == FAILED:
        return True
    return pod.metadata.is_deleting and pod.status.phase != SUCCEEDED and not replaces_only_failed(spec)


def completion_index(pod: Pod) -> int | None:
    """The index that a pod works on; None where it has none that can be read."""
    number = _number(pod.metadata.annotations.get(COMPLETION_INDEX, ""))
    return number if number is None or number >= 0 else None


def failure_counts(pod: Pod) -> tuple[int, int]:
    """How many pods of its index failed before this one: those that count, and those that were ignored."""
    counts = (
        _number(pod.metadata.annotations.get(name, "")) or 0
        for name in (INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT)
    )
    against, ignored = (count if 0 <= count <= _LARGEST else 0 for count in counts)
    return against, ignored


def _is_in_range(pod: Pod, spec: JobSpec) -> bool:
    if not is_indexed(spec):
        return True
    index = completion_index(pod)
    return index is not None and index < (spec.completions or 0)


def _indexes_of(pods: Iterable[Pod]) -> Iterable[int]:
    return (index for pod in pods if (index := completion_index(pod)) is not None)


def _fails_index(pod: Pod, spec: JobSpec) -> bool:
    if not is_failed(pod, spec):
        return False
    verdict = verdict_on(pod, spec.pod_failure_policy)
    if verdict.action == FAIL_INDEX:
        return True
    return verdict.counts and failure_counts(pod)[0] >= (spec.backoff_limit_per_index or 0)


def _last_failed(pods: Iterable[Pod]) -> dict[int, Pod]:
    last: dict[int, Pod] = {}
    for pod in pods:
        index = completion_index(pod)
        assert index is not None
        known = last.get(index)
        if known is None or (
            sum(failure_counts(known)) <= sum(failure_counts(pod)) and finished_at(known) <= finished_at(pod)
        ):
            last[index] = pod
    return last


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
