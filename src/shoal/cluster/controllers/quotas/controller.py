"""Keeps the status of quotas."""

from __future__ import annotations

from functools import partial
from typing import Any

from shoal.api.core import PERSISTENT_VOLUME_CLAIMS, RESOURCE_QUOTAS, SERVICES, ResourceQuota
from shoal.api.meta import now
from shoal.cluster.apiserver.admission.quota_usage import measure_of
from shoal.cluster.controllers.quotas.counting import LOOK_AGAIN, Counting, Unread
from shoal.cluster.controllers.quotas.ledger import Ledger, claim_face, pod_face, service_face
from shoal.cluster.controllers.quotas.status import (
    counted_kinds,
    counted_usage,
    measured_kinds,
    measured_usage,
    quota_status,
)
from shoal.cluster.indexes import BY_NAMESPACE, all_pods
from shoal.cluster.pod_resources import Amounts
from shoal.kube import Controller, Key, Manager, Requeue, by_namespace
from shoal.kube.backoff import Backoff
from shoal.kube.changes import field_changed
from shoal.kube.queue import RetryLimits
from shoal.kube.store import key_of

CHECK_AFTER = 1.0
"""Seconds after which what was written is checked.

An object is charged before it is there. What is summed up in between misses it, and would be believed until the next
object goes.
"""


class QuotaController:
    """Keeps what quotas say is used equal to what their namespaces hold."""

    def __init__(self, manager: Manager, *, resync_every: float) -> None:
        indexes = {BY_NAMESPACE: by_namespace}
        self._quotas = manager.cache.informer(RESOURCE_QUOTAS, indexes=indexes)
        self._writer = manager.writer("resourcequota-controller")
        services = manager.cache.informer(SERVICES, indexes=indexes)
        claims = manager.cache.informer(PERSISTENT_VOLUME_CLAIMS, indexes=indexes)
        self._ledgers: dict[str, Ledger[Any]] = {
            "pods": Ledger(all_pods(manager), pod_face, partial(self._on_change, "pods")),
            "services": Ledger(services, service_face, partial(self._on_change, "services")),
            "persistentvolumeclaims": Ledger(claims, claim_face, partial(self._on_change, "persistentvolumeclaims")),
        }
        self._counting = Counting(manager, self._on_change)
        self.controller = Controller(
            "quotas",
            RESOURCE_QUOTAS,
            self.reconcile,
            when=field_changed(lambda quota: quota.spec),
            resync_every=resync_every,
            # Nothing tells when a kind that could not be read can be.
            retries=RetryLimits(backoff=Backoff(initial=0.005, cap=LOOK_AGAIN)),
        )

    async def reconcile(self, key: Key) -> Requeue | None:
        """Sums up what a quota limits, and writes what differs."""
        quota = self._quotas.store.get(key)
        if quota is None:
            if not self._quotas.items(key.namespace):
                for ledger in self._ledgers.values():
                    ledger.forget(key.namespace)
            return None
        used, unread = await self._counted(quota)
        for kind in measured_kinds(quota):
            used |= measured_usage(quota, kind, self._ledgers[kind].groups(key.namespace), now())
        status = quota_status(quota, used)
        is_written = await self._writer.patch_status(RESOURCE_QUOTAS, quota, before=quota.status, after=status)
        if unread is not None:
            raise unread
        return Requeue(after=CHECK_AFTER) if is_written else None

    async def _counted(self, quota: ResourceQuota) -> tuple[Amounts, Unread | None]:
        """What is used of the kinds that are merely counted, and why that is not known of all of them."""
        used: Amounts = {}
        unread: Unread | None = None
        for kind in counted_kinds(quota):
            try:
                count = await self._counting.count(kind, quota.metadata.namespace)
            except Unread as problem:
                unread = problem
                continue
            if count is not None:
                used |= counted_usage(quota, kind, count)
        return used, unread

    def _on_change(self, kind: str, namespace: str) -> None:
        """Something became free: the quotas that are about it are summed up again."""
        measure = measure_of(kind)
        for quota in self._quotas.items(namespace):
            if measure.names(quota.status.hard):
                self.controller.enqueue(key_of(quota))


def add_quotas(manager: Manager, *, resync_every: float = 300.0) -> None:
    """Adds what keeps the status of quotas; all of them are summed up again every ``resync_every`` seconds."""
    manager.add(QuotaController(manager, resync_every=resync_every).controller)
