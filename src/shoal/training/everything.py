"""All controllers of training in one manager, and the webhooks that check TrainJobs and runtimes."""

from __future__ import annotations

from typing import Any

from shoal.kube import Manager
from shoal.kube.admission import ServiceEndpoint, UrlEndpoint, Webhooks
from shoal.training.admission import Lookups, training_webhooks, webhook_configurations
from shoal.training.controller import add_train_jobs
from shoal.training.jobset import add_everything as add_job_sets
from shoal.training.plugins import load_framework
from shoal.training.runtime_controllers import add_runtimes
from shoal.training.runtime_kinds import RuntimeKinds
from shoal.training.settings import TrainingSettings


def add_training(manager: Manager, settings: TrainingSettings, kinds: RuntimeKinds | None = None) -> None:
    """Adds the controllers of TrainJobs, of their runtimes, and of JobSets, with all plugins that are installed.

    ``kinds`` are the kinds of runtimes that TrainJobs may name; the two of Trainer where none are given.
    """
    framework = load_framework(settings.status_server)
    add_train_jobs(manager, settings, framework, kinds)
    add_runtimes(manager, settings)
    add_job_sets(manager, settings.job_sets)


def add_training_webhooks(
    manager: Manager, endpoint: ServiceEndpoint | UrlEndpoint
) -> tuple[Webhooks, list[dict[str, Any]]]:
    """The webhooks of TrainJobs and runtimes, and the objects by which the API server learns of them.

    What plugins of third parties refuse is refused too. JobSets have webhooks of their own.
    """
    webhooks = training_webhooks(Lookups.live(manager.client), plugin_problems=load_framework().problems)
    return webhooks, webhook_configurations(webhooks, endpoint)
