"""torchtune: which recipe fine-tunes a model, by how many devices there are and what the arguments ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from shoal.api.trainer import Trainer, TrainJob, names
from shoal.training.framework import Info, Unbuildable

SAID_BY_ARGUMENTS: Final = (names.PET_MASTER_ADDR, names.PET_MASTER_PORT)
"""Variables that would say again where nodes meet."""

_FULL_SINGLE: Final = "full_finetune_single_device"
_FULL: Final = "full_finetune_distributed"
_LORA_SINGLE: Final = "lora_finetune_single_device"
_LORA: Final = "lora_finetune_distributed"


def is_asked_for(trainer: Trainer) -> bool:
    """Whether a TrainJob's trainer is torchtune: its command is exactly ``tune run``."""
    return tuple(trainer.command or ()) == names.TORCHTUNE_COMMAND


def command(info: Info, train_job: TrainJob, *, nodes: int, processes: int | str, devices: int) -> tuple[str, ...]:
    """The whole command; the TrainJob's arguments come after it."""
    arguments = (train_job.spec.trainer.args if train_job.spec.trainer else None) or ()
    recipe, suffix = recipe_and_suffix(arguments, nodes=nodes, processes=processes, devices=devices)
    endpoint = f"--rdzv_endpoint={info.meeting_point(train_job.metadata.name)}:{names.TRAINER_PORT}"
    is_spread = nodes > 1 or (processes > 1 if isinstance(processes, int) else devices > 1)
    return (
        *names.TORCHTUNE_COMMAND,
        *([endpoint] if is_spread else []),
        recipe,
        "--config",
        f"{model_of(info.runtime)}{suffix}",
        *_fixed_configs(info),
    )


def recipe_and_suffix(arguments: Sequence[str], *, nodes: int, processes: int | str, devices: int) -> tuple[str, str]:
    """The recipe, and what is added to the model for the name of its configuration."""
    if nodes > 1:
        return _FULL, "_full_multinode"
    is_single = nodes == 1 and (processes == 1 or devices == 1)
    if uses_qlora(arguments):
        return (_LORA_SINGLE, "_qlora_single_device") if is_single else (_LORA, "_qlora")
    if uses_lora(arguments):
        return (_LORA_SINGLE, "_lora_single_device") if is_single else (_LORA, "_lora")
    return (_FULL_SINGLE, "_full_single_device") if is_single else (_FULL, "_full")


def model_of(runtime: str) -> str:
    """The model that a runtime tunes, by its name: ``torchtune-llama3.2-1b`` tunes ``llama3_2/1B``."""
    parts = runtime.split("-")
    if len(parts) != 3:
        raise Unbuildable(
            f"runtime {runtime!r} does not say which model it tunes: name it torchtune-<family>-<size>, such as "
            "torchtune-llama3.2-1b"
        )
    return f"{parts[1].replace('.', '_')}/{parts[2].upper()}"


def uses_lora(arguments: Iterable[str]) -> bool:
    """Whether low-rank adapters are asked for."""
    return any(names.TORCHTUNE_LORA in argument for argument in arguments)


def uses_qlora(arguments: Sequence[str]) -> bool:
    """Whether adapters over a quantised model are asked for."""
    return _is_on(arguments, names.TORCHTUNE_QUANTIZE) and not _is_on(arguments, names.TORCHTUNE_DORA)


def _is_on(arguments: Iterable[str], config: str) -> bool:
    return any(
        name == config and value.lower() == "true"
        for name, _, value in (argument.partition("=") for argument in arguments)
    )


def _fixed_configs(info: Info) -> list[str]:
    """What the runtime decides: those elements of its own command that a TrainJob may not set."""
    words = info.trainer_container.get("command") or ()
    return [word for word in words if word.partition("=")[0] in names.TORCHTUNE_FIXED_CONFIGS]
