"""The same objects before a real server and before our plugins: what is set and what is refused must be the same."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import msgspec
import pytest

from shoal.cluster.apiserver.admission import Chain
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import Refused
from shoal.cluster.kubernetes import RealKubernetes
from shoal.cluster.kubernetes import Refused as RealRefusal
from tests.cluster.apiserver.admission.memory import POD, Memory, a_container, asking, creating
from tests.support.waiting import wait_until

QUOTA = {
    "metadata": {"name": "q"},
    "spec": {"hard": {"requests.cpu": "2", "limits.memory": "1Gi", "requests.nvidia.com/gpu": "2", "pods": "9"}},
}
BEST_EFFORT = {"metadata": {"name": "besteffort"}, "spec": {"hard": {"pods": "0"}, "scopes": ["BestEffort"]}}
RANGE = {
    "metadata": {"name": "l"},
    "spec": {
        "limits": [
            {
                "type": "Container",
                "max": {"cpu": "1"},
                "min": {"cpu": "100m"},
                "default": {"cpu": "500m"},
                "defaultRequest": {"cpu": "200m", "memory": "64Mi"},
                "maxLimitRequestRatio": {"cpu": "3"},
            },
            {"type": "Pod", "max": {"cpu": "1500m"}},
        ]
    },
}
SMALL = a_container(**asking({"cpu": "500m", "memory": "1Mi"}, {"cpu": "1", "memory": "1Mi"}))


def sized(requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    return {"containers": [a_container(**asking(requests, limits))]}


PODS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "plain": ([], {"containers": [a_container()]}),
    "two containers": ([], {"containers": [a_container(), a_container("d")], "initContainers": [a_container("i")]}),
    "no token": ([], {"containers": [a_container()], "automountServiceAccountToken": False}),
    "its tolerations": ([], {"containers": [a_container()], "tolerations": [{"operator": "Exists"}]}),
    "no such account": ([], {"containers": [a_container()], "serviceAccountName": "zz"}),
    "no such class": ([], {"containers": [a_container()], "priorityClassName": "zz"}),
    "a system class": ([], {"containers": [a_container()], "priorityClassName": "system-cluster-critical"}),
    "a priority": ([], {"containers": [a_container()], "priority": 5}),
    "a policy": ([], {"containers": [a_container()], "preemptionPolicy": "Never"}),
    "no such runtime": ([], {"containers": [a_container()], "runtimeClassName": "zz"}),
    "an overhead": ([], {"containers": [a_container()], "overhead": {"cpu": "1"}}),
    "defaults": ([RANGE], {"containers": [a_container(), a_container("d")], "initContainers": [a_container("e")]}),
    "some defaults": ([RANGE], sized({"cpu": "300m"}, {})),
    "out of range": ([RANGE], sized({"cpu": "10m"}, {"cpu": "2"})),
    "stretched": ([RANGE], sized({"cpu": "100m"}, {"cpu": "1"})),
    "too much together": ([RANGE], {"containers": [SMALL, SMALL | {"name": "d"}]}),
    "nothing said": ([QUOTA], {"containers": [a_container(), a_container("b")]}),
    "within quota": ([QUOTA], sized({"cpu": "1"}, {"memory": "1Gi", "cpu": "1"})),
    "too much": (
        [QUOTA],
        sized({"cpu": "3", "nvidia.com/gpu": "4"}, {"cpu": "3", "memory": "2Gi", "nvidia.com/gpu": "4"}),
    ),
    "only one too much": ([QUOTA], sized({"cpu": "2100m"}, {"cpu": "3", "memory": "1Mi"})),
    "best effort": ([BEST_EFFORT], {"containers": [a_container()]}),
    "not best effort": ([BEST_EFFORT], {"containers": [SMALL]}),
}


def test_pods_are_completed_and_refused_as_by_a_real_server(kube: RealKubernetes, namespace: str) -> None:
    """One test for all: the limits change little by little, and the server takes notice in its own time."""
    root = f"/api/v1/namespaces/{namespace}"
    differences = []
    present: list[Any] = []
    state = counted_state(kube, root, [])
    for title, (limits, spec) in PODS.items():
        if limits != present:
            for each in present:
                kube.admin.request("DELETE", f"{root}/{_resource(each)}/{each['metadata']['name']}")
            for each in limits:
                kube.admin.request("POST", f"{root}/{_resource(each)}", each)
            present = limits
            state = counted_state(kube, root, limits)
            _settle(kube, root, limits)
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace}, "spec": spec}
        theirs = _real(kube, root, copy.deepcopy(pod))
        ours = _ours(state, copy.deepcopy(pod))
        if ours != theirs:
            differences.append(f"{title}:\n  ours   {ours}\n  theirs {theirs}")
    assert not differences, "\n".join(differences)


def counted_state(kube: RealKubernetes, root: str, limits: list[Any]) -> Memory:
    def read() -> Memory:
        state = Memory()
        namespace = kube.admin.request("GET", root)
        state.put("namespaces", namespace)
        lists = {"serviceaccounts": root, "limitranges": root, "resourcequotas": root}
        for resource, place in lists.items():
            for item in kube.admin.request("GET", f"{place}/{resource}")["items"]:
                state.put(resource, item)
        for item in kube.admin.request("GET", "/apis/scheduling.k8s.io/v1/priorityclasses")["items"]:
            state.put("priorityclasses.scheduling.k8s.io", item)
        return state

    wanted = {each["metadata"]["name"] for each in limits if "hard" in each["spec"]}

    def is_counted() -> bool:
        quotas = read().list("resourcequotas")
        return {each["metadata"]["name"] for each in quotas if (each.get("status") or {}).get("used")} == wanted

    wait_until(is_counted, "the quotas to be counted")
    return read()


def _settle(kube: RealKubernetes, root: str, limits: list[Any]) -> None:
    """Waits until the server's plugins have seen the limits: what shows it is refused, or given defaults."""
    spec = sized({"cpu": "50"}, {"cpu": "50"}) if limits else sized({"cpu": "1"}, {"cpu": "1"})
    pod = {"metadata": {"name": "p"}, "spec": spec if limits != [BEST_EFFORT] else {"containers": [a_container()]}}

    def is_known() -> bool:
        is_refused = isinstance(_real(kube, root, copy.deepcopy(pod)), tuple)
        return is_refused is bool(limits)

    wait_until(is_known, "the limits to be known")


def _real(kube: RealKubernetes, root: str, pod: Object) -> Any:
    try:
        return _set_by_admission(kube.admin.request("POST", f"{root}/pods?dryRun=All", pod))
    except RealRefusal as refusal:
        return refusal.status, str(refusal).partition(" was refused: ")[2].removesuffix(f" ({refusal.status})")


def _ours(state: Memory, pod: Object) -> Any:
    # What a server does with every pod before admission: requests follow limits.
    for container in (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())):
        resources = container["resources"]
        resources["requests"] = (resources.get("limits") or {}) | (resources.get("requests") or {})
    request = creating(POD, pod, dry_run=True)

    async def admit() -> None:
        chain = Chain(state)
        await chain.mutate(request)
        await chain.validate(request)

    try:
        asyncio.run(admit())
    except Refused as refusal:
        return refusal.status.code, refusal.status.message
    assert request.object is not None
    return _set_by_admission(request.object)


def _set_by_admission(pod: Object) -> Any:
    spec = pod["spec"]
    name = next((each["name"] for each in spec.get("volumes") or () if "projected" in each), "none")
    fields = ("serviceAccountName", "serviceAccount", "tolerations", "priority", "preemptionPolicy", "volumes")
    seen = {field: spec.get(field) for field in fields}
    seen["annotations"] = pod["metadata"].get("annotations")
    for field in ("containers", "initContainers"):
        seen[field] = [
            (
                each["name"],
                {key: value for key, value in each["resources"].items() if value},
                each.get("volumeMounts"),
            )
            for each in spec.get(field) or ()
        ]
    return msgspec.json.decode(msgspec.json.encode(seen).replace(name.encode(), b"NAME"))


def _resource(value: Any) -> str:
    return "resourcequotas" if "hard" in value["spec"] else "limitranges"


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_a_real_server_keeps_the_same_namespaces(kube: RealKubernetes, name: str) -> None:
    with pytest.raises(RealRefusal, match="this namespace may not be deleted"):
        kube.admin.request("DELETE", f"/api/v1/namespaces/{name}?dryRun=All")
