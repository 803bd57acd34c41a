"""The rules for TrainJobs of torch runtimes, and for fine-tuning with torchtune."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.trainer import TrainingRuntimeSpec, TrainJob
from tests.training.admission.verdicts import Case, env, problems, unfit
from tests.training.builders import a_container, a_job, a_runtime, a_train_job

TORCH = a_runtime(ml={"torch": {}})
SIDE = a_job("node", a_container(), a_container("side"), pod={"initContainers": [a_container("first")]})
TUNE = {"command": ["tune", "run"]}
GPUS = {"limits": {"nvidia.com/gpu": 2}}
TUNED = a_runtime(a_job("node", a_container(resources=GPUS), ancestor="trainer"), ml={"torch": {}})
QLORA = ["model.lora_attn_modules=[q_proj]", "model.quantize_base=True"]
LLAMA, BIG, QWEN = "torchtune-llama3.2-1b", "torchtune-llama3.3-70b", "torchtune-qwen2.5-1.5b"


def telling(job: str, *containers: str) -> dict[str, Any]:
    """A policy of torch's that tells containers of a job what torchrun reads."""
    return {"torch": {"envInjection": {"targets": [{"jobName": job, "containerNames": list(containers)}]}}}


TORCH_RULES: dict[str, Case] = {
    "variables of one's own": (a_train_job(trainer=env("A", "PET_OTHER")), TORCH, []),
    "variables that torchrun reads": (
        a_train_job(trainer=env("PET_NODE_RANK", "A", "PET_MASTER_ADDR")),
        TORCH,
        [
            'spec.trainer.env: Invalid value: ["PET_MASTER_ADDR","PET_NODE_RANK"]: must not have reserved envs, '
            "invalid envs configured: [PET_MASTER_ADDR PET_NODE_RANK]"
        ],
    ),
    "the same variables where torchrun is not": (
        a_train_job(trainer=env("PET_NODE_RANK")),
        a_runtime(ml={"jax": {}}),
        [],
    ),
    "containers that are to be told and are not there": (
        a_train_job(),
        a_runtime(ml=telling("node", "side")),
        [unfit('envInjection target podSet "node" container "side" not found in runtime template')],
    ),
    "a job that is to be told and is not there": (
        a_train_job(),
        a_runtime(ml=telling("eval", "a", "b")),
        [
            unfit('envInjection target podSet "eval" container "a" not found in runtime template'),
            unfit('envInjection target podSet "eval" container "b" not found in runtime template'),
        ],
    ),
    "containers that are to be told": (
        a_train_job(),
        a_runtime(SIDE, ml=telling("node", "side", "first")),
        [],
    ),
}

TORCHTUNE: dict[str, Case] = {
    "a model that is known": (a_train_job(runtime=LLAMA, trainer=TUNE), TUNED, []),
    "a model that is not known": (
        a_train_job(runtime="torchtune-gemma-2b", trainer=TUNE),
        TUNED,
        [
            'spec.runtimeRef.name: Invalid value: "torchtune-gemma-2b": must have a supported pretrained model, '
            "invalid model configured: gemma/2B"
        ],
    ),
    "a runtime whose name is no model": (
        a_train_job(runtime="mine", trainer=TUNE),
        TUNED,
        [
            'spec.runtimeRef.name: Invalid value: "mine": must have a supported pretrained model, '
            "invalid model configured: "
        ],
    ),
    "such a runtime with another command": (a_train_job(runtime="mine", trainer={"command": ["tune"]}), TUNED, []),
    "more nodes than a small model can have": (
        a_train_job(runtime=LLAMA, trainer={**TUNE, "numNodes": 2}),
        TUNED,
        ["spec.trainer.numNodes: Invalid value: 2: must be 1 for llama3_2/1B model"],
    ),
    "more nodes for a large model": (a_train_job(runtime=BIG, trainer={**TUNE, "numNodes": 2}), TUNED, []),
    "quantised adapters for a model that cannot": (
        a_train_job(runtime=QWEN, trainer={**TUNE, "args": QLORA, "numProcPerNode": 1}),
        TUNED,
        [f'spec.runtimeRef.name: Invalid value: "{QWEN}": QLoRA is not supported for qwen2_5/1.5B model'],
    ),
    "quantised adapters on several devices": (
        a_train_job(runtime=LLAMA, trainer={**TUNE, "args": QLORA}),
        TUNED,
        [
            'spec.trainer.numProcPerNode: Invalid value: "auto": must be auto or 1 for llama3_2/1B model when using '
            "QLoRA",
            "spec.trainer.resourcesPerNode: Invalid value: null: must have gpu resource with value 1 for llama3_2/1B "
            "model when using QLoRA",
        ],
    ),
    "quantised adapters with several processes": (
        a_train_job(
            runtime="torchtune-llama3.2-3b",
            trainer={**TUNE, "args": QLORA, "numProcPerNode": 2, "resourcesPerNode": {"limits": {"cpu": "2"}}},
        ),
        TUNED,
        [
            "spec.trainer.numProcPerNode: Invalid value: 2: must be auto or 1 for llama3_2/3B model when using QLoRA",
            'spec.trainer.resourcesPerNode: Invalid value: {"limits":{"cpu":"2"}}: must have gpu resource with value 1 '
            "for llama3_2/3B model when using QLoRA",
        ],
    ),
    "quantised adapters on one device": (
        a_train_job(
            runtime=LLAMA, trainer={**TUNE, "args": QLORA, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}}
        ),
        TUNED,
        [],
    ),
    "quantised adapters for a large model": (a_train_job(runtime=BIG, trainer={**TUNE, "args": QLORA}), TUNED, []),
    "a base that is said not to be quantised": (
        a_train_job(runtime=LLAMA, trainer={**TUNE, "args": ["model.quantize_base=False"]}),
        TUNED,
        [],
    ),
    "adapters on several nodes": (
        a_train_job(runtime=BIG, trainer={**TUNE, "numNodes": 2, "args": ["model.lora_attn_modules=[q_proj]"]}),
        TUNED,
        [
            "spec.trainer.numNodes: Invalid value: 2: LoRA fine-tuning is not supported for multi-node training in "
            "TorchTune"
        ],
    ),
    "what the runtime decides": (
        a_train_job(runtime=LLAMA, trainer={**TUNE, "args": ["epochs=1", "output_dir=/x", "tokenizer.merges_file=/y"]}),
        TUNED,
        [
            'spec.trainer.args[1]: Invalid value: "output_dir=/x": must not set immutable config "output_dir" in '
            "trainer args; it is managed by the runtime",
            'spec.trainer.args[2]: Invalid value: "tokenizer.merges_file=/y": must not set immutable config '
            '"tokenizer.merges_file" in trainer args; it is managed by the runtime',
        ],
    ),
}


ALL = {**TORCH_RULES, **TORCHTUNE}


@pytest.mark.parametrize(("train_job", "runtime", "expected"), ALL.values(), ids=ALL.keys())
def test_a_train_job_is_judged(train_job: TrainJob, runtime: TrainingRuntimeSpec, expected: list[str]) -> None:
    assert problems(train_job, runtime) == expected
