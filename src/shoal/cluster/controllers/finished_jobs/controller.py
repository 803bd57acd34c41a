"""Waits for the time of each finished Job, and deletes it then."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from shoal.api.batch import JOBS, Job, finished_condition
from shoal.api.meta import now
from shoal.cluster.indexes import CHILD_INDEXES
from shoal.kube import Change, Controller, Key, Manager, NotFound, Requeue


def add_finished_jobs(manager: Manager, *, workers: int = 5) -> None:
    """Adds the controller that deletes Jobs whose time is over."""
    reconcile = FinishedJobs(manager).reconcile
    manager.add(Controller("finished-jobs", JOBS, reconcile, when=_has_end, workers=workers))


def expires_at(job: Job) -> datetime | None:
    """When a Job is to go: so long after its end; None where it stays, or goes already."""
    ended, ttl = finished_condition(job), job.spec.ttl_seconds_after_finished
    if ended is None or ended.last_transition_time is None or ttl is None or job.metadata.is_deleting:
        return None
    return ended.last_transition_time + timedelta(seconds=ttl)


class FinishedJobs:
    """Deletes Jobs whose time is over."""

    def __init__(self, manager: Manager) -> None:
        self._jobs = manager.cache.informer(JOBS, indexes=CHILD_INDEXES)
        self._client = manager.client

    async def reconcile(self, key: Key) -> Requeue | None:
        """Deletes one Job, or says when to come back for it."""
        job = self._jobs.store.get(key)
        if job is None or (wait := self._wait(job)) is None:
            return None
        if wait > 0:
            return Requeue(after=wait)
        try:
            # Its time may have been prolonged a moment ago: the server's word is the one that counts.
            live = await self._client.get(JOBS, key.name, key.namespace)
            if (wait := self._wait(live)) is None:
                return None
            if wait > 0:
                return Requeue(after=wait)
            await self._client.delete(JOBS, key.name, key.namespace, uid=live.metadata.uid, propagation="Foreground")
        except NotFound:
            return None
        return None

    def _wait(self, job: Job) -> float | None:
        expires = expires_at(job)
        return None if expires is None else (expires - now()).total_seconds()


def _has_end(change: Change[Any]) -> bool:
    return change.after is not None and expires_at(change.after) is not None
