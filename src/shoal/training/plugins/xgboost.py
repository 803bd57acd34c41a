"""XGBoost: workers find each other through a tracker on the first node. Nodes are counted by PlainML."""

from __future__ import annotations

from shoal.api.trainer import TrainJob, names
from shoal.training.framework import Info, Plugin
from shoal.training.framework.resources import effective_resources, gpus
from shoal.training.plugins.variables import TRAINER_PORT, index_variable, variable


class XGBoost(Plugin):
    """For runtimes with the policy xgboost: a worker for each GPU, or one on each node."""

    name = "XGBoost"

    def enforce_ml_policy(self, info: Info, train_job: TrainJob) -> Info:
        """The number of nodes, and where they find the tracker."""
        trainer = train_job.spec.trainer
        if info.policy.xgboost is None or trainer is None:
            return info
        info = info.with_nodes(trainer.num_nodes)
        nodes = info.trainer_set
        if nodes is None:
            return info
        workers = nodes.count * (gpus(effective_resources(train_job, info.spec)) or 1)
        told = [
            variable(names.DMLC_TRACKER_URI, info.meeting_point(train_job.metadata.name)),
            variable(names.DMLC_TRACKER_PORT, names.TRAINER_PORT),
            index_variable(names.DMLC_TASK_ID),
            variable(names.DMLC_NUM_WORKER, workers),
        ]
        return info.with_trainer_set(
            lambda one: one.with_container(names.NODE, lambda node: node.with_env(told).with_ports([TRAINER_PORT]))
        )
