"""The generated definitions of Grove's kinds say what upstream's say, fact by fact, but for what is listed here."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import msgspec
import pytest

from shoal.api import grove, scheduler_grove_io
from shoal.api.crd import CustomResource
from shoal.cluster.apiserver.custom.pipeline import Pipeline
from shoal.kube.admission.fields import Reason
from tests.support.schemas.corpus import needs_corpus, upstream_definition, upstream_samples
from tests.support.schemas.crd_diff import Intended, differences, unexplained

DEFINITIONS = (*grove.DEFINITIONS, *scheduler_grove_io.DEFINITIONS)
BY_KIND = {(definition.resource.api_version, definition.kind): definition for definition in DEFINITIONS}

NO_ROLE = "a clique without a role has its name for one, as the examples of the requirements need"
NEWER = "pods have this field since Kubernetes 1.36: it is kept, and upstream, made from 1.35, drops it"

INTENDED: dict[str, list[Intended]] = {
    "podcliques.grove.io": [
        Intended("v1alpha1.spec", "required", NO_ROLE),
        Intended("v1alpha1.spec.podSpec.schedulingGroup", "field", NEWER),
    ],
    "podcliquesets.grove.io": [
        Intended("v1alpha1.spec.template.cliques[].spec", "required", NO_ROLE),
        Intended("v1alpha1.spec.template.cliques[].spec.podSpec.schedulingGroup", "field", NEWER),
    ],
}

each_definition = pytest.mark.parametrize("definition", [pytest.param(each, id=each.name) for each in DEFINITIONS])


@needs_corpus
@each_definition
def test_a_kind_of_grove_differs_from_upstream_only_where_it_is_meant_to(definition: CustomResource) -> None:
    found = differences(definition.manifest(), upstream_definition("grove", definition.name))
    assert unexplained(found, INTENDED.get(definition.name, [])) == []


def test_the_table_of_differences_names_known_kinds_only() -> None:
    assert INTENDED.keys() <= {definition.name for definition in DEFINITIONS}


def samples() -> list[Any]:
    return [
        pytest.param(BY_KIND[key], sample, id=name)
        for name, sample in upstream_samples("grove")
        if (key := (sample["apiVersion"], sample["kind"])) in BY_KIND
    ]


@needs_corpus
@pytest.mark.parametrize(("definition", "sample"), samples())
def test_a_sample_comes_out_of_our_schema_as_out_of_upstreams(
    definition: CustomResource, sample: dict[str, Any]
) -> None:
    complete = with_roles(sample)
    taken = [taken_in(pipeline, complete) for pipeline in (ours(definition.name), theirs(definition.name))]
    assert taken[0] == taken[1]
    _, unknown, problems = taken[0]
    assert (unknown, problems) == ([], [])


def with_roles(sample: dict[str, Any]) -> dict[str, Any]:
    """A sample whose cliques all say what they are for: some do not, which upstream's schema does not let pass."""
    complete = copy.deepcopy(sample)
    if complete["kind"] == "PodCliqueSet":
        for clique in complete["spec"]["template"]["cliques"]:
            clique["spec"].setdefault("roleName", clique["name"])
    return complete


@needs_corpus
@pytest.mark.parametrize(("definition", "sample"), samples())
def test_a_sample_is_read_and_written_back_and_means_the_same(
    definition: CustomResource, sample: dict[str, Any]
) -> None:
    written = msgspec.json.decode(msgspec.json.encode(definition.resource.decode(msgspec.json.encode(sample))))
    assert taken_in(ours(definition.name), written) == taken_in(ours(definition.name), sample)


@needs_corpus
def test_there_are_samples() -> None:
    assert len(samples()) >= 20


ODD_PODS = {
    "a port without its protocol": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]},
    "a port that is there twice": {"containers": [{"name": "a", "ports": [{"containerPort": 80}] * 2}]},
    "a container that is there twice": {"containers": [{"name": "a"}, {"name": "a"}]},
    "no containers": {},
    "fields that nobody knows": {"containers": [{"name": "a", "imagee": "b"}], "volumess": []},
    "a quantity that is none": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "much"}}}]},
    "a quantity that is a number": {"containers": [{"name": "a", "resources": {"limits": {"cpu": 2}}}]},
    "a port by name and by number": {
        "containers": [
            {"name": "a", "livenessProbe": {"httpGet": {"port": "web"}}, "readinessProbe": {"grpc": {"port": 1}}}
        ]
    },
    "a secret without a name": {"containers": [{"name": "a"}], "imagePullSecrets": [{}]},
    "a number too large": {"containers": [{"name": "a"}], "priority": 2**40},
    "a claim that is made for the pod": {
        "containers": [{"name": "a"}],
        "volumes": [
            {"name": "v", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {}}}}
        ],
    },
    "a workload": {"containers": [{"name": "a"}], "workloadRef": {"name": "w", "podGroup": "g", "more": 1}},
}


@needs_corpus
@pytest.mark.parametrize("pod_spec", [pytest.param(value, id=name) for name, value in ODD_PODS.items()])
def test_a_pods_specification_is_pruned_defaulted_and_refused_as_by_upstream(pod_spec: dict[str, Any]) -> None:
    clique = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "metadata": {"name": "a"}}
    clique["spec"] = {"roleName": "a", "replicas": 1, "podSpec": pod_spec}
    name = "podcliques.grove.io"
    assert taken_in(ours(name), clique) == taken_in(theirs(name), clique)


NEW = {"packDomain": "rack"}


@needs_corpus
@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"topologyConstraint": NEW}, "spec.template.topologyConstraint.packDomain", id="in the template"),
        pytest.param({"cliques": [{"topologyConstraint": NEW}]}, "spec.template.cliques", id="in a clique"),
        pytest.param(
            {"podCliqueScalingGroups": [{"name": "g", "cliqueNames": [], "topologyConstraint": NEW}]},
            "spec.template.podCliqueScalingGroups",
            id="in a scaling group",
        ),
    ],
)
def test_the_superseded_constraint_is_kept_and_not_taken_anew(change: dict[str, Any], field: str) -> None:
    clique = {"name": "a", "spec": {"roleName": "a", "replicas": 1, "podSpec": {"containers": [{"name": "c"}]}}}
    template: dict[str, Any] = {"cliques": [{}], **change}
    template["cliques"] = [{**clique, **given} for given in template["cliques"]]
    old = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "a"}}
    old["spec"] = {"replicas": 1, "template": template}
    new = copy.deepcopy(old)
    new["spec"]["replicas"] = 2  # type: ignore[index] # plain values
    for pipeline in (ours("podcliquesets.grove.io"), theirs("podcliquesets.grove.io")):
        pipeline.read(old)
        pipeline.read(new)
        assert [(each.path, each.reason) for each in pipeline.validate(old)] == [(field, Reason.FORBIDDEN)]
        assert pipeline.validate(new, old) == []


def taken_in(pipeline: Pipeline, body: dict[str, Any]) -> tuple[dict[str, Any], list[str], list[str]]:
    """What becomes of an object on its way to the store: itself, fields that are dropped, and what is wrong with it."""
    unknown: list[str] = []
    kept = pipeline.read(copy.deepcopy(body), unknown)
    return kept, unknown, [str(problem) for problem in pipeline.validate(kept)]


@cache
def ours(name: str) -> Pipeline:
    [definition] = [definition for definition in DEFINITIONS if definition.name == name]
    return pipeline_of(definition.manifest())


@cache
def theirs(name: str) -> Pipeline:
    return pipeline_of(upstream_definition("grove", name))


def pipeline_of(manifest: dict[str, Any]) -> Pipeline:
    [version] = manifest["spec"]["versions"]
    return Pipeline(version["schema"]["openAPIV3Schema"], kind=manifest["spec"]["names"]["kind"], version="v1alpha1")
