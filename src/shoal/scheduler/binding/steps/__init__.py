"""What must be so before a pod is bound, one step after the other; each can be taken back where a later one fails.

A step is called again and again until the pod is bound: it finds what it has done already, and does it once.
"""

from __future__ import annotations

from typing import Protocol

from shoal.kube import Client
from shoal.scheduler.binding.caches import Caches
from shoal.scheduler.binding.orders import Order, Wait
from shoal.scheduler.binding.settings import BindingSettings
from shoal.scheduler.binding.steps.device_claims import DeviceClaims
from shoal.scheduler.binding.steps.sharing import Sharing
from shoal.scheduler.binding.steps.volumes import Volumes


class Step(Protocol):
    """Something that must be so before a pod is bound."""

    async def prepare(self, order: Order) -> Wait | None:
        """Makes it so, or says that it is under way; raises Refused where it cannot be."""

    async def undo(self, order: Order) -> None:
        """Takes back what was made for a pod that is not bound after all."""


def wanted_steps(client: Client, caches: Caches, settings: BindingSettings) -> tuple[Step, ...]:
    """The steps, in their order."""
    return (
        Volumes(client, caches, settings.volume_timeout),
        DeviceClaims(client, caches),
        Sharing(client, caches, settings),
    )
