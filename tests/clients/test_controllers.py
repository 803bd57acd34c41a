"""Kubernetes' own controllers and scheduler work with the embedded server as they do with the real one."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from shoal.cluster.kubernetes import AdminApi, Binaries
from tests.clients.companions import Companions, companions
from tests.support.clusters.embedded import running_embedded
from tests.support.clusters.real import kubectl_for
from tests.support.programs.kubectl import Kubectl
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

MERGE = "application/merge-patch+json"
OWNERS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "owners.clients.example.com"},
    "spec": {
        "group": "clients.example.com",
        "scope": "Namespaced",
        "names": {"plural": "owners", "singular": "owner", "kind": "Owner"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


class Cluster:
    """The server with its controllers, in the words of the tests."""

    def __init__(self, admin: AdminApi, kubectl: Kubectl, controllers: Companions) -> None:
        self.admin = admin
        self.kubectl = kubectl
        self.controllers = controllers

    def namespace(self, name: str) -> str:
        """A new namespace, once its default account is there."""
        self.admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        self.wait_for(f"/api/v1/namespaces/{name}/serviceaccounts/default")
        return name

    def get(self, path: str) -> Any:
        return self.admin.request("GET", path)

    def wait_for(self, path: str) -> Any:
        wait_until(lambda: self.admin.exists(path), path)
        return self.get(path)

    def items(self, path: str) -> list[Any]:
        found: list[Any] = self.get(path)["items"]
        return found

    def pods(self, namespace: str) -> list[Any]:
        return self.items(f"/api/v1/namespaces/{namespace}/pods")

    def patch_status(self, path: str, status: dict[str, Any]) -> None:
        self.admin.request("PATCH", f"{path}/status", {"status": status}, content_type=MERGE)

    def run_pod(self, pod: Any, address: str) -> None:
        """Says of a pod what a kubelet would say once it runs."""
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        ready = [
            {"type": kind, "status": "True"} for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ]
        self.patch_status(
            path, {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": ready}
        )


@pytest.fixture(scope="module")
def cluster(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    data_dir = tmp_path_factory.mktemp("controlled")
    with running_embedded(data_dir) as server:
        kubectl = kubectl_for(server.kubeconfig, tmp_path_factory.mktemp("kubectl"))
        # The collector looks for new kinds at its start, and every half a minute.
        server.admin.define([OWNERS])
        with companions(binaries, server, data_dir) as controllers:
            yield Cluster(server.admin, kubectl, controllers)


def a_deployment(name: str, *, replicas: int, scheduler: str = "nobody", image: str = "nginx:1") -> dict[str, Any]:
    labels = {"app": name}
    pod = {
        "schedulerName": scheduler,
        "containers": [{"name": "main", "image": image, "ports": [{"containerPort": 80}]}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def test_each_elects_a_leader(cluster: Cluster) -> None:
    for name in ("kube-controller-manager", "kube-scheduler"):
        lease = cluster.wait_for(f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}")
        assert lease["spec"]["holderIdentity"]


def test_every_namespace_gets_its_account_and_the_authority(cluster: Cluster) -> None:
    for namespace in ("default", "kube-system", cluster.namespace("accounts")):
        cluster.wait_for(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
        authority = cluster.wait_for(f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt")
        assert "BEGIN CERTIFICATE" in authority["data"]["ca.crt"]


def test_a_deployment_is_rolled_out_restarted_and_undone(cluster: Cluster) -> None:
    namespace = cluster.namespace("rollout")
    kubectl = cluster.kubectl
    kubectl.apply(a_deployment("web", replicas=2), namespace=namespace)
    wait_until(lambda: len(cluster.pods(namespace)) == 2, "two pods")
    for number, pod in enumerate(cluster.pods(namespace)):
        cluster.run_pod(pod, f"192.0.2.{number + 1}")
    kubectl("rollout", "status", "deployment/web", "--timeout=20s", namespace=namespace)
    kubectl("wait", "deployment/web", "--for=condition=Available", "--timeout=20s", namespace=namespace)

    kubectl("rollout", "restart", "deployment/web", namespace=namespace)
    sets = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
    wait_until(lambda: len(cluster.items(sets)) == 2, "a second ReplicaSet")
    history = kubectl("rollout", "history", "deployment/web", namespace=namespace)
    assert history.split("\n")[2:4] == ["1         <none>", "2         <none>"]
    kubectl("rollout", "undo", "deployment/web", namespace=namespace)
    wait_until(
        lambda: "3 " in kubectl("rollout", "history", "deployment/web", namespace=namespace), "the third revision"
    )
    assert len(cluster.items(sets)) == 2


def test_endpoints_follow_pods(cluster: Cluster) -> None:
    namespace = cluster.namespace("endpoints")
    cluster.kubectl.apply(a_deployment("web", replicas=1), namespace=namespace)
    cluster.kubectl("expose", "deployment", "web", "--port=80", namespace=namespace)
    wait_until(lambda: cluster.pods(namespace), "a pod")
    pod = cluster.pods(namespace)[0]

    def addresses() -> list[tuple[str, bool]]:
        slices = cluster.items(f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices")
        ends = [end for one in slices for end in one["endpoints"] or ()]
        return [(end["addresses"][0], end["conditions"]["ready"]) for end in ends]

    assert addresses() == []
    cluster.admin.request("POST", "/api/v1/nodes", {"metadata": {"name": "endpoints"}})
    path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}"
    target = {"apiVersion": "v1", "kind": "Node", "name": "endpoints"}
    cluster.admin.request("POST", f"{path}/binding", {"metadata": {"name": pod["metadata"]["name"]}, "target": target})
    cluster.run_pod(pod, "192.0.2.7")
    wait_until(lambda: addresses() == [("192.0.2.7", True)], "the pod's address")
    endpoints = cluster.wait_for(f"/api/v1/namespaces/{namespace}/endpoints/web")
    wait_until(
        lambda: (
            cluster.get(f"/api/v1/namespaces/{namespace}/endpoints/web")
            .get("subsets", [{}])[0]
            .get("addresses", [{}])[0]
            .get("ip")
            == "192.0.2.7"
        ),
        f"Endpoints with the address, not {endpoints}",
    )
    cluster.kubectl("scale", "deployment", "web", "--replicas=0", namespace=namespace)
    wait_until(lambda: addresses() == [("192.0.2.7", False)], "the address of a pod that ends")
    cluster.kubectl("delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force", namespace=namespace)
    wait_until(lambda: addresses() == [], "no address")


def test_a_job_is_complete_when_its_pod_succeeded(cluster: Cluster) -> None:
    namespace = cluster.namespace("jobs")
    cluster.kubectl("create", "job", "once", "--image=busybox", namespace=namespace)
    wait_until(lambda: cluster.pods(namespace), "a pod")
    pod = cluster.pods(namespace)[0]
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    cluster.patch_status(f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}", {"phase": "Succeeded"})
    cluster.kubectl("wait", "job/once", "--for=condition=Complete", "--timeout=20s", namespace=namespace)
    job = cluster.get(f"/apis/batch/v1/namespaces/{namespace}/jobs/once")
    assert job["status"]["succeeded"] == 1
    wait_until(lambda: "finalizers" not in cluster.pods(namespace)[0]["metadata"], "the pod's finalizer to go")
    cluster.kubectl("delete", "job", "once", namespace=namespace)
    wait_until(lambda: not cluster.pods(namespace), "the pod to go")


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_garbage_is_collected_as_the_deletion_asks(cascade: str, cluster: Cluster) -> None:
    namespace = cluster.namespace(f"garbage-{cascade}")
    cluster.kubectl.apply(a_deployment("web", replicas=2), namespace=namespace)
    wait_until(lambda: len(cluster.pods(namespace)) == 2, "two pods")
    sets = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
    cluster.kubectl("delete", "deployment", "web", f"--cascade={cascade}", "--timeout=30s", namespace=namespace)
    match cascade:
        case "orphan":
            assert "ownerReferences" not in cluster.items(sets)[0]["metadata"]
            assert len(cluster.pods(namespace)) == 2
        case "foreground":
            assert cluster.items(sets) == []
            assert cluster.pods(namespace) == []
        case "background":
            wait_until(lambda: not cluster.items(sets) and not cluster.pods(namespace), "all to go")


def test_custom_objects_are_collected_too(cluster: Cluster) -> None:
    namespace = cluster.namespace("garbage-custom")
    path = f"/apis/clients.example.com/v1/namespaces/{namespace}/owners"
    head = {"apiVersion": "clients.example.com/v1", "kind": "Owner"}
    owner = cluster.admin.request("POST", path, {**head, "metadata": {"name": "owner"}})
    reference = {**head, "name": "owner", "uid": owner["metadata"]["uid"]}
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    cluster.admin.request("POST", maps, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
    cluster.admin.request("DELETE", f"{path}/owner")
    wait_until(lambda: not cluster.admin.exists(f"{maps}/owned"), "the owned object to go")


def test_a_deleted_namespace_ends_with_everything_in_it(cluster: Cluster) -> None:
    namespace = cluster.namespace("ending")
    cluster.kubectl.apply(a_deployment("web", replicas=2), namespace=namespace)
    cluster.kubectl("create", "configmap", "one", namespace=namespace)
    wait_until(lambda: len(cluster.pods(namespace)) == 2, "two pods")
    cluster.kubectl("delete", "namespace", namespace, "--timeout=30s")
    assert not cluster.admin.exists(f"/api/v1/namespaces/{namespace}")


def test_a_namespace_waits_for_a_finalizer_and_says_so(cluster: Cluster) -> None:
    namespace = cluster.namespace("held")
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    cluster.admin.request("POST", maps, {"metadata": {"name": "held", "finalizers": ["example.com/held"]}})
    cluster.admin.request("DELETE", f"/api/v1/namespaces/{namespace}")

    def remaining() -> bool:
        conditions = cluster.get(f"/api/v1/namespaces/{namespace}")["status"].get("conditions", ())
        return any(
            one["type"] == "NamespaceFinalizersRemaining"
            and one["status"] == "True"
            and "example.com/held" in one["message"]
            for one in conditions
        )

    wait_until(remaining, "the condition")
    cluster.admin.request("PATCH", f"{maps}/held", {"metadata": {"finalizers": None}}, content_type=MERGE)
    wait_until(lambda: not cluster.admin.exists(f"/api/v1/namespaces/{namespace}"), "the namespace to go", within=60)


def test_a_quota_counts_what_is_there(cluster: Cluster) -> None:
    namespace = cluster.namespace("quota")
    cluster.kubectl("create", "quota", "limit", "--hard=configmaps=3", namespace=namespace)
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/limit"
    wait_until(
        lambda: cluster.get(path)["status"].get("used") == {"configmaps": "1"}, "the quota to count kube-root-ca.crt"
    )
    cluster.kubectl("create", "configmap", "one", namespace=namespace)
    wait_until(lambda: cluster.get(path)["status"]["used"] == {"configmaps": "2"}, "the quota to count both")
    cluster.kubectl("create", "configmap", "two", namespace=namespace)
    refused = cluster.kubectl.run("create", "configmap", "three", namespace=namespace)
    assert "exceeded quota: limit, requested: configmaps=1, used: configmaps=3, limited: configmaps=3" in refused.stderr


def test_the_scheduler_binds_pods_to_nodes_that_have_room(cluster: Cluster) -> None:
    namespace = cluster.namespace("scheduling")
    resources = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    for name in ("first", "second"):
        cluster.admin.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": stamp}
        cluster.patch_status(
            f"/api/v1/nodes/{name}", {"capacity": resources, "allocatable": resources, "conditions": [ready]}
        )
    deployment = a_deployment("web", replicas=5, scheduler="default-scheduler")
    deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    cluster.kubectl.apply(deployment, namespace=namespace)

    def bound() -> list[str]:
        return sorted(pod["spec"]["nodeName"] for pod in cluster.pods(namespace) if "nodeName" in pod["spec"])

    wait_until(lambda: bound() == ["first", "first", "second", "second"], "four of five pods to be bound")

    def refused() -> bool:
        waiting = [pod for pod in cluster.pods(namespace) if "nodeName" not in pod["spec"]]
        conditions = [one for pod in waiting for one in pod["status"].get("conditions", ())]
        return any(one["reason"] == "Unschedulable" and "Insufficient cpu" in one["message"] for one in conditions)

    wait_until(refused, "the fifth pod to hear why not")
    events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    wait_until(
        lambda: {"Scheduled", "FailedScheduling"} <= {event["reason"] for event in cluster.items(events)}, "events"
    )


def test_a_stateful_set_and_a_daemon_set_make_their_pods(cluster: Cluster) -> None:
    namespace = cluster.namespace("sets")
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "main", "image": "db"}]}}
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    stateful = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 2,
            "serviceName": "db",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "db"}},
            "template": template,
            "volumeClaimTemplates": [claim],
        },
    }
    cluster.kubectl.apply(stateful, namespace=namespace)
    wait_until(
        lambda: [pod["metadata"]["name"] for pod in cluster.pods(namespace)] == ["db-0", "db-1"], "db-0 and db-1"
    )
    claims = cluster.items(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims")
    assert [one["metadata"]["name"] for one in claims] == ["data-db-0", "data-db-1"]
    revisions = cluster.items(f"/apis/apps/v1/namespaces/{namespace}/controllerrevisions")
    assert len(revisions) == 1
    assert json.dumps(revisions[0]["data"]).count('"image": "db"') == 1


def test_an_approved_request_is_signed(cluster: Cluster) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "somebody")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    cluster.kubectl.apply(
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": "somebody"},
            "spec": {
                "request": base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode(),
                "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["client auth"],
            },
        }
    )
    cluster.kubectl("certificate", "approve", "somebody")
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests/somebody"
    wait_until(lambda: cluster.get(path)["status"].get("certificate"), "the certificate")
    signed = x509.load_pem_x509_certificate(base64.b64decode(cluster.get(path)["status"]["certificate"]))
    assert signed.subject == subject


def test_their_logs_hold_no_complaint(cluster: Cluster) -> None:
    """Runs last: what all tests before it made the controllers do is in the logs."""
    assert cluster.controllers.complaints() == []
