"""Upstream's own runtimes and samples: each becomes objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from shoal.api.trainer import TrainingRuntimeSpec, TrainJob
from shoal.training.framework import Unbuildable
from tests.support.schemas.corpus import CORPUS, needs_corpus
from tests.training.builders import UID, a_train_job, container_of, job_set_of, objects_of

pytestmark = needs_corpus


def documents(*folders: str) -> list[dict[str, Any]]:
    files: list[Path] = [file for folder in folders for file in sorted((CORPUS / "trainer" / folder).glob("*.yaml"))]
    return [body for file in files for body in yaml.safe_load_all(file.read_text()) if body]


def runtimes() -> dict[str, TrainingRuntimeSpec]:
    found = {body["metadata"]["name"]: body for body in documents("runtimes", "samples") if "Runtime" in body["kind"]}
    return {name: msgspec.convert(body["spec"], TrainingRuntimeSpec) for name, body in found.items()}


def samples() -> dict[str, TrainJob]:
    found = [body for body in documents("samples") if body["kind"] == "TrainJob"]
    given = {"namespace": "team", "uid": UID}
    bodies = [{**body, "metadata": {**body["metadata"], **given}} for body in found]
    return {body["metadata"].get("name", "unnamed"): msgspec.convert(body, TrainJob) for body in bodies}


@pytest.mark.parametrize("name", list(runtimes()) if CORPUS.is_dir() else [])
def test_every_runtime_of_upstream_makes_a_job_set(name: str) -> None:
    runtime = runtimes()[name]
    made = job_set_of(a_train_job(runtime=name, trainer={"numNodes": 2}), runtime)
    jobs = {one["name"] for one in runtime.template.spec["replicatedJobs"]}
    assert {one["name"] for one in made["spec"]["replicatedJobs"]} == jobs


@pytest.mark.parametrize("name", list(samples()) if CORPUS.is_dir() else [])
def test_every_sample_of_upstream_whose_runtime_is_known_makes_objects(name: str) -> None:
    sample = samples()[name]
    runtime = runtimes().get(sample.spec.runtime_ref.name)
    if runtime is None:
        pytest.skip(f"its runtime {sample.spec.runtime_ref.name} is not among upstream's files")
    try:
        assert list(objects_of(sample, runtime))[-1] == f"JobSet/{name}"
    except Unbuildable as problem:
        pytest.fail(str(problem))


def test_the_sample_of_flux() -> None:
    made = objects_of(samples()["lammps-flux"], runtimes()["flux-distributed"])
    assert container_of(made["JobSet/lammps-flux"])["command"] == [
        "/bin/bash",
        "/etc/flux-config/entrypoint.sh",
        "lmp -v x 4 -v y 4 -v z 4 -in in.reaxc.hns -nocite",
    ]
    assert "-N 2 -n 8" in made["ConfigMap/lammps-flux-flux-entrypoint"]["data"]["entrypoint.sh"]
