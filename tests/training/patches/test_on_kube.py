"""The merge of patches against a real Kubernetes: its API server's, and kubectl's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from shoal.cluster.kubernetes import RealKubernetes, Refused
from shoal.training.patches import strategic_merge
from tests.support.clusters.real import namespace_for
from tests.support.programs.kubectl import Kubectl
from tests.training.patches.pods import template_patches, templates

STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture(scope="module")
def place(kube: RealKubernetes) -> Iterator[str]:
    """Where pod templates are, in a namespace for all tests here."""
    with namespace_for("merge", kube.admin) as name:
        yield f"/api/v1/namespaces/{name}/podtemplates"


@given(original=templates, patch=template_patches)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_real_server_would_have_stored_the_same(
    kube: RealKubernetes, place: str, original: dict[str, Any], patch: dict[str, Any]
) -> None:
    """The server's own merge is asked for, and ours is given to it whole: it says the same of both."""
    made = kube.admin.request("POST", place, {"metadata": {"generateName": "t-"}, "template": original})
    path = f"{place}/{made['metadata']['name']}?dryRun=All"
    merged = {**made, "template": strategic_merge(made["template"], patch)}
    theirs = _answer(kube, "PATCH", path, {"template": patch}, STRATEGIC)
    ours = _answer(kube, "PUT", path, merged, "application/json")
    assert ours == theirs


def _answer(kube: RealKubernetes, method: str, path: str, body: dict[str, Any], content_type: str) -> Any:
    try:
        return kube.admin.request(method, path, body, content_type=content_type)["template"]
    except Refused as refusal:
        return refusal.status, str(refusal).partition(" was refused: ")[2]


NODE = {
    "name": "node",
    "image": "i",
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}],
    "volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}],
}
TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [NODE], "volumes": [{"name": "v", "emptyDir": {}}]},
}
PATCHES: dict[str, dict[str, Any]] = {
    "variables": {"containers": [{"name": "node", "env": [{"name": "A", "value": "2"}, {"name": "N", "value": "2"}]}]},
    "mounts": {
        "containers": [
            {"name": "node", "volumeMounts": [{"name": "w", "mountPath": "/c"}, {"name": "w", "mountPath": "/a"}]}
        ],
        "volumes": [{"name": "w", "configMap": {"name": "c"}}],
    },
    "placement": {
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "s"}],
    },
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES.keys())
def test_kubectl_merges_a_deployments_pods_alike(
    kube: RealKubernetes, kubectl: Kubectl, namespace: str, patch: dict[str, Any]
) -> None:
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
    collection = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    made = kube.admin.request("POST", collection, {"metadata": {"name": "d"}, "spec": spec})
    merged = strategic_merge(made["spec"]["template"], {"spec": patch})
    ours = {**made, "metadata": {"name": "d"}, "spec": {**made["spec"], "template": merged}}
    stored = kube.admin.request("PUT", f"{collection}/d?dryRun=All", ours)
    text = json.dumps({"spec": {"template": {"spec": patch}}})
    theirs = kubectl.json("patch", "deployment", "d", "--type=strategic", "-p", text, namespace=namespace)
    assert stored["spec"]["template"] == theirs["spec"]["template"]
