"""The same patches on a real server and here: the objects, or the refusals, must be the same."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from shoal.cluster.apiserver.kinds.decode import decode
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.kinds.tables import builtin_kinds
from shoal.cluster.apiserver.patches import json_patch, merge_patch, strategic_merge
from shoal.cluster.apiserver.refusals import Refused
from shoal.cluster.kubernetes import RealKubernetes
from shoal.cluster.kubernetes import Refused as RealRefusal

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"

CONTAINER = {
    "name": "c",
    "image": "i",
    "args": ["1", "2"],
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}],
    "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}],
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
}
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}, "finalizers": ["x/a", "x/b"], "annotations": {"k": "v"}},
    "spec": {
        "containers": [CONTAINER, {"name": "d", "image": "j"}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "m"}}],
        "tolerations": [{"key": "t", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "s"}],
        "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}],
    },
}
OBJECTS: dict[str, Object] = {
    "deployments": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x", "labels": {"l": "1"}},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
    },
    "services": {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "x"},
        "spec": {
            "selector": {"a": "b"},
            "externalIPs": ["1.1.1.1"],
            "ports": [{"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 81, "targetPort": "http"}],
        },
    },
    "podtemplates": {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": TEMPLATE},
}


def within(**spec: Any) -> Any:
    return {"spec": {"template": {"spec": spec}}}


def container(**more: Any) -> Any:
    return within(containers=[{"name": "c", **more}])


# Fields that a server would complete are given whole, so that only patching is compared.
NEW = {
    "name": "n",
    "image": "k",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "Always",
}
OF_DEPLOYMENTS: list[Any] = [
    {},
    {"metadata": {"labels": {"m": "2", "l": None}}},
    {"spec": {"replicas": 2}},
    container(image="z"),
    within(containers=[NEW]),
    within(containers=[{"name": "d", "$patch": "delete"}]),
    within(containers=[{"name": "c", "$patch": "delete"}, NEW]),
    within(containers=[{"$patch": "replace"}, NEW]),
    within(**{"$setElementOrder/containers": [{"name": "d"}, {"name": "c"}]}),
    within(
        **{
            "$setElementOrder/containers": [{"name": "d"}, {"name": "n"}, {"name": "c"}],
            "containers": [NEW, {"name": "c", "image": "q"}],
        }
    ),
    container(env=[{"name": "B", "value": "9"}]),
    container(env=[{"name": "D", "value": "4"}, {"name": "A", "value": "0"}]),
    container(env=[{"name": "B", "$patch": "delete"}, {"name": "D", "value": None}]),
    container(**{"$setElementOrder/env": [{"name": "C"}, {"name": "A"}, {"name": "D"}], "env": [{"name": "D"}]}),
    container(args=["3"]),
    container(ports=[{"containerPort": 80, "name": "web"}]),
    container(ports=[{"containerPort": 81, "protocol": "TCP"}]),
    within(volumes=[{"name": "v", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s", "defaultMode": 1}}]),
    within(volumes=[{"name": "w", "configMap": {"name": "n"}}]),
    within(tolerations=[{"key": "u", "operator": "Exists"}]),
    within(imagePullSecrets=[{"name": "t"}]),
    within(hostAliases=[{"ip": "5.6.7.8", "hostnames": ["b"]}]),
    within(nodeSelector={"a": "b"}),
    within(securityContext={"$patch": "delete"}),
    within(affinity={"$patch": "replace", "nodeAffinity": {}}),
    {"spec": {"template": {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"]}}}},
    {"spec": {"template": {"metadata": {"finalizers": ["x/c", "x/a"]}}}},
    {"spec": {"template": {"metadata": {"$setElementOrder/finalizers": ["x/b", "x/c"], "finalizers": ["x/c"]}}}},
    {"spec": {"template": {"metadata": {"annotations": None}}}},
    {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
    {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}},
    within(containers=[{"image": "x"}]),
    within(containers=["x"]),
    within(containers=[None]),
    within(containers=[{"name": "c", "$patch": "bogus"}]),
    within(containers=[{"name": "c", "$patch": "merge"}]),
    within(containers=[{"$patch": "delete"}]),
    within(**{"$patch": "bogus"}),
    within(**{"$retainKeys": 5}),
    within(**{"$retainKeys": ["a"], "containers": []}),
    within(**{"$setElementOrder/containers": 5}),
    within(**{"$setElementOrder/containers": [{"name": "x"}], "containers": [{"name": "c", "image": "z"}]}),
    within(**{"$setElementOrder": []}),
    within(**{"$setElementOrder/bogus": [{"name": "v"}]}),
    within(**{"$deleteFromPrimitiveList": [1]}),
    [],
    5,
]
OF_SERVICES: list[Any] = [
    {"spec": {"ports": [{"port": 80, "targetPort": 9090}]}},
    {"spec": {"ports": [{"port": 81, "$patch": "delete"}]}},
    {"spec": {"ports": [{"name": "c", "port": 82, "targetPort": 1, "protocol": "TCP"}]}},
    {"spec": {"$setElementOrder/ports": [{"port": 81}, {"port": 80}]}},
    {"spec": {"selector": {"a": None, "c": "d"}}},
    {"spec": {"externalIPs": ["2.2.2.2"]}},
    {"spec": {"ports": [{"name": "z"}]}},
]
OF_TEMPLATES: list[Any] = [
    {"template": {"spec": {"containers": [{"name": "d", "image": "z"}]}}},
    {"template": {"spec": {"containers": [{"name": "c", "volumeMounts": [{"mountPath": "/w", "name": "w"}]}]}}},
    {"template": {"spec": {"tolerations": None}}},
]
MERGED: list[Any] = [
    {},
    {"spec": {"template": {"spec": {"containers": [NEW]}}}},
    {"metadata": {"labels": None}},
    {"metadata": {"annotations": {"a": None, "b": "c"}}},
    [],
    "x",
]
OPERATIONS: list[Any] = [
    [],
    [{"op": "replace", "path": "/metadata/labels/new", "value": "1"}],
    [{"op": "remove", "path": "/metadata/labels/l"}],
    [{"op": "remove", "path": "/metadata/labels/nope"}],
    [{"op": "add", "path": "/spec/template/metadata/finalizers/-1", "value": "x/c"}],
    [{"op": "copy", "from": "/metadata/labels/l", "path": "/metadata/labels/m"}],
    [{"op": "move", "from": "/metadata/labels/l", "path": "/metadata/labels/m"}],
    [{"op": "test", "path": "/spec/replicas", "value": 0}, {"op": "replace", "path": "/spec/replicas", "value": 1}],
    [{"op": "test", "path": "/spec/replicas", "value": 7}],
    [{"op": "add", "path": "/spec/template/spec/containers/-", "value": NEW}],
    [{"op": "bogus", "path": "/x"}],
    [{"op": "add", "path": 5}],
    [1],
    {},
]
PATCHES: list[tuple[str, str, Any]] = [
    *(("deployments", STRATEGIC, patch) for patch in OF_DEPLOYMENTS),
    *(("services", STRATEGIC, patch) for patch in OF_SERVICES),
    *(("podtemplates", STRATEGIC, patch) for patch in OF_TEMPLATES),
    *(("deployments", MERGE, patch) for patch in MERGED),
    *(("deployments", JSON, patch) for patch in OPERATIONS),
]


@pytest.fixture(scope="module")
def kinds() -> dict[str, Kind]:
    return {kind.resource: kind for kind in builtin_kinds({}) if kind.group in ("", "apps")}


def test_patches_give_what_a_real_server_gives(kube: RealKubernetes, namespace: str, kinds: dict[str, Kind]) -> None:
    """One test for all, since a server of its own is what takes the time."""
    places = {}
    for resource, value in OBJECTS.items():
        root = "/apis/apps/v1" if "/" in value["apiVersion"] else "/api/v1"
        collection = f"{root}/namespaces/{namespace}/{resource}"
        kube.admin.request("POST", collection, value)
        places[resource] = f"{collection}/x"
    differences = []
    for resource, language, patch in PATCHES:
        live = kube.admin.request("GET", places[resource])
        before = copy.deepcopy(live)
        ours = _ours(kinds[resource], language, live, patch)
        theirs: Any
        try:
            theirs = _comparable(
                kube.admin.request("PATCH", f"{places[resource]}?dryRun=All", patch, content_type=language)
            )
        except RealRefusal as refusal:
            theirs = (refusal.status, _message(refusal))
        if ours != theirs:
            differences.append((resource, language, patch, ours, theirs))
        assert live == before
    assert not differences, "\n".join(map(str, differences))


def _ours(kind: Kind, language: str, live: Object, patch: Any) -> Any:
    try:
        if language == STRATEGIC:
            patched = strategic_merge(live, patch, kind.schema)
        else:
            patched = merge_patch(live, patch) if language == MERGE else json_patch(live, patch)
    except Refused as refusal:
        return refusal.status.code, refusal.status.message
    return _comparable(decode(kind.schema, patched, []))


def _message(refusal: RealRefusal) -> str:
    return str(refusal).partition(" was refused: ")[2].removesuffix(f" ({refusal.status})")


def _comparable(value: Object) -> Object:
    metadata = {name: value["metadata"].get(name) for name in ("name", "labels", "finalizers")}
    return {key: value.get(key) for key in ("spec", "template")} | {"metadata": metadata}
