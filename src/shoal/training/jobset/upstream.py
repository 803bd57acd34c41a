"""Whether upstream's own JobSet controller looks after JobSets here: then this one stands by.

Upstream is there while its webhooks are registered, which every way to install it does under one name, or while one of
its processes holds the lease of its election, whose name is fixed too. Both are watched, so that this controller stops
when upstream is installed, and takes over when it is gone: the webhooks go with the installation, and the lease says
when the last process has ended. Two never work at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from shoal.api.meta import PartialObject, Resource, now
from shoal.kube import Informer, Manager, Watch
from shoal.kube.changes import Mapping, any_change, field_changed
from shoal.kube.leases import LEASES, Lease

WEBHOOKS: Final = "jobset-mutating-webhook-configuration"
LEASE: Final = "6d4f6a47.jobset.x-k8s.io"

CONFIGURATIONS: Final = Resource(
    type=PartialObject,
    group="admissionregistration.k8s.io",
    version="v1",
    kind="MutatingWebhookConfiguration",
    plural="mutatingwebhookconfigurations",
    namespaced=False,
)


class Upstream:
    """What is seen of upstream's installation."""

    def __init__(self, manager: Manager) -> None:
        cache = manager.cache
        self._webhooks: Informer[PartialObject] = cache.informer(CONFIGURATIONS, field_selector=_named(WEBHOOKS))
        self._leases: Informer[Lease] = cache.informer(LEASES, field_selector=_named(LEASE))

    def watches(self, keys: Mapping) -> list[Watch]:
        """What wakes those that may have to stop or to take over; not each renewal of a lease."""
        holder_changed = field_changed(lambda lease: lease.spec.holder_identity)
        return [
            Watch(resource=CONFIGURATIONS, keys=keys, when=any_change, field_selector=_named(WEBHOOKS)),
            Watch(resource=LEASES, keys=keys, when=holder_changed, field_selector=_named(LEASE)),
        ]

    def reason(self) -> str:
        """Why to stand by; empty where there is no reason to."""
        return reason_to_stand_by(self._webhooks.items(), self._leases.items(), now())


def reason_to_stand_by(webhooks: Iterable[PartialObject], leases: Iterable[Lease], moment: datetime) -> str:
    """Why to stand by; empty where upstream is not there."""
    for found in webhooks:
        if found.metadata.name == WEBHOOKS:
            return f"MutatingWebhookConfiguration {WEBHOOKS} is there: upstream's JobSet controller is installed"
    for lease in leases:
        if lease.metadata.name == LEASE and is_held(lease, moment):
            place = f"{lease.metadata.namespace}/{lease.metadata.name}"
            return f"Lease {place} is held by {lease.spec.holder_identity}: upstream's JobSet controller runs"
    return ""


def is_held(lease: Lease, moment: datetime) -> bool:
    """Whether somebody holds a lease now; one whose time is over has been left by a process that was killed."""
    spec = lease.spec
    if not spec.holder_identity:
        return False
    if spec.renew_time is None:
        return True
    # Clocks differ: what is over has been so for a second time its length.
    return moment < spec.renew_time + timedelta(seconds=2 * (spec.lease_duration_seconds or 15))


def _named(name: str) -> str:
    return f"metadata.name={name}"
