"""Jobs: pods that run to their end, each counted once. What to do is decided by pure modules (``observed``, ``ending``,
``plan``, ``tracking``); ``controller`` does it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from shoal.api.batch import CONTROLLER_UID, JOBS, Job
from shoal.api.core import FAILED, PODS, Pod, is_ready
from shoal.cluster.controllers.claims import selector_of_spec
from shoal.cluster.controllers.jobs.controller import JobController
from shoal.cluster.controllers.jobs.observed import is_tracked
from shoal.cluster.controllers.jobs.release import OrphanController, has_left_pods, may_be_orphaned
from shoal.kube import Controller, Informer, Key, Manager, Watch
from shoal.kube.backoff import Backoff
from shoal.kube.changes import Mapping, controlling_owner, field_changed
from shoal.kube.queue import RetryLimits
from shoal.kube.store import key_of

__all__ = ["add_jobs"]

BY_SELECTION = "jobs.selection"
RETRIES = RetryLimits(backoff=Backoff(initial=0.1, cap=60.0), rate=100.0, burst=1000)


def add_jobs(manager: Manager, *, workers: int = 5) -> None:
    """Adds the Job controller, and the one that lets orphaned pods go."""
    controller, orphans = JobController(manager), OrphanController(manager)
    jobs = manager.cache.informer(JOBS, indexes={BY_SELECTION: by_selection})
    pods = Watch(resource=PODS, keys=_jobs_of(jobs), when=field_changed(_matters))
    manager.add(Controller("jobs", JOBS, controller.reconcile, watches=[pods], workers=workers, retries=RETRIES))
    left = Watch(resource=JOBS, keys=orphans.pods_of, when=has_left_pods)
    manager.add(
        Controller("job-orphans", PODS, orphans.reconcile, when=may_be_orphaned, watches=[left], workers=workers)
    )


def by_selection(job: Job) -> Iterable[Hashable]:
    """Finds Jobs by the uid that their pods are labelled with; those with a selector of their own by namespace."""
    return (("manual", job.metadata.namespace),) if job.spec.manual_selector else (job.metadata.uid,)


def _jobs_of(jobs: Informer[Job]) -> Mapping:
    """Whose reconcile a pod's change asks for: its controller's, or, where it has none, that of all who select it."""
    controlled = controlling_owner(JOBS)

    def keys(pod: Pod) -> Iterable[Key]:
        if pod.metadata.controller is not None:
            return controlled(pod)
        labels = pod.metadata.labels
        if not labels:
            return ()
        found = jobs.find(BY_SELECTION, labels.get(CONTROLLER_UID, ""))
        own = jobs.find(BY_SELECTION, ("manual", pod.metadata.namespace))
        return [key_of(job) for job in [*found, *own] if selector_of_spec(job).matches(labels)]

    return keys


def _matters(pod: Pod) -> Any:
    """What of a pod its Job looks at; where a pod has failed, how is a matter too."""
    status = pod.status
    return (
        status.phase,
        is_ready(pod),
        pod.metadata.is_deleting,
        is_tracked(pod),
        pod.metadata.labels,
        pod.metadata.owner_references,
        [each.restart_count for each in [*status.container_statuses, *status.init_container_statuses]],
        status if status.phase == FAILED else None,
    )
