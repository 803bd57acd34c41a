"""JAX: processes find each other through the first of them."""

from __future__ import annotations

from shoal.api.trainer import TrainJob, names
from shoal.training.framework import Info, Plugin
from shoal.training.plugins.variables import TRAINER_PORT, index_variable, variable


class JAX(Plugin):
    """For runtimes with the policy jax."""

    name = "JAX"

    def enforce_ml_policy(self, info: Info, train_job: TrainJob) -> Info:
        """The number of nodes, and where they find each other."""
        trainer = train_job.spec.trainer
        if info.policy.jax is None or trainer is None:
            return info
        info = info.with_nodes(trainer.num_nodes)
        nodes = info.trainer_set
        if nodes is None:
            return info
        coordinator = f"{info.meeting_point(train_job.metadata.name)}:{names.TRAINER_PORT}"
        told = [
            variable(names.JAX_NUM_PROCESSES, nodes.count),
            index_variable(names.JAX_PROCESS_ID),
            variable(names.JAX_COORDINATOR_ADDRESS, coordinator),
        ]
        return info.with_trainer_set(
            lambda one: one.with_container(names.NODE, lambda node: node.with_env(told).with_ports([TRAINER_PORT]))
        )
