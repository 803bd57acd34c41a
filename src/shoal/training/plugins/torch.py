"""Torch: nodes find each other through torchrun, which reads where they are from variables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from shoal.api.trainer import EnvInjection, TrainJob, names
from shoal.training.framework import Container, Info, Plugin, PodSet, Unbuildable
from shoal.training.framework.resources import cpus, effective_resources, gpus
from shoal.training.plugins import torchtune
from shoal.training.plugins.variables import TRAINER_PORT, index_variable, variable

AUTO: Final = "auto"
"""torchrun counts the GPUs itself."""


class Torch(Plugin):
    """For runtimes with the policy torch."""

    name = "Torch"

    def enforce_ml_policy(self, info: Info, train_job: TrainJob) -> Info:
        """The number of nodes, and where they find each other.

        A TrainJob that says nothing of its trainer gets none of that, but for containers that the runtime names.
        """
        policy, trainer = info.policy.torch, train_job.spec.trainer
        if policy is None:
            return info
        info = info.with_nodes(trainer.num_nodes if trainer else None)
        nodes = info.trainer_set
        if nodes is None:
            return info
        processes = processes_per_node(info, train_job)
        whole = torch_variables(info.meeting_point(train_job.metadata.name), nodes.count, processes)
        if trainer is not None:
            is_tuned = torchtune.is_asked_for(trainer)
            # torchtune is told where the nodes meet by its own arguments.
            told = [one for one in whole if not is_tuned or one["name"] not in torchtune.SAID_BY_ARGUMENTS]
            info = info.with_trainer_set(
                lambda one: one.with_container(
                    names.NODE, lambda node: node.with_env([*trainer.env, *told]).with_ports([TRAINER_PORT])
                )
            )
            if is_tuned:
                devices = gpus(effective_resources(train_job, info.spec))
                command = torchtune.command(info, train_job, nodes=nodes.count, processes=processes, devices=devices)
                info = replace(info, trainer=replace(info.trainer, command=command))
        return _injected(info, policy.env_injection, whole)


def processes_per_node(info: Info, train_job: TrainJob) -> int | str:
    """How many processes run on each node: as said, else as many as GPUs, or as processors where there are none."""
    trainer = train_job.spec.trainer
    if trainer is not None and trainer.num_proc_per_node is not None:
        return trainer.num_proc_per_node
    resources = effective_resources(train_job, info.spec)
    return AUTO if gpus(resources) else max(1, cpus(resources))


def torch_variables(meeting_point: str, nodes: int, processes: int | str) -> list[dict[str, Any]]:
    """Everything that torchrun wants to know, in order."""
    return [
        variable(names.PET_NNODES, nodes),
        variable(names.PET_NPROC_PER_NODE, processes),
        index_variable(names.PET_NODE_RANK),
        variable(names.PET_MASTER_ADDR, meeting_point),
        variable(names.PET_MASTER_PORT, names.TRAINER_PORT),
    ]


def _injected(info: Info, injection: EnvInjection | None, told: Iterable[dict[str, Any]]) -> Info:
    """Tells further containers, which the runtime names, the same."""
    for target in injection.targets if injection else ():
        pods = info.pod_set(target.job_name)
        if pods is None:
            raise Unbuildable(
                f"envInjection names the replicated job {target.job_name!r}, which runtime {info.runtime!r} does not "
                "have: correct mlPolicy.torch.envInjection"
            )
        for name in target.container_names:
            pods = _told(pods, name, told, info.runtime)
        changed = pods
        info = info.with_pod_set(target.job_name, lambda _, changed=changed: changed)  # type: ignore[misc]
    return info


def _told(pods: PodSet, name: str, told: Iterable[dict[str, Any]], runtime: str) -> PodSet:
    def tell(container: Container) -> Container:
        return container.with_env(told)

    if pods.container(name) is not None:
        return pods.with_container(name, tell)
    if any(one.name == name for one in pods.init_containers):
        return pods.with_init_container(name, tell)
    raise Unbuildable(
        f"envInjection names the container {name!r}, which replicated job {pods.name!r} of runtime {runtime!r} does "
        "not have: correct mlPolicy.torch.envInjection"
    )
