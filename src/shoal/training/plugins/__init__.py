"""The plugins that come with Shoal, one module each, in the order in which they are asked."""

from __future__ import annotations

from shoal.training.framework import Framework, Plugin, third_party
from shoal.training.plugins.coscheduling import CoScheduling
from shoal.training.plugins.flux import Flux
from shoal.training.plugins.jax import JAX
from shoal.training.plugins.jobset import JobSets
from shoal.training.plugins.kai import Kai
from shoal.training.plugins.mpi import MPI
from shoal.training.plugins.plain_ml import PlainML
from shoal.training.plugins.pod_gang import PodGangs
from shoal.training.plugins.torch import Torch
from shoal.training.plugins.train_job_status import StatusServer, TrainJobStatus
from shoal.training.plugins.volcano import Volcano
from shoal.training.plugins.xgboost import XGBoost

__all__ = ["StatusServer", "built_in", "load_framework"]


def built_in(status_server: StatusServer | None = None) -> list[Plugin]:
    """All plugins of Shoal's own. Programs report their progress where there is a server for that."""
    reporting: list[Plugin] = [] if status_server is None else [TrainJobStatus(status_server)]
    policies: list[Plugin] = [PlainML(), Torch(), MPI(), JAX(), XGBoost(), Flux()]
    gangs: list[Plugin] = [CoScheduling(), Volcano(), Kai(), PodGangs()]
    return [*policies, *gangs, *reporting, JobSets()]


def load_framework(status_server: StatusServer | None = None) -> Framework:
    """The framework with our own plugins and those of third parties, which come after ours and before JobSets."""
    own = built_in(status_server)
    return Framework([*own, *third_party([plugin.name for plugin in own])])
