"""Every manifest of Kubeflow Trainer's own: accepted or refused, and by which rule.

The verdicts were derived by hand from the rules.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml

from shoal.api.trainer import ClusterTrainingRuntime, TrainingRuntime, TrainingRuntimeSpec, TrainJob
from shoal.training.admission import runtime_problems, train_job_problems
from shoal.training.runtimes import built_in_runtimes
from tests.support.schemas.corpus import CORPUS, needs_corpus, upstream_samples

ACCEPTED = ""

VERDICTS: dict[str, str] = {
    "01-multi-node: TrainJob/multi-node-example": ACCEPTED,
    "03-kueue-integration: TrainJob/kueue-example": ACCEPTED,
    "05-multi-step: TrainingRuntime/torch-with-dataset-init": ACCEPTED,
    # Its runtime has no volume that the dataset could be handed on by.
    "05-multi-step: TrainJob/multi-step-example": (
        "must have volumeMount with name - initializer in container dataset-initializer of the dataset-initializer job"
    ),
    "flux-runtime: ClusterTrainingRuntime/flux-distributed": ACCEPTED,
    "lammps-train-job: TrainJob/lammps-flux": ACCEPTED,
    "deepspeed_distributed: ClusterTrainingRuntime/deepspeed-distributed": ACCEPTED,
    "flux_distributed: ClusterTrainingRuntime/flux-distributed": ACCEPTED,
    "jax_distributed: ClusterTrainingRuntime/jax-distributed": ACCEPTED,
    "llama3_2_1B: ClusterTrainingRuntime/torchtune-llama3.2-1b": ACCEPTED,
    "llama3_2_3B: ClusterTrainingRuntime/torchtune-llama3.2-3b": ACCEPTED,
    "mlx_distributed: ClusterTrainingRuntime/mlx-distributed": ACCEPTED,
    "qwen2_5_1.5B: ClusterTrainingRuntime/torchtune-qwen2.5-1.5b": ACCEPTED,
    "torch_distributed: ClusterTrainingRuntime/torch-distributed": ACCEPTED,
    "torch_distributed_with_cache: ClusterTrainingRuntime/torch-distributed-with-cache": ACCEPTED,
    "xgboost_distributed: ClusterTrainingRuntime/xgboost-distributed": ACCEPTED,
}


def _manifests() -> dict[str, dict[str, Any]]:
    if not CORPUS.is_dir():
        return {}
    runtimes = {
        f"{file.stem}: {body['kind']}/{body['metadata']['name']}": body
        for file in sorted((CORPUS / "trainer" / "runtimes").glob("*.yaml"))
        for body in yaml.safe_load_all(file.read_text())
    }
    return {**dict(upstream_samples("trainer")), **runtimes}


MANIFESTS = _manifests()
pytestmark = needs_corpus


def judged(body: dict[str, Any]) -> list[str]:
    """What the webhooks say of a manifest in a cluster that has all of them, and our own runtimes."""
    if body["kind"] == "TrainJob":
        train_job = msgspec.convert(body, TrainJob)
        return [str(each) for each in train_job_problems(train_job, None, runtime_of(train_job))]
    return [str(each) for each in runtime_problems(msgspec.convert(body, ClusterTrainingRuntime).spec)]


def runtime_of(train_job: TrainJob) -> TrainingRuntimeSpec:
    """The runtime that a sample names: from the samples, or one of our own."""
    reference = train_job.spec.runtime_ref
    for body in MANIFESTS.values():
        if (body["kind"], body["metadata"]["name"]) == ("TrainingRuntime", reference.name):
            return msgspec.convert(body, TrainingRuntime).spec
    return msgspec.convert(built_in_runtimes()[reference.name], ClusterTrainingRuntime).spec


def test_every_manifest_has_its_verdict() -> None:
    assert set(MANIFESTS) == set(VERDICTS)


@pytest.mark.parametrize("manifest", VERDICTS, ids=lambda name: str(name).rpartition("/")[2])
def test_a_manifest_is_judged_by_the_rules(manifest: str) -> None:
    found = judged(MANIFESTS[manifest])
    if VERDICTS[manifest] == ACCEPTED:
        assert found == []
    else:
        [problem] = found
        assert problem.endswith(VERDICTS[manifest])
