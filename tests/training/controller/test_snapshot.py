"""The runtime as it was when a TrainJob began."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.meta import Document
from shoal.api.trainer import TrainingRuntimeSpec
from shoal.training.framework import Unbuildable
from shoal.training.runtimes import built_in_runtimes
from shoal.training.snapshot import read_snapshot, snapshot_text
from tests.training.builders import UID, a_train_job

JOB = a_train_job(runtime="plain")
RUNTIME = {"metadata": {"name": "plain", "managedFields": [{}]}, "spec": {"mlPolicy": {"torch": {}}}}


def text_of(runtime: dict[str, Any]) -> str:
    return snapshot_text(runtime, api_version="trainer.kubeflow.org/v1alpha1", kind="ClusterTrainingRuntime")


def a_config_map(text: str | None, *, owner: str = UID) -> Document:
    reference = {"apiVersion": "x/v1", "kind": "TrainJob", "name": "demo", "uid": owner, "controller": True}
    metadata = {"name": "demo-runtime-snapshot", "ownerReferences": [reference]}
    return Document.of({"metadata": metadata, "data": {} if text is None else {"runtime": text}})


def test_it_holds_the_whole_runtime_less_bookkeeping() -> None:
    assert yaml.safe_load(text_of(RUNTIME)) == {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "plain"},
        "spec": {"mlPolicy": {"torch": {}}},
    }


@pytest.mark.parametrize("name", built_in_runtimes())
def test_the_runtimes_that_we_ship_come_back_as_they_were(name: str) -> None:
    runtime = built_in_runtimes()[name]
    assert read_snapshot(a_config_map(text_of(runtime)), a_train_job(runtime=name)) == msgspec.convert(
        runtime["spec"], TrainingRuntimeSpec
    )


words = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=20) | st.sampled_from(
    [
        "2026-01-31T09:30:00Z",
        "2026-01-31",
        "yes",
        "0x10",
        "1e3",
        "1_000",
        "null",
        "~",
        "12:30:45",
        "0o17",
        "010",
        "<<",
        "=",
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(words, values, max_size=4))
def test_every_value_survives(spec: dict[str, Any]) -> None:
    runtime = {"metadata": {"name": "plain"}, "spec": {"template": {"spec": spec}}}
    assert read_snapshot(a_config_map(text_of(runtime)), JOB).template.spec == spec


PROBLEMS: dict[str, tuple[str | None, str, str]] = {
    "of another owner": (text_of(RUNTIME), "another-uid", "does not belong to TrainJob demo"),
    "without the key": (None, UID, "has no key 'runtime'"),
    "no YAML": ("{", UID, "does not hold YAML"),
    "no object": ("- 1", UID, "does not hold a runtime"),
    "no runtime": (text_of({**RUNTIME, "spec": {"mlPolicy": 3}}), UID, "does not hold a runtime"),
    "another runtime": (text_of({"metadata": {"name": "other"}}), UID, "holds ClusterTrainingRuntime other of"),
    "another kind": (
        snapshot_text(RUNTIME, api_version="trainer.kubeflow.org/v1alpha1", kind="TrainingRuntime"),
        UID,
        "holds TrainingRuntime plain of",
    ),
}


@pytest.mark.parametrize(("text", "owner", "message"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_is_wrong_with_one(text: str | None, owner: str, message: str) -> None:
    with pytest.raises(Unbuildable, match=message):
        read_snapshot(a_config_map(text, owner=owner), JOB)
