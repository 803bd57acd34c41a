"""torchtune: which recipe, which configuration, and what of the runtime's command stays."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.training.framework import Unbuildable
from shoal.training.plugins.torchtune import model_of, recipe_and_suffix
from tests.training.builders import (
    INDEX,
    a_container,
    a_runtime,
    a_train_job,
    a_trainer,
    container_of,
    env_of,
    job_set_of,
)

FULL: list[str] = []
LORA = ["model.lora_attn_modules=[q_proj]"]
QLORA = [*LORA, "model.quantize_base=True"]
DORA = [*LORA, "model.quantize_base=true", "model.use_dora=TRUE"]
SINGLE = {"nodes": 1, "processes": 1, "devices": 0}
ONE_GPU = {"nodes": 1, "processes": "auto", "devices": 1}
ONE_NODE = {"nodes": 1, "processes": "auto", "devices": 2}
SPREAD = {"nodes": 2, "processes": "auto", "devices": 2}

RECIPES: list[tuple[list[str], dict[str, Any], str, str]] = [
    (QLORA, SINGLE, "lora_finetune_single_device", "_qlora_single_device"),
    (LORA, SINGLE, "lora_finetune_single_device", "_lora_single_device"),
    (FULL, SINGLE, "full_finetune_single_device", "_full_single_device"),
    (FULL, ONE_GPU, "full_finetune_single_device", "_full_single_device"),
    (QLORA, ONE_NODE, "lora_finetune_distributed", "_qlora"),
    (LORA, ONE_NODE, "lora_finetune_distributed", "_lora"),
    (DORA, ONE_NODE, "lora_finetune_distributed", "_lora"),
    (FULL, ONE_NODE, "full_finetune_distributed", "_full"),
    (FULL, SPREAD, "full_finetune_distributed", "_full_multinode"),
    (FULL, {"nodes": 2, "processes": 1, "devices": 1}, "full_finetune_distributed", "_full_multinode"),
]
MODELS = {
    "torchtune-llama3.2-1b": "llama3_2/1B",
    "torchtune-llama3.2-3b": "llama3_2/3B",
    "torchtune-llama3.3-70b": "llama3_3/70B",
    "torchtune-qwen2.5-1.5b": "qwen2_5/1.5B",
}
RUNTIME_COMMAND = [
    "tune", "run", "--rdzv_endpoint=localhost:29500", "full_finetune_distributed", "--config", "llama3_2/1B_full",
    "dataset=torchtune.datasets.instruct_dataset", "output_dir=/workspace/output",
    "tokenizer.path=/workspace/model/original/tokenizer.model", "checkpointer.checkpoint_dir=/workspace/model",
]  # fmt: skip
ENDPOINT = "--rdzv_endpoint=demo-node-0-0.demo:29500"
KEPT = [
    "output_dir=/workspace/output",
    "tokenizer.path=/workspace/model/original/tokenizer.model",
    "checkpointer.checkpoint_dir=/workspace/model",
]


@pytest.mark.parametrize(("arguments", "shape", "recipe", "suffix"), RECIPES)
def test_the_recipe(arguments: list[str], shape: dict[str, Any], recipe: str, suffix: str) -> None:
    assert recipe_and_suffix(arguments, **shape) == (recipe, suffix)


@pytest.mark.parametrize(("runtime", "model"), MODELS.items())
def test_the_model_is_in_the_runtimes_name(runtime: str, model: str) -> None:
    assert model_of(runtime) == model


def test_a_runtime_whose_name_names_no_model_is_refused() -> None:
    with pytest.raises(Unbuildable, match="does not say which model it tunes"):
        model_of("my-own-torchtune-runtime")


def tuned(gpus: int, **trainer: Any) -> dict[str, Any]:
    limits: dict[str, Any] = {"resources": {"limits": {"nvidia.com/gpu": gpus}}} if gpus else {}
    runtime = a_runtime(a_trainer(a_container(command=RUNTIME_COMMAND, **limits)), ml={"torch": {}})
    job = a_train_job(runtime="torchtune-llama3.2-1b", trainer={"command": ["tune", "run"], **trainer})
    return container_of(job_set_of(job, runtime))


def test_several_gpus_of_one_node() -> None:
    node = tuned(2, args=["batch_size=2"])
    recipe = ["full_finetune_distributed", "--config", "llama3_2/1B_full"]
    assert node["command"] == ["tune", "run", ENDPOINT, *recipe, *KEPT]
    assert node["args"] == ["batch_size=2"]


def test_one_gpu_meets_nobody() -> None:
    recipe = ["full_finetune_single_device", "--config", "llama3_2/1B_full_single_device"]
    assert tuned(1)["command"] == ["tune", "run", *recipe, *KEPT]


def test_several_nodes() -> None:
    recipe = ["full_finetune_distributed", "--config", "llama3_2/1B_full_multinode"]
    assert tuned(1, numNodes=2)["command"] == ["tune", "run", ENDPOINT, *recipe, *KEPT]


def test_several_processes_without_gpus() -> None:
    assert tuned(0, numProcPerNode=4)["command"][2] == ENDPOINT


def test_where_nodes_meet_is_not_said_twice() -> None:
    assert env_of(tuned(2)) == [("PET_NNODES", "1"), ("PET_NPROC_PER_NODE", "auto"), ("PET_NODE_RANK", INDEX)]


@pytest.mark.parametrize("command", [["tune"], ["tune", "run", "x"], ["bash"], None])
def test_any_other_command_stays_as_it_is(command: list[str] | None) -> None:
    node = tuned(2, command=command)
    assert node["command"] == (command or RUNTIME_COMMAND)
    assert ("PET_MASTER_PORT", "29500") in env_of(node)
