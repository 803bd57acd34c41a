"""Pods that become ready by themselves, where a test has no nodes to run them on."""

from __future__ import annotations

from shoal.api.core import PODS, is_active, is_ready
from shoal.api.meta import format_time, now
from shoal.kube import Controller, Key, Manager, NotFound


def add_ready_pods(manager: Manager, *, image: str = "") -> None:
    """Makes every pod, or those whose first container has this image, run and say that it can serve."""
    pods = manager.cache.informer(PODS)

    async def reconcile(key: Key) -> None:
        pod = pods.store.get(key)
        if pod is None or is_ready(pod) or not is_active(pod):
            return
        if image and pod.spec.containers[0].image != image:
            return
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(now())}
        status = {"phase": "Running", "conditions": [condition]}
        try:
            await manager.client.merge_patch(PODS, key.name, {"status": status}, key.namespace, subresource="status")
        except NotFound:
            return

    manager.add(Controller("ready-pods", PODS, reconcile))
