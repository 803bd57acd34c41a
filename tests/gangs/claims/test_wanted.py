from __future__ import annotations

from typing import Any

import pytest

from shoal.api.grove import PodCliqueSet
from shoal.api.meta import Document
from shoal.gangs import plan
from shoal.gangs.claims import (
    clique_claims,
    external_templates,
    group_claims,
    replica_claims,
    set_claims,
    split,
    template_specs,
)
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set, typed

OF_SET = {
    "app.kubernetes.io/managed-by": "grove-operator",
    "app.kubernetes.io/part-of": "web",
    "app.kubernetes.io/component": "resource-claim",
}


def a_template_spec(device_class: str = "gpu") -> dict[str, Any]:
    return {"spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": device_class}}]}}}


def a_sharing(name: str, scope: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "scope": scope, **fields}


def a_sharing_set(**template: Any) -> PodCliqueSet:
    """A set ``web`` with a clique ``api`` of its own, and ``gpu`` and ``cpu`` in a group ``pair``."""
    cliques = [
        a_clique_template("api", resourceSharing=template.pop("of_clique", [])),
        a_clique_template("gpu"),
        a_clique_template("cpu"),
    ]
    group = a_scaling_group_template("pair", ["gpu", "cpu"], 2, resourceSharing=template.pop("of_group", []))
    own = [{"name": name, "templateSpec": a_template_spec()} for name in template.pop("own", ["net", "disk"])]
    return typed(a_set("web", *cliques, groups=[group], resourceClaimTemplates=own, **template))


def names_and_labels(claims: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Each claim by name, with the labels that not all claims of a set have."""
    return {
        claim["metadata"]["name"]: {
            key: value for key, value in claim["metadata"]["labels"].items() if OF_SET.get(key) != value
        }
        for claim in claims
    }


SHARED = [a_sharing("net", "AllReplicas"), a_sharing("disk", "PerReplica")]


def test_a_set_has_what_all_replicas_share_and_each_replica_its_own() -> None:
    pcs = a_sharing_set(resourceSharing=SHARED)
    assert names_and_labels(set_claims(pcs)) == {"web-all-net": {}}
    assert names_and_labels(replica_claims(pcs, 3)) == {"web-3-disk": {"grove.io/podcliqueset-replica-index": "3"}}


def test_a_scaling_group_has_what_all_replicas_share_and_each_replica_its_own() -> None:
    pcs = a_sharing_set(of_group=SHARED)
    [group] = pcs.spec.template.pod_clique_scaling_groups
    of_group = {"grove.io/podcliquescalinggroup": "web-0-pair"}
    assert names_and_labels(group_claims(pcs, group, "web-0-pair", 2)) == {
        "web-0-pair-all-net": of_group,
        "web-0-pair-0-disk": {**of_group, "grove.io/podcliquescalinggroup-replica-index": "0"},
        "web-0-pair-1-disk": {**of_group, "grove.io/podcliquescalinggroup-replica-index": "1"},
    }


def test_a_clique_has_what_all_pods_share_and_each_pod_its_own() -> None:
    pcs = a_sharing_set(of_clique=SHARED)
    [planned] = plan.standalone_cliques(pcs, 1)
    of_clique = {"grove.io/podclique": "web-1-api"}
    assert names_and_labels(clique_claims(pcs, planned, 2)) == {
        "web-1-api-all-net": of_clique,
        "web-1-api-0-disk": {**of_clique, "grove.io/podclique-pod-index": "0"},
        "web-1-api-1-disk": {**of_clique, "grove.io/podclique-pod-index": "1"},
    }


def test_a_claim_is_whole() -> None:
    pcs = a_sharing_set(resourceSharing=[a_sharing("net", "AllReplicas")])
    assert set_claims(pcs) == [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "web-all-net", "namespace": "default", "labels": OF_SET},
            "spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}},
        }
    ]


def test_what_is_kept_true_of_a_claim_is_all_but_its_spec() -> None:
    [claim] = set_claims(a_sharing_set(resourceSharing=[a_sharing("net", "AllReplicas")]))
    kept, initial = split(claim)
    assert "spec" not in kept
    assert initial == {"spec": claim["spec"]}
    assert {**kept, **initial} == claim


def an_external(namespace: str, name: str, device_class: str) -> Document:
    metadata = {"namespace": namespace, "name": name}
    return Document.of({"metadata": metadata, "spec": a_template_spec(device_class)})


@pytest.mark.parametrize(
    ("sharing", "own", "device_class"),
    [
        pytest.param(a_sharing("net", "AllReplicas"), ["net"], "gpu", id="one of the set hides one of its namespace"),
        pytest.param(a_sharing("net", "AllReplicas"), [], "here", id="one of the set's namespace"),
        pytest.param(a_sharing("net", "AllReplicas", namespace="far"), [], "there", id="one of another namespace"),
    ],
)
def test_a_template_is_the_sets_own_or_one_beside_it(
    sharing: dict[str, Any], own: list[str], device_class: str
) -> None:
    pcs = a_sharing_set(resourceSharing=[sharing], own=own)
    found = template_specs([an_external("default", "net", "here"), an_external("far", "net", "there")])
    [claim] = set_claims(pcs, templates=found)
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == device_class


def test_a_claim_whose_template_is_missing_keeps_no_other_claim_away() -> None:
    pcs = a_sharing_set(resourceSharing=[a_sharing("lost", "AllReplicas"), a_sharing("net", "AllReplicas")])
    assert [claim["metadata"]["name"] for claim in set_claims(pcs)] == ["web-all-net"]


def test_a_set_names_the_templates_that_it_needs_from_outside() -> None:
    pcs = a_sharing_set(
        own=["net"],
        resourceSharing=[a_sharing("net", "AllReplicas"), a_sharing("a", "AllReplicas")],
        of_group=[a_sharing("b", "PerReplica", namespace="far")],
        of_clique=[a_sharing("c", "PerReplica"), a_sharing("a", "PerReplica")],
    )
    assert external_templates(pcs) == [("default", "a"), ("far", "b"), ("default", "c")]
