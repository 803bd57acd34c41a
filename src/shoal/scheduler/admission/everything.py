"""All webhooks of the scheduler together: those of its own kinds, and those of pods that share GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from shoal.api.scheduling_run_ai import QUEUES
from shoal.kube import Manager
from shoal.kube.admission import ServiceEndpoint, UrlEndpoint, Webhooks
from shoal.scheduler.admission.gpu_sharing import (
    GpuSharingSettings,
    add_gpu_sharing_webhooks,
    gpu_sharing_configurations,
)
from shoal.scheduler.admission.gpu_sharing.webhooks import MUTATING_NAME
from shoal.scheduler.admission.settings import AdmissionSettings
from shoal.scheduler.admission.webhooks import add_scheduler_webhooks, webhook_configurations

_NOT_ALWAYS: Final = {MUTATING_NAME: "MutatingWebhookConfiguration"}
"""What is registered by some settings only, with its kind."""


def add_all_webhooks(
    webhooks: Webhooks,
    manager: Manager,
    settings: AdmissionSettings,
    sharing: GpuSharingSettings,
    endpoint: ServiceEndpoint | UrlEndpoint,
) -> list[dict[str, Any]]:
    """Adds the webhooks to those that are there; gives the objects by which the API server learns of them."""
    # Where the kind is not there yet nobody waits for it: all that would be missing are warnings.
    known = manager.cache.informer(QUEUES, is_vital=False).items if settings.warns_of_quotas else tuple
    add_scheduler_webhooks(webhooks, settings, known)
    add_gpu_sharing_webhooks(webhooks, sharing)
    return [*webhook_configurations(webhooks, endpoint), *gpu_sharing_configurations(webhooks, endpoint)]


def unregistered(configurations: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Kind and name of what is not registered now, and was by an earlier run with other settings."""
    present = {body["metadata"]["name"] for body in configurations}
    return [(kind, name) for name, kind in _NOT_ALWAYS.items() if name not in present]
