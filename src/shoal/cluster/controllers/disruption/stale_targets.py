"""Withdraws the announcement of a pod's end where the end did not come within two minutes."""

from __future__ import annotations

from datetime import datetime, timedelta

from shoal.api.core import PODS, Pod, PodCondition, is_finished, pod_condition
from shoal.api.meta import now
from shoal.cluster.controllers.pod_conditions import DISRUPTION_TARGET, status_patch
from shoal.cluster.indexes import all_pods
from shoal.kube import Change, Controller, Key, Manager, NotFound, Requeue

STALE_AFTER = timedelta(minutes=2)
BY_KUBELET = "TerminationByKubelet"


def add_stale_targets(manager: Manager, *, stale_after: timedelta) -> None:
    """Adds the controller that withdraws announcements."""
    targets = StaleTargets(manager, stale_after)
    manager.add(Controller("disruption-stale-pods", PODS, targets.reconcile, when=_concerns, workers=2))


def announced_at(pod: Pod) -> datetime | None:
    """When a pod's end was announced; None where it was not, has come, or is its node's own affair."""
    if pod.metadata.is_deleting or is_finished(pod):
        return None
    condition = pod_condition(pod, DISRUPTION_TARGET)
    if condition is None or condition.status != "True" or condition.reason == BY_KUBELET:
        return None
    return condition.last_transition_time


class StaleTargets:
    """Waits until an announcement is old enough, and takes it back."""

    def __init__(self, manager: Manager, stale_after: timedelta) -> None:
        self._pods = all_pods(manager)
        self._client = manager.client
        self._stale_after = stale_after

    async def reconcile(self, key: Key) -> Requeue | None:
        """Looks at one pod."""
        pod = self._pods.store.get(key)
        since = announced_at(pod) if pod is not None else None
        if pod is None or since is None:
            return None
        moment = now()
        wait = (since + self._stale_after - moment).total_seconds()
        if wait > 0:
            return Requeue(after=wait)
        withdrawn = PodCondition(
            type=DISRUPTION_TARGET,
            status="False",
            observed_generation=pod.metadata.generation,
            last_transition_time=moment,
        )
        # What the announcement said of its grounds goes with it.
        patch = status_patch(pod, withdrawn)
        patch["status"]["conditions"][0] |= {"reason": None, "message": None}
        try:
            await self._client.strategic_patch(PODS, key.name, patch, key.namespace, subresource="status")
        except NotFound:
            return None
        return None


def _concerns(change: Change[Pod]) -> bool:
    return change.after is not None and announced_at(change.after) is not None
