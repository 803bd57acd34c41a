"""The examples of the page on runtimes are real: the schema and the rules take them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from shoal.api import trainer
from shoal.api.trainer import TrainingRuntime, TrainJob
from shoal.cluster.apiserver.custom.pipeline import Pipeline
from shoal.training.admission import runtime_problems, train_job_problems
from shoal.training.patches import patched_template
from shoal.training.runtimes import built_in_runtimes

PAGE = Path(__file__).parents[3] / "docs" / "training-runtimes.md"


def examples() -> tuple[dict[str, Any], dict[str, Any]]:
    runtime, train_job = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.S))
    return runtime, train_job


def test_the_schema_takes_the_examples_and_drops_nothing() -> None:
    definitions = {definition.kind: definition for definition in trainer.DEFINITIONS}
    for body in examples():
        [version] = definitions[body["kind"]].manifest()["spec"]["versions"]
        pipeline = Pipeline(version["schema"]["openAPIV3Schema"], kind=body["kind"], version="v1alpha1")
        unknown: list[str] = []
        kept = pipeline.read(body, unknown)
        assert (unknown, pipeline.validate(kept)) == ([], [])


def test_the_rules_take_the_examples() -> None:
    runtime, train_job = (
        msgspec.convert(body, kind) for body, kind in zip(examples(), (TrainingRuntime, TrainJob), strict=True)
    )
    assert list(runtime_problems(runtime.spec)) == []
    assert train_job_problems(train_job, None, runtime.spec) == []
    patched = patched_template(runtime.spec.template, train_job.spec.runtime_patches)
    pods = patched.spec["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert pods["nodeSelector"] == {"zone": "north"}
    assert {container["name"]: "env" in container for container in pods["containers"]} == {
        "node": False,
        "shipper": True,
    }


def test_the_page_names_all_built_in_runtimes() -> None:
    text = PAGE.read_text()
    assert [name for name in built_in_runtimes() if f"`{name}`" not in text] == []
