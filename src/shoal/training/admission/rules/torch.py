"""What a TrainJob may ask of a torch runtime, and of torchtune."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shoal.api.trainer import Trainer, TrainingRuntimeSpec, TrainJob, names
from shoal.kube.admission import FieldProblem, invalid
from shoal.training.admission.rules.places import (
    ARGUMENTS,
    NODES,
    PROCESSES,
    RESOURCES,
    RUNTIME_NAME,
    container_names,
    pod_specs,
    reserved_variables,
    unfit_runtime,
)
from shoal.training.framework.resources import effective_resources, gpus
from shoal.training.plugins import torchtune

_QUANTISED: Final = "_qlora"


def torch_problems(train_job: TrainJob, runtime: TrainingRuntimeSpec) -> Iterator[FieldProblem]:
    """What torchrun reads is for the runtime to say; torchtune has rules of its own."""
    if runtime.ml_policy is None or runtime.ml_policy.torch is None:
        return
    yield from _injection_problems(train_job, runtime)
    yield from reserved_variables(train_job, names.TORCH_ENVIRONMENT)
    trainer = train_job.spec.trainer
    if trainer is not None and torchtune.is_asked_for(trainer):
        yield from _torchtune_problems(train_job, trainer, runtime)


def _injection_problems(train_job: TrainJob, runtime: TrainingRuntimeSpec) -> Iterator[FieldProblem]:
    assert runtime.ml_policy is not None
    torch = runtime.ml_policy.torch
    pods = pod_specs(runtime)
    for target in torch.env_injection.targets if torch is not None and torch.env_injection is not None else ():
        known = container_names(pods.get(target.job_name, {}))
        for container in target.container_names:
            if container not in known:
                yield unfit_runtime(
                    train_job,
                    f'envInjection target podSet "{target.job_name}" container "{container}" '
                    "not found in runtime template",
                )


def _torchtune_problems(train_job: TrainJob, trainer: Trainer, runtime: TrainingRuntimeSpec) -> Iterator[FieldProblem]:
    name, arguments = train_job.spec.runtime_ref.name, trainer.args or []
    model = _model(name)
    nodes = 1 if trainer.num_nodes is None else trainer.num_nodes
    processes = "auto" if trainer.num_proc_per_node is None else trainer.num_proc_per_node
    if model not in names.TORCHTUNE_MODELS:
        yield invalid(RUNTIME_NAME, name, f"must have a supported pretrained model, invalid model configured: {model}")
    if nodes > 1 and model != names.LLAMA3_3_70B:
        yield invalid(NODES, nodes, f"must be 1 for {model} model")
    devices = gpus(effective_resources(train_job, runtime.template.spec))
    _, suffix = torchtune.recipe_and_suffix(arguments, nodes=nodes, processes=processes, devices=devices)
    if suffix.startswith(_QUANTISED) and model == names.QWEN2_5_1_5B:
        yield invalid(RUNTIME_NAME, name, f"QLoRA is not supported for {model} model")
    if suffix == _QUANTISED and model in (names.LLAMA3_2_1B, names.LLAMA3_2_3B):
        yield invalid(PROCESSES, processes, f"must be auto or 1 for {model} model when using QLoRA")
        yield invalid(
            RESOURCES,
            trainer.resources_per_node,
            f"must have gpu resource with value 1 for {model} model when using QLoRA",
        )
    if nodes > 1 and (torchtune.uses_lora(arguments) or torchtune.uses_qlora(arguments)):
        yield invalid(NODES, nodes, "LoRA fine-tuning is not supported for multi-node training in TorchTune")
    for index, argument in enumerate(arguments):
        config = argument.partition("=")[0]
        if config in names.TORCHTUNE_FIXED_CONFIGS:
            yield invalid(
                f"{ARGUMENTS}[{index}]",
                argument,
                f'must not set immutable config "{config}" in trainer args; it is managed by the runtime',
            )


def _model(runtime: str) -> str:
    """The model that a runtime tunes, by its name; empty where the name does not say it."""
    return torchtune.model_of(runtime) if runtime.count("-") == 2 else ""
