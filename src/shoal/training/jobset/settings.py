"""How the controller of JobSets runs; every field has the value that suits a cluster."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.api.jobset import names


@dataclass(frozen=True, kw_only=True)
class JobSetSettings:
    """What the operator's configuration decides for JobSets."""

    workers: int = 10
    restarts_single_jobs: bool = False
    """Whether failure policies may restart one Job alone: upstream's gate RestartJob."""
    restarts_in_place: bool = False
    """Whether pods may be restarted where they are: upstream's gate InPlaceRestart."""
    selector: str = names.JOB_SET_NAME
    """Restricts the Jobs and pods that are watched; a process that keeps them all anyway leaves it empty."""
