"""The generated definition of JobSets says what upstream's says, fact by fact, but for what is listed here."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import msgspec
import pytest

from shoal.api import jobset
from shoal.api.crd import schema_of
from shoal.cluster.apiserver.custom.pipeline import Pipeline
from tests.support.schemas.corpus import needs_corpus, upstream_definition, upstream_samples
from tests.support.schemas.crd_diff import Intended, differences, unexplained

[DEFINITION] = jobset.DEFINITIONS

INTENDED = [
    Intended(
        "v1alpha2.spec.replicatedJobs[].template.spec.template.spec.workloadRef",
        "field",
        "pods have this field in Kubernetes 1.35: it is kept, and upstream, made from 1.36, drops it",
    )
]


@needs_corpus
def test_a_job_set_differs_from_upstream_only_where_it_is_meant_to() -> None:
    found = differences(DEFINITION.manifest(), upstream_definition("jobset", DEFINITION.name))
    assert unexplained(found, INTENDED) == []


def test_the_specification_has_the_same_schema_wherever_it_is_embedded() -> None:
    [version] = DEFINITION.manifest()["spec"]["versions"]
    whole = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    alone = schema_of(jobset.JobSetSpec)
    assert {**alone, "description": ""} == {**whole, "description": ""}


def samples() -> list[Any]:
    return [pytest.param(sample, id=name) for name, sample in upstream_samples("jobset") if sample["kind"] == "JobSet"]


@needs_corpus
@pytest.mark.parametrize("sample", samples())
def test_a_sample_comes_out_of_our_schema_as_out_of_upstreams(sample: dict[str, Any]) -> None:
    assert taken_in(ours(), sample) == taken_in(theirs(), sample)


@needs_corpus
@pytest.mark.parametrize("sample", [each for each in samples() if each.values[0]["spec"]])
def test_a_sample_is_read_and_written_back_and_means_the_same(sample: dict[str, Any]) -> None:
    written = msgspec.json.decode(msgspec.json.encode(DEFINITION.resource.decode(msgspec.json.encode(sample))))
    assert without_empty_status(taken_in(ours(), written)) == taken_in(ours(), sample)


@needs_corpus
def test_there_are_samples() -> None:
    assert len(samples()) >= 15


def test_a_status_says_zero_where_readers_need_a_number() -> None:
    status = jobset.JobSetStatus(replicated_jobs_status=[jobset.ReplicatedJobStatus(name="a")])
    assert msgspec.to_builtins(status) == {
        "restarts": 0,
        "replicatedJobsStatus": [{"name": "a", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}],
    }


CHANGES = {
    "network": ({"subdomain": "a"}, {"subdomain": "b"}),
    "successPolicy": ({"operator": "All"}, {"operator": "Any"}),
    "failurePolicy": ({"maxRestarts": 1}, {"maxRestarts": 2}),
    "startupPolicy": ({"startupPolicyOrder": "AnyOrder"}, {"startupPolicyOrder": "InOrder"}),
    "volumeClaimPolicies": ([{"templates": []}], []),
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_policy_is_not_changed_once_it_is_given(field: str) -> None:
    before, after = ({"spec": {"replicatedJobs": [], field: value}} for value in CHANGES[field])
    problems = [str(problem) for problem in ours().validate(ours().read(after), ours().read(before))]
    assert len(problems) == 1
    assert "Value is immutable" in problems[0]


def test_a_startup_order_and_dependencies_exclude_each_other() -> None:
    jobs = [
        {"name": "a", "template": {}},
        {"name": "b", "template": {}, "dependsOn": [{"name": "a", "status": "Ready"}]},
    ]
    body = {"spec": {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": jobs}}
    [problem] = [str(each) for each in ours().validate(ours().read(body))]
    assert "StartupPolicy and DependsOn APIs are mutually exclusive" in problem


def without_empty_status(taken: tuple[dict[str, Any], list[str], list[str]]) -> tuple[Any, ...]:
    """What was taken in, less the status that a struct writes: counters at zero are on the wire."""
    body, *others = taken
    return ({key: value for key, value in body.items() if key != "status"}, *others)


def taken_in(pipeline: Pipeline, body: dict[str, Any]) -> tuple[dict[str, Any], list[str], list[str]]:
    """What becomes of an object on its way to the store: itself, fields that are dropped, and what is wrong with it."""
    unknown: list[str] = []
    kept = pipeline.read(copy.deepcopy(body), unknown)
    return kept, unknown, [str(problem) for problem in pipeline.validate(kept)]


@cache
def ours() -> Pipeline:
    return pipeline_of(DEFINITION.manifest())


@cache
def theirs() -> Pipeline:
    return pipeline_of(upstream_definition("jobset", DEFINITION.name))


def pipeline_of(manifest: dict[str, Any]) -> Pipeline:
    [version] = manifest["spec"]["versions"]
    return Pipeline(version["schema"]["openAPIV3Schema"], kind="JobSet", version="v1alpha2")
