"""All controllers of JobSets in one manager, and the webhooks that check them and their pods."""

from __future__ import annotations

from typing import Any

from shoal.kube import Manager
from shoal.kube.admission import ServiceEndpoint, UrlEndpoint, Webhooks
from shoal.training.jobset.admission import Lookups, job_set_webhooks, webhook_configurations
from shoal.training.jobset.controller import add_job_sets
from shoal.training.jobset.placement_controller import add_placement
from shoal.training.jobset.settings import JobSetSettings


def add_everything(manager: Manager, settings: JobSetSettings) -> None:
    """Adds the controllers of JobSets and of exclusively placed pods; both stand by where upstream's are there."""
    add_job_sets(manager, settings)
    add_placement(manager, settings)


def add_job_set_webhooks(
    manager: Manager, settings: JobSetSettings, endpoint: ServiceEndpoint | UrlEndpoint
) -> tuple[Webhooks, list[dict[str, Any]]]:
    """The webhooks, and the objects by which the API server learns of them."""
    webhooks = job_set_webhooks(Lookups.live(manager.client), settings)
    return webhooks, webhook_configurations(webhooks, endpoint)
