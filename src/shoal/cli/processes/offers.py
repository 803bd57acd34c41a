"""Which webhooks a process offers: those of gangs, of training and of the scheduler, or several on one server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shoal.gangs.admission.webhooks import unregistered as unregistered_of_gangs
from shoal.gangs.everything import add_gang_webhooks
from shoal.gangs.settings import GangSettings
from shoal.kube import Manager
from shoal.kube.admission import ServiceEndpoint, UrlEndpoint, Webhooks
from shoal.scheduler.admission import AdmissionSettings, add_all_webhooks, unregistered
from shoal.scheduler.admission.gpu_sharing import GpuSharingSettings
from shoal.training.everything import add_training_webhooks
from shoal.training.jobset.everything import add_job_set_webhooks
from shoal.training.settings import TrainingSettings


@dataclass(frozen=True, kw_only=True)
class SchedulerAdmission:
    """How strict the scheduler's webhooks are."""

    kinds: AdmissionSettings = AdmissionSettings()
    pods: GpuSharingSettings = GpuSharingSettings()


@dataclass(frozen=True)
class Offer:
    """What is served, what the API server is told of it, and what it is to forget."""

    webhooks: Webhooks
    configurations: list[dict[str, Any]]
    retired: list[tuple[str, str]]


def offered(
    manager: Manager,
    endpoint: ServiceEndpoint | UrlEndpoint,
    *,
    gangs: GangSettings | None,
    scheduler: SchedulerAdmission | None,
    training: TrainingSettings | None,
) -> Offer:
    """The webhooks of those sides that have settings; what the others registered is not touched."""
    webhooks, configurations, retired = Webhooks(), list[dict[str, Any]](), list[tuple[str, str]]()
    if gangs is not None:
        webhooks, configurations = add_gang_webhooks(manager, gangs, endpoint)
        retired += [("ValidatingWebhookConfiguration", name) for name in unregistered_of_gangs(configurations)]
    if scheduler is not None:
        configurations += add_all_webhooks(webhooks, manager, scheduler.kinds, scheduler.pods, endpoint)
        retired += unregistered(configurations)
    if training is not None:
        sides = (
            add_job_set_webhooks(manager, training.job_sets, endpoint),
            add_training_webhooks(manager, endpoint),
        )
        for more, registered in sides:
            webhooks.include(more)
            configurations += registered
    return Offer(webhooks, configurations, retired)
