"""Counting each ended pod once, whatever happens between two writes.

A pod keeps a finalizer until it is counted. Its uid is first written into the Job's status as *uncounted*; then its
finalizer is removed; then the uid leaves the list and the counter grows, in one write. Whoever takes over in between
finds the uid in the list: with the finalizer still on the pod nothing was counted, without it nothing is lost. The
successes of an Indexed Job need no list, since an index that is in the set of completed ones is not counted again.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import msgspec

from shoal.api.batch import (
    SUCCESS_CRITERIA_MET,
    Job,
    JobCondition,
    JobStatus,
    UncountedPods,
    with_condition,
)
from shoal.api.core import SUCCEEDED, Pod
from shoal.cluster.controllers.jobs.failure_policy import verdict_on
from shoal.cluster.controllers.jobs.observed import Observed, completion_index, is_failed, is_indexed, is_tracked

AT_ONCE = 500
"""So many uids a status holds at most."""
RELEASED_AT_ONCE = 1000
"""So many finalizers are removed between two writes of a status, also where nothing is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoning:
    """What to write before finalizers are removed, and from which pods they then are."""

    status: JobStatus
    release: Sequence[Pod]
    is_cut: bool = False
    """Whether there are more than could be taken this time."""


def reckon(job: Job, seen: Observed, ending: JobCondition | None) -> Reckoning:
    """Takes down the pods that have ended; of a Job that ends, all of them."""
    status = counted(job.status, tracked_uids(seen))
    known = status.uncounted_terminated_pods or UncountedPods()
    recorded, recorded_failed = set(known.succeeded), set(known.failed)
    succeeded, failed = [*known.succeeded], [*known.failed]
    indexes = 0
    release: list[Pod] = []
    is_cut = False
    for pod in _in_order(job, seen):
        if not is_tracked(pod) or not _may_go(pod, job, seen, ending):
            continue
        release.append(pod)
        uid = pod.metadata.uid
        if pod.status.phase == SUCCEEDED and uid not in recorded_failed:
            if is_indexed(job.spec):
                index = completion_index(pod)
                indexes += index is not None and index not in seen.counted_indexes
            elif uid not in recorded:
                succeeded.append(uid)
        elif uid not in recorded_failed and _is_loss(pod, job, ending):
            failed.append(uid)
        if indexes + len(succeeded) + len(failed) >= AT_ONCE or len(release) >= RELEASED_AT_ONCE:
            is_cut = True
            break
    status = msgspec.structs.replace(
        status, uncounted_terminated_pods=UncountedPods(succeeded=succeeded, failed=failed)
    )
    if is_indexed(job.spec):
        status = msgspec.structs.replace(
            status,
            succeeded=len(seen.succeeded_indexes),
            completed_indexes=str(seen.succeeded_indexes),
            failed_indexes=None if seen.failed_indexes is None else str(seen.failed_indexes),
        )
    if ending is not None:
        status = with_condition(status, ending)
    return Reckoning(status=status, release=release, is_cut=is_cut)


def tracked_uids(seen: Observed) -> set[str]:
    """The pods that still have their finalizer."""
    return {pod.metadata.uid for pod in seen.pods if is_tracked(pod)}


def counted(status: JobStatus, tracked: Set[str]) -> JobStatus:
    """The status with those pods in its counters whose finalizers are gone."""
    known = status.uncounted_terminated_pods
    if known is None:
        return msgspec.structs.replace(status, uncounted_terminated_pods=UncountedPods())
    succeeded = [uid for uid in known.succeeded if uid in tracked]
    failed = [uid for uid in known.failed if uid in tracked]
    return msgspec.structs.replace(
        status,
        uncounted_terminated_pods=UncountedPods(succeeded=succeeded, failed=failed),
        succeeded=status.succeeded + len(known.succeeded) - len(succeeded),
        failed=status.failed + len(known.failed) - len(failed),
    )


def may_end(status: JobStatus) -> bool:
    """Whether every pod is gone and counted."""
    known = status.uncounted_terminated_pods or UncountedPods()
    return not known.succeeded and not known.failed and not status.terminating


def _in_order(job: Job, seen: Observed) -> Sequence[Pod]:
    """Pods by their index, so that completed indexes enter the status in order and it stays short."""
    if not is_indexed(job.spec):
        return seen.pods
    return sorted(seen.pods, key=lambda pod: -1 if (index := completion_index(pod)) is None else index)


def _may_go(pod: Pod, job: Job, seen: Observed, ending: JobCondition | None) -> bool:
    """Whether nothing needs the pod any more; a failed one may be kept until its replacement has taken on its count."""
    if job.metadata.is_deleting or ending is not None or pod.status.phase == SUCCEEDED:
        return True
    if not is_failed(pod, job.spec):
        return False
    index = completion_index(pod)
    kept = (seen.replaceable or {}).get(index) if index is not None else None
    return kept is None or kept.metadata.uid != pod.metadata.uid


def _is_loss(pod: Pod, job: Job, ending: JobCondition | None) -> bool:
    """Whether the pod is counted as failed: it did, or runs while its Job fails."""
    is_failing = ending is not None and ending.type != SUCCESS_CRITERIA_MET
    if not is_failed(pod, job.spec) and not is_failing:
        return False
    if is_indexed(job.spec):
        index = completion_index(pod)
        if index is None or index >= (job.spec.completions or 0):
            return False
    return verdict_on(pod, job.spec.pod_failure_policy).counts
