"""Deletes pods that went astray: followers that do not select the domain that their leader is in by now.

That happens when a leader is replaced and lands elsewhere. Deleted followers are made again by their Job, and admission
sends them after the new leader.
"""

from __future__ import annotations

from shoal.api.core import NODES, PODS, Node, Pod, pod_condition
from shoal.api.jobset import JOB_SETS, names, reasons
from shoal.api.meta import format_time, now
from shoal.kube import Controller, Informer, Key, Manager, NotFound, Requeue, Watch, by_label
from shoal.kube.changes import field_changed, itself
from shoal.kube.informer import Change
from shoal.training.jobset.placement import is_astray, is_exclusive, is_leader, place_of
from shoal.training.jobset.settings import JobSetSettings
from shoal.training.jobset.upstream import Upstream

BY_JOB = "jobset job key"
LOOK_AGAIN = 15.0
"""Seconds after which to look again at what nothing may tell us of: a node that is not there yet."""


def add_placement(manager: Manager, settings: JobSetSettings) -> None:
    """Adds the controller of exclusively placed pods; its keys are those of leaders, whatever JobSets do."""
    placement = Placement(manager, settings)
    moved = field_changed(lambda pod: (pod.spec.node_name, pod.metadata.is_deleting))

    def matters(change: Change[Pod]) -> bool:
        found = change.latest
        return is_exclusive(found.metadata.annotations) and is_leader(found.metadata.annotations) and moved(change)

    pods = Watch(resource=PODS, keys=itself, when=matters, label_selector=settings.selector)
    manager.add(
        Controller(
            "jobset-placement",
            JOB_SETS,
            placement.reconcile,
            when=lambda change: False,
            watches=[pods],
            workers=settings.workers,
        )
    )


class Placement:
    """Keeps the followers of a leader where it is."""

    def __init__(self, manager: Manager, settings: JobSetSettings) -> None:
        self._pods: Informer[Pod] = manager.cache.informer(
            PODS, label_selector=settings.selector, indexes={BY_JOB: by_label(names.JOB_KEY)}
        )
        self._nodes: Informer[Node] = manager.cache.informer(NODES)
        self._upstream = Upstream(manager)
        self._client = manager.client
        self._writer = manager.writer("jobset-placement")

    async def reconcile(self, key: Key) -> Requeue | None:
        """Looks at the followers of one leader."""
        leader = self._pods.store.get(key)
        if leader is None or leader.metadata.is_deleting or not leader.spec.node_name or self._upstream.reason():
            return None
        owner, topology = leader.metadata.controller, leader.metadata.annotations[names.EXCLUSIVE_TOPOLOGY]
        place = place_of(leader, topology, self._nodes.get(leader.spec.node_name))
        if owner is None:
            return None
        if place is None or place.domain is None:
            return Requeue(after=LOOK_AGAIN)
        for pod in self._pods.find(BY_JOB, (key.namespace, leader.metadata.labels.get(names.JOB_KEY, ""))):
            mine = pod.metadata.controller
            if mine is None or mine.uid != owner.uid or is_leader(pod.metadata.annotations):
                continue
            if is_astray(pod, topology, place.domain):
                await self._send_away(pod)
        return None

    async def _send_away(self, pod: Pod) -> None:
        """Deletes a pod, and says why in a condition: by that a Job's failure policy knows not to count it."""
        if pod.metadata.is_deleting:
            return
        known = pod_condition(pod, "DisruptionTarget")
        if known is None or known.status != "True":
            condition = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": reasons.PLACEMENT_VIOLATION,
                "message": reasons.PLACEMENT_VIOLATION_MESSAGE,
                "lastTransitionTime": format_time(now()),
            }
            patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
            try:
                await self._client.strategic_patch(
                    PODS,
                    pod.metadata.name,
                    patch,
                    pod.metadata.namespace,
                    subresource="status",
                    field_manager=self._writer.manager,
                )
            except NotFound:
                return
        await self._writer.delete(PODS, pod)
