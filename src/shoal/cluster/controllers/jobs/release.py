"""Taking the tracking finalizer off a pod: once it is counted, or when nobody is left to count it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.api.batch import JOB_CONTROLLER, JOBS, TRACKING_FINALIZER, Job, finished_condition
from shoal.api.core import PODS, Pod
from shoal.cluster.controllers.jobs.observed import is_tracked
from shoal.cluster.indexes import BY_CONTROLLER, CHILD_INDEXES, all_pods
from shoal.kube import Change, Client, Invalid, Key, Manager, NotFound
from shoal.kube.freshness import note_delete
from shoal.kube.store import key_of


async def release(client: Client, pod: Pod) -> None:
    """Takes the finalizer off the very pod that was seen; one that is gone has none either."""
    metadata = pod.metadata
    change = {"uid": metadata.uid, "$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER]}
    try:
        await client.strategic_patch(PODS, metadata.name, {"metadata": change}, metadata.namespace)
    except NotFound:
        # Until the cache shows that it is gone the pod would look as if it were still to be counted.
        note_delete(PODS, metadata.namespace, metadata.name, metadata.uid)
    except Invalid as error:
        if all(cause.field != "metadata.uid" for cause in error.causes):
            raise
        note_delete(PODS, metadata.namespace, metadata.name, metadata.uid)


class OrphanController:
    """Lets pods go whose Job is gone, has ended, or has given them up: their own Job will not do it any more."""

    def __init__(self, manager: Manager) -> None:
        self._pods = all_pods(manager)
        self._jobs = manager.cache.informer(JOBS, indexes=CHILD_INDEXES)
        self._client = manager.client

    async def reconcile(self, key: Key) -> None:
        """Lets one pod go where nobody is left to count it."""
        pod = self._pods.store.get(key)
        if pod is not None and is_tracked(pod) and self._is_orphaned(pod):
            await release(self._client, pod)

    def pods_of(self, job: Job) -> Iterable[Key]:
        """The pods of a Job that it has not let go."""
        return [key_of(pod) for pod in self._pods.find(BY_CONTROLLER, job.metadata.uid) if is_tracked(pod)]

    def _is_orphaned(self, pod: Pod) -> bool:
        owner = pod.metadata.controller
        if owner is None:
            return True
        if owner.kind != JOBS.kind or owner.api_version != JOBS.api_version:
            return False
        job = self._jobs.get(owner.name, pod.metadata.namespace)
        if job is None or job.metadata.uid != owner.uid:
            return True
        return job.spec.managed_by == JOB_CONTROLLER and finished_condition(job) is not None


def may_be_orphaned(change: Change[Any]) -> bool:
    """Whether a pod is one that its Job may not let go by itself: it has no controller, or is on its way out."""
    pod = change.after
    return pod is not None and is_tracked(pod) and (pod.metadata.controller is None or pod.metadata.is_deleting)


def has_left_pods(change: Change[Any]) -> bool:
    """Whether a Job is gone or has ended."""
    return change.after is None or finished_condition(change.after) is not None
