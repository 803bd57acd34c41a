"""The service and the claims of a JobSet."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.jobset import names
from shoal.training.jobset.claims import mounted_volumes, wanted_claims
from shoal.training.jobset.services import wanted_service
from tests.training.jobset.builders import a_typed_set


@pytest.mark.parametrize(
    ("network", "name", "publishes"),
    [
        pytest.param({}, "train", True, id="by default"),
        pytest.param({"subdomain": "net", "publishNotReadyAddresses": False}, "net", False, id="as it is asked for"),
    ],
)
def test_the_service_is_headless_and_selects_all_pods(network: dict[str, Any], name: str, publishes: bool) -> None:
    assert wanted_service(a_typed_set(network=network)) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "clusterIP": "None",
            "selector": {names.JOB_SET_NAME: "train"},
            "publishNotReadyAddresses": publishes,
        },
    }


def test_pods_without_names_have_no_service() -> None:
    assert wanted_service(a_typed_set(network={"enableDNSHostnames": False})) is None


SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
POLICIES = [
    {"templates": [{"metadata": {"name": "data", "labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": SPEC}]},
    {"templates": [{"metadata": {"name": "model"}, "spec": SPEC}], "retentionPolicy": {"whenDeleted": "Retain"}},
]


def test_each_template_is_a_claim_and_only_what_is_not_kept_is_owned() -> None:
    first, second = wanted_claims(a_typed_set(volumeClaimPolicies=POLICIES))
    assert (first.name, first.is_kept, second.name, second.is_kept) == ("data-train", False, "model-train", True)
    assert first.body == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data-train",
            "namespace": "default",
            "labels": {"a": "b", names.JOB_SET_NAME: "train"},
            "annotations": {"c": "d"},
        },
        "spec": SPEC,
    }
    assert second.body["metadata"]["labels"] == {names.JOB_SET_NAME: "train"}


@pytest.mark.parametrize("containers", ["containers", "initContainers"])
def test_a_pod_gets_the_claims_that_it_mounts(containers: str) -> None:
    spec = {containers: [{"name": "main", "volumeMounts": [{"name": "model", "mountPath": "/m"}]}]}
    assert mounted_volumes(a_typed_set(volumeClaimPolicies=POLICIES), spec) == [
        {"name": "model", "persistentVolumeClaim": {"claimName": "model-train"}}
    ]
