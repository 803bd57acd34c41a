"""The runtimes that come with Shoal: what they say, that they are sound, and that a server takes them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from shoal.api import trainer
from shoal.api.crd import CustomResource
from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, ClusterTrainingRuntime, names
from shoal.training.admission import runtime_problems, train_job_problems
from shoal.training.runtimes import built_in_runtimes, chosen_runtimes
from tests.support.clusters.in_process import Cluster
from tests.support.schemas.corpus import CORPUS, needs_corpus
from tests.training.builders import a_train_job

NAMES = [
    "deepspeed-distributed",
    "flux-distributed",
    "jax-distributed",
    "mlx-distributed",
    "torch-distributed",
    "torch-distributed-with-cache",
    "torchtune-llama3.2-1b",
    "torchtune-llama3.2-3b",
    "torchtune-qwen2.5-1.5b",
    "xgboost-distributed",
]

each_runtime = pytest.mark.parametrize("name", NAMES)


def typed(name: str) -> ClusterTrainingRuntime:
    return msgspec.convert(built_in_runtimes()[name], ClusterTrainingRuntime)


def test_these_are_there() -> None:
    assert list(built_in_runtimes()) == NAMES


@each_runtime
def test_a_runtime_is_what_the_kubeflow_sdk_looks_for(name: str) -> None:
    """It skips one without a framework, or without an image for nodes in a job that has a part in TrainJobs."""
    runtime = typed(name)
    assert runtime.kind == "ClusterTrainingRuntime"
    assert runtime.metadata.labels["trainer.kubeflow.org/framework"]
    assert runtime.spec.ml_policy is not None
    assert runtime.spec.ml_policy.num_nodes == 1
    trains = [
        container
        for job in runtime.spec.template.spec["replicatedJobs"]
        if job["template"].get("metadata", {}).get("labels", {}).get(names.ANCESTOR_LABEL) == "trainer"
        for container in job["template"]["spec"]["template"]["spec"]["containers"]
    ]
    assert [container["name"] for container in trains] == ["node"]
    assert trains[0]["image"]


@each_runtime
def test_a_runtime_passes_our_own_rules_although_nobody_asks(name: str) -> None:
    runtime = typed(name)
    assert list(runtime_problems(runtime.spec)) == []
    assert runtime.metadata.labels["trainer.kubeflow.org/webhook-validation"] == "disabled"


@each_runtime
def test_a_job_of_two_nodes_may_ask_for_it(name: str) -> None:
    train_job = a_train_job(
        runtime=name, trainer={"numNodes": 2, "command": ["train"], "env": [{"name": "A", "value": "b"}]}
    )
    assert train_job_problems(train_job, None, typed(name).spec) == []


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("torchtune")])
def test_a_torchtune_runtime_fetches_and_tunes_its_model(name: str) -> None:
    source = {"storageUri": "hf://a/b"}
    train_job = a_train_job(
        runtime=name, initializer={"dataset": source, "model": source}, trainer={"command": ["tune", "run"]}
    )
    assert train_job_problems(train_job, None, typed(name).spec) == []


@needs_corpus
@pytest.mark.parametrize("file", sorted((CORPUS / "trainer" / "runtimes").glob("*.yaml")), ids=lambda file: file.stem)
def test_a_runtime_means_what_upstreams_of_that_name_means(file: Path) -> None:
    theirs = yaml.safe_load(file.read_text())
    ours = built_in_runtimes()[theirs["metadata"]["name"]]
    assert ours["metadata"]["labels"].items() >= theirs["metadata"]["labels"].items()
    assert with_replicas(ours["spec"]) == with_replicas(theirs["spec"])


def with_replicas(spec: dict[str, Any]) -> dict[str, Any]:
    """A runtime with what the server fills in, which some manifests say themselves."""
    whole = copy.deepcopy(spec)
    for job in whole["template"]["spec"]["replicatedJobs"]:
        job.setdefault("replicas", 1)
    return whole


def test_some_may_be_chosen_by_name() -> None:
    [only] = chosen_runtimes(["jax-distributed"])
    assert only["metadata"]["name"] == "jax-distributed"
    assert len(chosen_runtimes([])) == len(NAMES)


def test_an_unknown_name_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(LookupError, match=r"no built-in runtime 'jax': choose among deepspeed-distributed, flux"):
        chosen_runtimes(["torch-distributed", "jax"])


@pytest.fixture
def kinds() -> Sequence[CustomResource]:
    """Trainer's kinds."""
    return trainer.DEFINITIONS


async def test_a_server_takes_all_of_them_and_drops_nothing(cluster: Cluster) -> None:
    for name, body in built_in_runtimes().items():
        made = await cluster.make(CLUSTER_TRAINING_RUNTIMES, body)
        assert made.content["metadata"]["labels"] == body["metadata"]["labels"]
        assert lost(body["spec"], made.content["spec"]) == [], name


async def test_to_apply_them_again_changes_nothing(cluster: Cluster) -> None:
    versions = []
    for _ in range(2):
        for name, body in built_in_runtimes().items():
            await cluster.client.apply(
                CLUSTER_TRAINING_RUNTIMES.documents(), body, name=name, field_manager="shoal-runtimes"
            )
        found = await cluster.all(CLUSTER_TRAINING_RUNTIMES)
        versions.append([each["metadata"]["resourceVersion"] for each in found])
    assert len(versions[0]) == len(NAMES)
    assert versions[0] == versions[1]


async def test_a_job_is_stored_beside_them(cluster: Cluster) -> None:
    body = {"metadata": {"name": "job"}, "spec": {"runtimeRef": {"name": "torch-distributed"}}}
    made = await cluster.make(TRAIN_JOBS, body)
    assert made.content["spec"]["runtimeRef"]["kind"] == "ClusterTrainingRuntime"


def lost(written: Any, stored: Any, path: str = "") -> list[str]:
    """What was written and is not stored so; the server may add to it."""
    if isinstance(written, dict):
        if not isinstance(stored, dict):
            return [path]
        return [found for key in written for found in lost(written[key], stored.get(key), f"{path}.{key}")]
    if isinstance(written, list) and isinstance(stored, list) and len(written) == len(stored):
        pairs = zip(written, stored, strict=True)
        return [found for at, (one, other) in enumerate(pairs) for found in lost(one, other, f"{path}[{at}]")]
    return [] if written == stored else [path]
