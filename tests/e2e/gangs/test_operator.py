"""The operator and its webhooks apart from everything else, with the rights of deploy/operator.yaml and no others."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.cli.deployment import manifests
from tests.e2e.gangs.operators import MANIFESTS, NAMESPACE, USER, Platform, Running, a_platform
from tests.e2e.gangs.terminal import Terminal
from tests.e2e.rights import check_that_no_right_is_unused
from tests.gangs.builders import a_bare_clique, a_bare_set
from tests.support.clusters.both_engines import ON_EMBEDDED_WITH_KUBECTL, ON_KUBE, audited_engine_options
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import wait_until

QUICK_ELECTION = """\
apiVersion: operator.config.grove.io/v1alpha1
kind: OperatorConfiguration
leaderElection: {enabled: true, leaseDuration: 12s, renewDeadline: 10s, retryPeriod: 500ms, resourceName: quick}
"""


@pytest.fixture(scope="module", params=[ON_EMBEDDED_WITH_KUBECTL, ON_KUBE])
def platform(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("operator")
    engine = audited_engine_options(request.param, request, folder / "audit", namespace=NAMESPACE)
    with a_platform(folder, engine) as platform:
        yield platform


@pytest.fixture
def namespace(platform: Platform, request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.node.originalname.removeprefix("test_").replace("_", "-")[:40].strip("-")
    platform.terminal.type(f"kubectl create namespace {name}")
    yield name
    platform.terminal.type(f"kubectl delete namespace {name} --wait=false")


def a_kai_set(name: str, *, replicas: int = 1, image: str = "busybox") -> str:
    pods = {"schedulerName": "kai-scheduler", "containers": [{"name": "worker", "image": image}]}
    return json.dumps(a_bare_set(name, a_bare_clique(minAvailable=1, podSpec=pods), replicas=replicas))


def pods(platform: Platform, namespace: str) -> list[dict[str, Any]]:
    """Those that are not on their way out."""
    found = json.loads(platform.terminal.type(f"kubectl get pods -n {namespace} -o json"))["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def are_ready(platform: Platform, namespace: str, count: int, image: str = "busybox") -> bool:
    found = pods(platform, namespace)
    return len(found) == count and all(
        pod["spec"]["containers"][0]["image"] == image
        and any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))
        for pod in found
    )


def test_the_whole_life_of_a_set(platform: Platform, namespace: str) -> None:
    terminal = platform.terminal
    env = {**os.environ, "USE_UNIFIED_PODGANG": "false"}
    with platform.webhooks() as webhooks, platform.operator(env=env) as operator:
        terminal.type(f"kubectl apply -n {namespace} -f -", stdin=a_kai_set("life"))
        wait_until(lambda: are_ready(platform, namespace, 2), "the set's pods to be ready")
        defaulted = terminal.type(f"kubectl get pcs life -n {namespace} -o jsonpath='{{.spec.template}}'")
        assert json.loads(defaulted)["terminationDelay"] == "4h"
        gang = json.loads(terminal.type(f"kubectl get podgang life-0 -n {namespace} -o json"))
        terminal.type(f"kubectl get podgroups.scheduling.run.ai -n {namespace} pg-life-0-{gang['metadata']['uid']}")

        refused = terminal.run(f"kubectl apply -n {namespace} -f -", stdin=a_kai_set("life", replicas=-1))
        assert refused.returncode != 0
        assert "spec.replicas" in refused.stderr

        terminal.type(f"kubectl scale pcs life -n {namespace} --replicas=3")
        wait_until(lambda: are_ready(platform, namespace, 6), "three replicas to be ready")

        terminal.type(f"kubectl apply -n {namespace} -f -", stdin=a_kai_set("life", replicas=3, image="alpine"))
        wait_until(lambda: are_ready(platform, namespace, 6, "alpine"), "all pods to be replaced", within=60)

        terminal.type(f"kubectl scale pcs life -n {namespace} --replicas=1")
        wait_until(lambda: are_ready(platform, namespace, 2, "alpine"), "two replicas to go")
        terminal.shows_nothing(f"kubectl get podgangs,services -n {namespace} -o name | grep -v life-0 || true")

        terminal.type(f"kubectl delete pcs life -n {namespace}")
        terminal.shows_nothing(
            f"kubectl get podgangs,podcliques,pods,services,roles,rolebindings,secrets,podgroups.scheduling.run.ai"
            f" -n {namespace} -l app.kubernetes.io/part-of=life -o name"
        )
        for each in (operator, webhooks):
            assert not [line for line in each.told() if "forbidden" in str(line).lower()]
            assert not [line for line in each.told() if line["level"] == "error"]

    assert operator.says("Setting up backend controllers")
    for backend in ("kai", "default", "koordinator", "volcano"):
        assert operator.says("Registered backend controller", backend=backend)
    assert operator.says("Backend controllers registered successfully")
    assert [line["variable"] for line in operator.told() if "variable" in line] == ["USE_UNIFIED_PODGANG"]
    assert operator.says("Processing PodGang with backend", backend="kai", podgang=f"{namespace}/life-0")


def leader(platform: Platform, operators: list[Running]) -> Running:
    """Which of several operators has begun to work."""
    wait_until(lambda: any(worked(each) for each in operators), "an operator to lead")
    return next(each for each in operators if worked(each))


def worked(operator: Running) -> bool:
    return operator.says("Processing PodGang with backend")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_when_the_leader_is_killed_another_goes_on_and_no_pod_is_made_twice(platform: Platform, namespace: str) -> None:
    terminal = platform.terminal
    config = platform.folder / "quick.yaml"
    config.write_text(QUICK_ELECTION)
    options = (f"--config={config}",)
    with (
        terminal.writing(f"kubectl get pods -n {namespace} --watch -o name", platform.folder / "pods") as seen,
        platform.webhooks(),
        platform.operator(*options) as first,
        platform.operator(*options) as second,
    ):
        terminal.type(f"kubectl apply -n {namespace} -f -", stdin=a_kai_set("before", replicas=5))
        killed = leader(platform, [first, second])
        other = second if killed is first else first
        terminal.type(f"kubectl apply -n {namespace} -f -", stdin=a_kai_set("during", replicas=20))
        killed.kill()
        terminal.type(f"kubectl apply -n {namespace} -f -", stdin=a_kai_set("after", replicas=5))
        wait_until(lambda: are_ready(platform, namespace, 60), "the other operator to finish", within=180)
        assert worked(other)
        lease = json.loads(terminal.type(f"kubectl get lease quick -n {NAMESPACE} -o json"))
        assert lease["spec"]["leaseTransitions"] >= 1
        made = pods(platform, namespace)
        wait_until(lambda: len(set(seen.read_text().split())) >= len(made), "the watch to have seen all pods")
    places = [
        (pod["metadata"]["labels"]["grove.io/podclique"], pod["metadata"]["labels"]["grove.io/podclique-pod-index"])
        for pod in made
    ]
    assert len(set(places)) == len(places) == 60
    ever = set(seen.read_text().split())
    assert ever == {f"pod/{pod['metadata']['name']}" for pod in made}, "a pod was made that was not needed"


AUTHORIZER = """\
apiVersion: operator.config.grove.io/v1alpha1
kind: OperatorConfiguration
authorizer: {enabled: true, exemptServiceAccountUserNames: [admin, system:kube-controller-manager]}
"""


def test_with_the_authorizer_what_is_made_for_a_set_is_the_operators_alone(platform: Platform, namespace: str) -> None:
    terminal = platform.terminal
    config = platform.folder / "authorizer.yaml"
    config.write_text(AUTHORIZER)
    as_ann = "--as=ann --as-group=system:masters"
    with platform.webhooks(f"--config={config}") as webhooks, platform.operator(f"--config={config}") as operator:
        wait_until(lambda: webhooks.says("webhooks registered", name="authorizer-webhook"), "the authorizer")
        terminal.type(f"kubectl apply -n {namespace} -f -", stdin=a_kai_set("guarded"))
        wait_until(lambda: are_ready(platform, namespace, 2), "the set's pods to be ready")

        for change in ("label podclique guarded-0-workers a=b", "delete podgang guarded-0"):
            refused = terminal.run(f"kubectl -n {namespace} {change} {as_ann}")
            assert refused.returncode != 0, change
            assert "ann" in refused.stderr
        one = pods(platform, namespace)[0]["metadata"]["name"]
        terminal.type(f"kubectl delete pod {one} -n {namespace} {as_ann}")
        wait_until(lambda: are_ready(platform, namespace, 2), "the pod to be replaced")
        assert one not in [pod["metadata"]["name"] for pod in pods(platform, namespace)]

        terminal.type(f"kubectl delete pcs guarded -n {namespace} {as_ann}")
        terminal.shows_nothing(f"kubectl get podgangs,podcliques,pods -n {namespace} -o name")
        assert not [line for line in operator.told() if "denied" in str(line)]
    with platform.webhooks():
        terminal.shows_nothing("kubectl get validatingwebhookconfigurations -o name | grep authorizer || true")


@pytest.mark.kube
def test_deployed_as_a_pod_its_log_tells_of_backends(tmp_path: Path) -> None:
    """The document's own commands, on a cluster whose node runs the operator as deploy/operator.yaml says."""
    shoal = Shoal(tmp_path / "data", "--only=api,controllers,scheduler,nodes", has_local_node=True)
    shoal.data_dir.mkdir()
    image = {"match": "shoal:*", "directory": sys.prefix}
    (shoal.data_dir / "images.yaml").write_text(json.dumps({"images": [image]}))
    # Webhooks are left out: the API server of this cluster does not reach the network of its pods.
    deployed = [each for each in manifests("grove-system") if each["metadata"]["name"] != "shoal-webhooks"]
    with shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready")
        terminal = Terminal(shoal.kubeconfig, tmp_path / "kubectl")
        terminal.type("kubectl apply -f -", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": deployed}))
        terminal.type("kubectl rollout status -n grove-system deployment/grove-operator --timeout=60s")
        terminal.type("kubectl apply -f -", stdin=a_kai_set("test-kai"))
        terminal.shows("kubectl get podgroups.scheduling.run.ai", "pg-test-kai-0-")

        told = terminal.type("kubectl logs -n grove-system deployment/grove-operator | grep backend")
        assert "Setting up backend controllers" in told
        for backend in ("kai", "default"):
            assert re.search(rf'"backend": "{backend}".*"Registered backend controller"', told)
        processing = "kubectl logs -n grove-system deployment/grove-operator | grep 'Processing PodGang'"
        assert re.search('"backend": "kai", "podgang": "default/test-kai-0"', terminal.type(processing))


DOCUMENT_VERBS = ("create", "get", "list", "watch", "update", "patch", "delete")


@pytest.mark.parametrize(
    "resource",
    [
        "podgangs.scheduler.grove.io",
        "podgroups.scheduling.run.ai",
        "workloads.scheduling.k8s.io",
        "podgroups.scheduling.koordinator.sh",
        "podgroups.scheduling.sigs.k8s.io",
        "podgroups.scheduling.volcano.sh",
    ],
)
def test_the_account_may_what_the_document_lists(platform: Platform, resource: str) -> None:
    group = resource.partition(".")[2]
    plural = resource.partition(".")[0]
    for part in ("", "status"):
        for verb in DOCUMENT_VERBS:
            assert may(platform, verb, group, plural, part), f"{verb} {resource} {part}"


@pytest.mark.parametrize(
    ("verb", "group", "resource"),
    [
        ("delete", "", "nodes"),
        ("create", "", "namespaces"),
        ("create", "rbac.authorization.k8s.io", "clusterroles"),
        ("impersonate", "", "users"),
        ("delete", "apiextensions.k8s.io", "customresourcedefinitions"),
        ("create", "apps", "deployments"),
    ],
)
def test_the_account_may_not_do_more(platform: Platform, verb: str, group: str, resource: str) -> None:
    assert not may(platform, verb, group, resource, "")


def may(platform: Platform, verb: str, group: str, resource: str, subresource: str) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": USER,
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"],
            "resourceAttributes": {
                "namespace": "default", "verb": verb, "group": group, "resource": resource, "subresource": subresource,
            },
        },
    }  # fmt: skip
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer: bool = platform.shoal.admin.request("POST", path, review)["status"]["allowed"]
    return answer


def test_no_right_of_the_file_is_unused(platform: Platform) -> None:
    """After the stories above, on the real API server."""
    check_that_no_right_is_unused(platform, MANIFESTS)
