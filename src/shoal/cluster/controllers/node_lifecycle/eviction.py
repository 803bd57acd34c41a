"""Deletes the pods of a node that do not tolerate its ``NoExecute`` taints, at once or when their patience ends.

How long a pod has waited is known to this process alone: after a restart its time begins anew, as in Kubernetes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from shoal.api.core import NODES, PODS, Node, Pod, Taint, Toleration
from shoal.api.meta import now
from shoal.cluster.controllers.node_lifecycle.taints import driving_away
from shoal.cluster.controllers.pod_conditions import disruption_target, status_patch
from shoal.cluster.indexes import BY_NODE, all_pods
from shoal.cluster.placement import tolerates
from shoal.kube import About, Change, Controller, Key, Manager, NotFound, Requeue, Watch
from shoal.kube.store import key_of

FIELD_MANAGER = "taint-eviction-controller"


def patience(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> float | None:
    """Seconds for which a pod stays beside these taints; None means for good.

    Of several tolerations for one taint the first counts, and of several taints the one that is tolerated least.
    """
    limits: list[int] = []
    for taint in taints:
        toleration = next((each for each in tolerations if tolerates((each,), taint)), None)
        if toleration is None:
            return 0.0
        if toleration.toleration_seconds is not None:
            limits.append(max(0, toleration.toleration_seconds))
    return float(min(limits)) if limits else None


@dataclass(frozen=True)
class _Plan:
    uid: str
    at: float


class TaintEviction:
    """Plans and carries out the evictions."""

    def __init__(self, manager: Manager, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = manager.client
        self._events = manager.events
        self._writer = manager.writer(FIELD_MANAGER)
        self._clock = clock
        self._nodes = manager.cache.informer(NODES)
        self._pods = all_pods(manager)
        self._plans: dict[Key, _Plan] = {}
        manager.add(
            Controller(
                "taint-eviction",
                PODS,
                self.reconcile,
                when=self._concerns_us,
                watches=[Watch(resource=NODES, keys=self._pods_on, when=_taints_changed)],
            )
        )

    async def reconcile(self, key: Key) -> Requeue | None:
        """Evicts one pod, or plans to, or drops the plan."""
        pod = self._pods.store.get(key)
        plan = self._plans.get(key)
        if plan is not None and (pod is None or pod.metadata.uid != plan.uid):
            self._drop_plan(key)
            plan = None
        if pod is None:
            return None
        node = self._nodes.get(pod.spec.node_name) if pod.spec.node_name else None
        if node is not None:
            stays = patience(pod.spec.tolerations, driving_away(node.spec.taints))
            if stays is None:
                self._drop_plan(key)
                return None
            if stays > 0:
                # A plan stands until nothing calls for it any more: a further taint does not bring it forward.
                plan = plan or self._plans.setdefault(key, _Plan(pod.metadata.uid, self._clock() + stays))
            else:
                self._drop_plan(key)
                await self._evict(pod)
                return None
        if plan is None:
            return None
        if (left := plan.at - self._clock()) > 0:
            return Requeue(after=left)
        await self._evict(pod)
        self._plans.pop(key, None)
        return None

    async def _evict(self, pod: Pod) -> None:
        condition = disruption_target(
            pod, reason="DeletionByTaintManager", message="Taint manager: deleting due to NoExecute taint", now=now()
        )
        if condition is None and pod.metadata.is_deleting:
            return
        name, namespace = pod.metadata.name, pod.metadata.namespace
        message = f"Marking for deletion Pod {namespace}/{name}"
        self._events.normal(About.of(PODS, pod), "TaintManagerEviction", message)
        if condition is not None:
            try:
                await self._client.strategic_patch(
                    PODS, name, status_patch(pod, condition), namespace, subresource="status",
                    field_manager=FIELD_MANAGER,
                )  # fmt: skip
            except NotFound:
                return
        await self._writer.delete(PODS, pod, propagation=None)

    def _drop_plan(self, key: Key) -> None:
        plan = self._plans.pop(key, None)
        if plan is not None:
            about = About(api_version="v1", kind="Pod", namespace=key.namespace, name=key.name, uid=plan.uid)
            self._events.normal(about, "TaintManagerEviction", f"Cancelling deletion of Pod {key.namespace}/{key.name}")

    def _concerns_us(self, change: Change[Pod]) -> bool:
        pod = change.latest
        if change.before is not None and change.after is not None:
            before = change.before.spec
            if (before.node_name, before.tolerations) == (pod.spec.node_name, pod.spec.tolerations):
                return False
        node = self._nodes.get(pod.spec.node_name) if pod.spec.node_name else None
        return key_of(pod) in self._plans or (node is not None and bool(driving_away(node.spec.taints)))

    def _pods_on(self, node: Node) -> list[Key]:
        return [key_of(pod) for pod in self._pods.find(BY_NODE, node.metadata.name)]


def _taints_changed(change: Change[Node]) -> bool:
    """The taints that pods must tolerate to stay differ. What was planned on a node that is gone is still done."""
    before, after = (
        driving_away(node.spec.taints) if node is not None else [] for node in (change.before, change.after)
    )
    return change.after is not None and before != after
