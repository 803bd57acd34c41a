"""How the controllers of training run; every field has the value that suits a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from shoal.training.jobset import JobSetSettings
from shoal.training.plugins import StatusServer


@dataclass(frozen=True, kw_only=True)
class Workers:
    """How many objects of each kind are worked on at once."""

    train_jobs: int = 10
    runtimes: int = 1


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """What the operator's configuration decides for the controllers."""

    workers: Workers = field(default_factory=Workers)
    job_sets: JobSetSettings = field(default_factory=JobSetSettings)
    status_server: StatusServer | None = None
    """Where training programs report how far they are; None tells them of no such place."""
