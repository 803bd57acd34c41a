"""What is filled in where the author of a set did not say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.gangs.admission import defaulted, gang_webhooks
from shoal.gangs.backends import Backends
from shoal.gangs.settings import GangSettings
from shoal.kube.admission import Patched
from shoal.kube.admission.jsonpatch import apply
from shoal.kube.admission.wire import AdmissionRequest, GroupVersionResource
from tests.gangs.admission.verdicts import nothing_there, problems
from tests.gangs.builders import a_bare_clique, a_bare_set, typed


def template_of(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(defaulted(typed(body)))["spec"]["template"]
    return found


def clique_of(**spec: Any) -> dict[str, Any]:
    body = a_bare_set("web", a_bare_clique(**{"replicas": 3, "podSpec": {"containers": []}, **spec}))
    found: dict[str, Any] = template_of(body)["cliques"][0]["spec"]
    return found


def test_the_namespace_is_default() -> None:
    assert defaulted(typed(a_bare_set())).metadata.namespace == "default"
    elsewhere = {**a_bare_set(), "metadata": {"name": "web", "namespace": "team-a"}}
    assert defaulted(typed(elsewhere)).metadata.namespace == "team-a"


def test_a_template_gets_what_gangs_need() -> None:
    template = template_of(a_bare_set())
    assert template["terminationDelay"] == "4h"
    assert template["headlessServiceConfig"] == {"publishNotReadyAddresses": True}
    assert template["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"


def test_what_was_said_of_a_template_stays() -> None:
    said: dict[str, Any] = {
        "terminationDelay": "1m",
        "headlessServiceConfig": {"publishNotReadyAddresses": False},
        "cliqueStartupType": "CliqueStartupTypeInOrder",
    }
    assert template_of(a_bare_set(**said)).items() >= said.items()


CLIQUES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a role is the clique's name": ({}, {"roleName": "workers"}),
    "a role that was given": ({"roleName": "leader"}, {"roleName": "leader"}),
    "all pods start together": ({}, {"replicas": 3, "minAvailable": 3}),
    "a minimum that was given": ({"minAvailable": 1}, {"replicas": 3, "minAvailable": 1}),
    "no replicas become one, and the minimum is what was written": (
        {"replicas": 0},
        {"replicas": 1, "minAvailable": 0},
    ),
    "no replicas and a minimum of one": ({"replicas": 0, "minAvailable": 1}, {"replicas": 1, "minAvailable": 1}),
    "autoscaling starts at the replicas": (
        {"autoScalingConfig": {"maxReplicas": 9}},
        {"autoScalingConfig": {"minReplicas": 3, "maxReplicas": 9}},
    ),
    "a lower bound that was given": (
        {"autoScalingConfig": {"minReplicas": 4, "maxReplicas": 9}},
        {"autoScalingConfig": {"minReplicas": 4, "maxReplicas": 9}},
    ),
    "pods restart and have half a minute to end": (
        {},
        {"podSpec": {"containers": [], "restartPolicy": "Always", "terminationGracePeriodSeconds": 30}},
    ),
    "pods that are told otherwise": (
        {"podSpec": {"restartPolicy": "OnFailure", "terminationGracePeriodSeconds": 0}},
        {"podSpec": {"restartPolicy": "OnFailure", "terminationGracePeriodSeconds": 0}},
    ),
}


@pytest.mark.parametrize(("spec", "expected"), CLIQUES.values(), ids=CLIQUES.keys())
def test_a_clique(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    assert clique_of(**spec).items() >= expected.items()


def test_a_clique_of_no_pods_is_refused_by_its_minimum() -> None:
    filled = msgspec.to_builtins(defaulted(typed(a_bare_set("web", a_bare_clique(replicas=0)))))
    assert problems(filled) == ["spec.template.cliques[0].spec.minAvailable: Invalid value: 0: must be greater than 0"]


def test_a_scaling_group_is_there_once_and_scales_from_its_replicas() -> None:
    groups: list[dict[str, Any]] = [
        {"name": "a", "cliqueNames": ["workers"]},
        {"name": "b", "cliqueNames": ["workers"], "replicas": 4, "scaleConfig": {"maxReplicas": 9}},
    ]
    found = template_of(a_bare_set(podCliqueScalingGroups=groups))["podCliqueScalingGroups"]
    assert found == [
        {"name": "a", "cliqueNames": ["workers"], "replicas": 1, "minAvailable": 1},
        {**groups[1], "minAvailable": 1, "scaleConfig": {"minReplicas": 4, "maxReplicas": 9}},
    ]


def test_done_twice_nothing_more_is_filled_in() -> None:
    once = defaulted(
        typed(a_bare_set("web", a_bare_clique(replicas=0), podCliqueScalingGroups=[{"name": "a", "cliqueNames": []}]))
    )
    assert defaulted(once) == once


async def test_fields_that_nobody_knows_are_kept() -> None:
    """As API servers send it: a patch that only adds."""
    body = a_bare_set(
        "web",
        {"name": "a", "later": 1, "spec": {"replicas": 1, "podSpec": {"containers": [{"name": "x"}]}, "new": {}}},
        {"name": "b", "spec": {"replicas": 2, "podSpec": {"containers": [], "tomorrow": ["y"]}}},
        coming="soon",
    )
    [webhook] = [one for one in gang_webhooks(nothing_there(), GangSettings(), Backends(())) if one.kind == "mutating"]
    request = AdmissionRequest(
        uid="1",
        resource=GroupVersionResource(group="grove.io", version="v1alpha1", resource="podcliquesets"),
        object=msgspec.Raw(msgspec.json.encode(body)),
    )
    verdict = await webhook.review(request)
    assert isinstance(verdict, Patched)
    assert {operation["op"] for operation in verdict.operations} == {"add"}
    template = apply(verdict.operations, body)["spec"]["template"]
    assert template["coming"] == "soon"
    first, second = template["cliques"]
    assert (first["later"], first["spec"]["new"], first["spec"]["podSpec"]["containers"]) == (1, {}, [{"name": "x"}])
    assert (second["spec"]["podSpec"]["tomorrow"], second["spec"]["minAvailable"]) == (["y"], 2)
