"""The generated definitions of Trainer's kinds say what upstream's say, fact by fact, but for what is listed here."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import msgspec
import pytest
import yaml

from shoal.api import trainer
from shoal.api.crd import CustomResource
from shoal.api.trainer import TRAIN_JOBS, names
from shoal.cluster.apiserver.custom.pipeline import Pipeline
from tests.support.schemas.corpus import CORPUS, needs_corpus, upstream_definition, upstream_samples
from tests.support.schemas.crd_diff import Intended, differences, unexplained

BY_KIND = {definition.kind: definition for definition in trainer.DEFINITIONS}

JOB_SETS = "a JobSet is checked wherever it stands as the JobSet's own definition has it, which is newer than Trainer's"
OLDER = "pods have this field in Kubernetes 1.35: it is kept, and upstream, made from 1.36, drops it"
GANGS = "ours: a gang of our own scheduler, or of any backend of gangs"
TTL = "ours: users ask for it, and upstream has it for the JobSet alone"
TIMES = "ours: users ask for it, and upstream leaves it to be guessed from conditions"
STATE = "the condition that holds, not the last one: a run that was resumed is not Suspended"
ERRORS = "ours: upstream tells of a failed reconcile in an event alone"

POD_SPEC = "v1alpha1.spec.template.spec.replicatedJobs[].template.spec.template.spec"
RUNTIME = [
    Intended("v1alpha1.spec.podGroupPolicy.kai", "field", GANGS),
    Intended("v1alpha1.spec.podGroupPolicy.podGang", "field", GANGS),
    Intended("v1alpha1.spec.template.spec.replicatedJobs[].replicas", "minimum", JOB_SETS),
    Intended(f"{POD_SPEC}.workloadRef", "field", OLDER),
]
INTENDED: dict[str, list[Intended]] = {
    "clustertrainingruntimes.trainer.kubeflow.org": RUNTIME,
    "trainingruntimes.trainer.kubeflow.org": RUNTIME,
    "optimizationjobs.trainer.kubeflow.org": [
        Intended("v1alpha1.spec.trainJobTemplate.spec.ttlSecondsAfterFinished", "field", TTL)
    ],
    "trainjobs.trainer.kubeflow.org": [
        Intended("v1alpha1 column State", "jsonPath", STATE),
        Intended("v1alpha1.spec.ttlSecondsAfterFinished", "field", TTL),
        Intended("v1alpha1.status.startTime", "field", TIMES),
        Intended("v1alpha1.status.completionTime", "field", TIMES),
        Intended("v1alpha1.status.lastError", "field", ERRORS),
    ],
}

each_definition = pytest.mark.parametrize(
    "definition", [pytest.param(each, id=each.name) for each in trainer.DEFINITIONS]
)


@needs_corpus
@each_definition
def test_a_kind_of_trainer_differs_from_upstream_only_where_it_is_meant_to(definition: CustomResource) -> None:
    found = differences(definition.manifest(), upstream_definition("trainer", definition.name))
    assert unexplained(found, INTENDED[definition.name]) == []


@needs_corpus
@each_definition
def test_a_rule_says_what_upstreams_says(definition: CustomResource) -> None:
    """Messages of rules are compared here: users of the SDK meet them."""
    ours, theirs = (
        set(rules_in(manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]))
        for manifest in (definition.manifest(), upstream_definition("trainer", definition.name))
    )
    assert ours == theirs


def rules_in(schema: dict[str, Any]) -> list[tuple[str, str]]:
    own = [(" ".join(rule["rule"].split()), rule["message"]) for rule in schema.get("x-kubernetes-validations", ())]
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return own + [found for each in inner if isinstance(each, dict) for found in rules_in(each)]


def manifests() -> list[Any]:
    """Upstream's samples, and the runtimes that it ships, which stand in a folder of their own."""
    runtimes = [
        (f"{file.stem}: {body['kind']}", body)
        for file in sorted((CORPUS / "trainer" / "runtimes").glob("*.yaml"))
        for body in yaml.safe_load_all(file.read_text())
    ]
    found = [*upstream_samples("trainer"), *runtimes]
    return [pytest.param(BY_KIND[body["kind"]], body, id=name) for name, body in found]


@needs_corpus
@pytest.mark.parametrize(("definition", "body"), manifests())
def test_a_manifest_comes_out_of_our_schema_as_out_of_upstreams(
    definition: CustomResource, body: dict[str, Any]
) -> None:
    taken = [taken_in(pipeline, body) for pipeline in (ours(definition.name), theirs(definition.name))]
    assert taken[0] == taken[1]
    _, unknown, problems = taken[0]
    assert (unknown, problems) == ([], [])


@needs_corpus
@pytest.mark.parametrize(("definition", "body"), manifests())
def test_a_manifest_is_read_and_written_back_and_means_the_same(
    definition: CustomResource, body: dict[str, Any]
) -> None:
    written = msgspec.json.decode(msgspec.json.encode(definition.resource.decode(msgspec.json.encode(body))))
    written.pop("status", None)  # an empty one, which is refused if anyone writes it
    assert taken_in(ours(definition.name), written) == taken_in(ours(definition.name), body)


@needs_corpus
def test_there_are_manifests() -> None:
    assert len(manifests()) >= 15


OLD_SHAPES: dict[str, dict[str, Any]] = {
    "v2.0, podSpecOverrides": {"podSpecOverrides": [{"targetJobs": [{"name": "node"}]}]},
    "v2.1, podTemplateOverrides": {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}]}]},
    "labels and annotations": {"labels": {"a": "b"}, "annotations": {"a": "b"}},
}


@pytest.mark.parametrize("fields", OLD_SHAPES.values(), ids=OLD_SHAPES.keys())
def test_what_earlier_versions_knew_is_dropped_without_a_word(fields: dict[str, Any]) -> None:
    body = a_train_job(fields)
    kept, unknown, problems = taken_in(ours("trainjobs.trainer.kubeflow.org"), body)
    assert unknown == [f'unknown field "spec.{field}"' for field in sorted(fields)]
    assert problems == []
    assert not kept["spec"].keys() & fields.keys()


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a name that begins with a digit": (
        {"metadata": {"name": "1a"}},
        "metadata.name must match RFC 1035 DNS label format",
    ),
    "a name that is too long": ({"metadata": {"name": "a" * 64}}, "metadata.name must be no more than 63 characters"),
    "a bare path for a dataset": (
        {"initializer": {"dataset": {"storageUri": "alpaca"}}},
        "storageUri may be empty, or it must be a valid URI (scheme://...)",
    ),
    "no process on a node": (
        {"trainer": {"numProcPerNode": 0}},
        "numProcPerNode must be greater than or equal to 1",
    ),
    "fewer than no nodes": ({"trainer": {"numNodes": -1}}, "should be greater than or equal to 0"),
    "a deadline of no time": ({"activeDeadlineSeconds": 0}, "should be greater than or equal to 1"),
    "a manager that nobody knows": (
        {"managedBy": "acme.io/me"},
        "ManagedBy must be trainer.kubeflow.org/trainjob-controller or kueue.x-k8s.io/multikueue if set",
    ),
    "one manager of patches twice": (
        {"runtimePatches": [{"manager": "acme.io/a"}, {"manager": "acme.io/a"}]},
        "Duplicate value",
    ),
    "a status that says nothing": ({"status": {}}, "should have at least 1 properties"),
    "progress of unknown age": (
        {"status": {"trainerStatus": {"progressPercentage": 1}}},
        "lastUpdatedTime is required when trainerStatus is present",
    ),
    "a job's status without its zeros": (
        {"status": {"jobsStatus": [{"name": "node"}]}},
        "Required value",
    ),
    "a negative time to live": ({"ttlSecondsAfterFinished": -1}, "should be greater than or equal to 0"),
}


@pytest.mark.parametrize(("fields", "rule"), REFUSED.values(), ids=REFUSED.keys())
def test_the_schema_refuses(fields: dict[str, Any], rule: str) -> None:
    _, _, problems = taken_in(ours("trainjobs.trainer.kubeflow.org"), a_train_job(fields))
    assert rule in problems[0]


def test_a_train_job_of_no_nodes_is_let_through() -> None:
    assert taken_in(ours("trainjobs.trainer.kubeflow.org"), a_train_job({"trainer": {"numNodes": 0}}))[2] == []


def test_a_train_job_says_by_default_what_the_server_fills_in() -> None:
    kept, _, _ = taken_in(ours("trainjobs.trainer.kubeflow.org"), a_train_job({}))
    typed, bare = (TRAIN_JOBS.decode(msgspec.json.encode(body)) for body in (kept, a_train_job({})))
    assert kept["spec"]["runtimeRef"] == {
        "name": "torch-distributed",
        "apiGroup": "trainer.kubeflow.org",
        "kind": "ClusterTrainingRuntime",
    }
    assert kept["spec"]["managedBy"] == names.MANAGED_BY
    assert typed == bare
    assert typed.spec.runtime_ref.key == "ClusterTrainingRuntime.trainer.kubeflow.org"


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "the runtime": ({"runtimeRef": {"name": "a"}}, {"runtimeRef": {"name": "b"}}, False),
    "the trainer": ({"trainer": {"numNodes": 1}}, {"trainer": {"numNodes": 2}}, False),
    "a trainer where none was": ({}, {"trainer": {"numNodes": 2}}, True),
    "a trainer that goes": ({"trainer": {"numNodes": 1}}, {}, True),
    "the initializer": (
        {"initializer": {"model": {"storageUri": "hf://a/b"}}},
        {"initializer": {"model": {"storageUri": "hf://a/c"}}},
        False,
    ),
    "the deadline": ({"activeDeadlineSeconds": 1}, {"activeDeadlineSeconds": 2}, False),
    "a deadline where none was": ({}, {"activeDeadlineSeconds": 2}, True),
    "who manages it": ({}, {"managedBy": "kueue.x-k8s.io/multikueue"}, False),
    "whether it waits": ({"suspend": True}, {"suspend": False}, True),
    "how long it is kept": ({"ttlSecondsAfterFinished": 1}, {"ttlSecondsAfterFinished": 2}, True),
}


@pytest.mark.parametrize(("before", "after", "is_allowed"), CHANGES.values(), ids=CHANGES.keys())
def test_a_field_is_immutable_while_it_is_there(
    before: dict[str, Any], after: dict[str, Any], is_allowed: bool
) -> None:
    pipeline = ours("trainjobs.trainer.kubeflow.org")
    old, new = (pipeline.read(a_train_job(fields), []) for fields in (before, after))
    problems = [str(problem) for problem in pipeline.validate(new, old)]
    assert all("field is immutable" in problem for problem in problems)
    assert (problems == []) is is_allowed


def a_train_job(fields: dict[str, Any]) -> dict[str, Any]:
    """A TrainJob with these fields in its spec, but for metadata and status."""
    outer = {key: fields[key] for key in ("metadata", "status") if key in fields}
    spec = {key: value for key, value in fields.items() if key not in outer}
    return copy.deepcopy(
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "a"},
            **outer,
            "spec": {"runtimeRef": {"name": "torch-distributed"}, **spec},
        }
    )


def taken_in(pipeline: Pipeline, body: dict[str, Any]) -> tuple[dict[str, Any], list[str], list[str]]:
    """What becomes of an object on its way to the store: itself, fields that are dropped, and what is wrong with it."""
    unknown: list[str] = []
    kept = pipeline.read(copy.deepcopy(body), unknown)
    return kept, unknown, [str(problem) for problem in pipeline.validate(kept)]


@cache
def ours(name: str) -> Pipeline:
    [definition] = [definition for definition in trainer.DEFINITIONS if definition.name == name]
    return pipeline_of(definition.manifest())


@cache
def theirs(name: str) -> Pipeline:
    return pipeline_of(upstream_definition("trainer", name))


def pipeline_of(manifest: dict[str, Any]) -> Pipeline:
    [version] = manifest["spec"]["versions"]
    return Pipeline(version["schema"]["openAPIV3Schema"], kind=manifest["spec"]["names"]["kind"], version="v1alpha1")
