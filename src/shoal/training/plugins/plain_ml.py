"""PlainML: so many nodes as the TrainJob says, and its variables. Also the ground that XGBoost and Flux stand on."""

from __future__ import annotations

from shoal.api.trainer import TrainJob, names
from shoal.training.framework import Info, Plugin


class PlainML(Plugin):
    """For runtimes whose policy is none of torch, mpi and jax."""

    name = "PlainML"

    def enforce_ml_policy(self, info: Info, train_job: TrainJob) -> Info:
        """The number of nodes, and the TrainJob's variables before those of other plugins."""
        policy, trainer = info.policy, train_job.spec.trainer
        if policy.torch or policy.mpi or policy.jax or trainer is None:
            return info
        return info.with_nodes(trainer.num_nodes).with_trainer_set(
            lambda nodes: nodes.with_container(names.NODE, lambda node: node.with_env(trainer.env))
        )
