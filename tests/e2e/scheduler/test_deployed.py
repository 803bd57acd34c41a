"""``shoal scheduler`` and its webhooks as deploy/scheduler.yaml runs them, with the rights of that file alone."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.api import kai_names as names
from tests.e2e.gangs.operators import ROOT, Platform, Running, a_platform, free_port
from tests.e2e.rights import check_that_no_right_is_unused
from tests.e2e.scheduler.builders import a_kai_pod
from tests.support.builders.queues import queue_manifest
from tests.support.clusters.both_engines import ON_EMBEDDED_WITH_KUBECTL, ON_KUBE, audited_engine_options
from tests.support.waiting import wait_until

FILE = ROOT / "deploy" / "scheduler.yaml"
OBJECTS = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(FILE.read_text())}
NAMESPACE = ACCOUNT = "kai-scheduler"


@pytest.fixture(scope="module", params=[ON_EMBEDDED_WITH_KUBECTL, ON_KUBE])
def platform(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A cluster with nodes and no scheduler, as the file finds it; its GPUs have the RuntimeClass that pods get."""
    folder = tmp_path_factory.mktemp("deployed")
    engine = audited_engine_options(request.param, request, folder / "audit", namespace=NAMESPACE)
    with a_platform(
        folder,
        engine,
        manifests=FILE,
        namespace=NAMESPACE,
        account=ACCOUNT,
        webhooks_account="kai-admission",
        components="api,controllers,nodes",
    ) as platform:
        body = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "x"}
        platform.terminal.type("kubectl apply -f -", stdin=json.dumps(body))
        yield platform


@dataclass(frozen=True)
class Deployed:
    """Both Deployments of the file, as processes."""

    platform: Platform
    scheduler: Running
    webhooks: Running
    metrics: str
    pages: str

    def apply(self, *objects: dict[str, Any]) -> None:
        body = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.platform.terminal.type("kubectl apply -f -", stdin=json.dumps(body))

    def pods(self, *chosen: str, namespace: str = "default") -> list[dict[str, Any]]:
        command = " ".join(["kubectl get pods -o json -n", namespace, *chosen])
        found: list[dict[str, Any]] = json.loads(self.platform.terminal.type(command))["items"]
        return found

    def complaints(self) -> list[str]:
        """What both say of rights that they lack."""
        logs = (running.log.read_text() for running in (self.scheduler, self.webhooks))
        return [line for log in logs for line in log.splitlines() if re.search(r"is forbidden|\b403\b", line)]

    def refusals(self) -> dict[str, float]:
        """What the API server did not let the scheduler do, counted by the method."""
        with urllib.request.urlopen(f"{self.metrics}/metrics", timeout=10) as answer:
            told = re.findall(
                r'^rest_client_requests_total\{code="403",.*method="(\w+)"\} (\S+)$', answer.read().decode(), re.M
            )
        return {method: float(count) for method, count in told}


def command_of(deployment: str, **instead: str) -> list[str]:
    """What a Deployment's container runs, with flags that suit this machine instead of some of its own."""
    [container] = OBJECTS["Deployment", deployment]["spec"]["template"]["spec"]["containers"]
    _, *command = container["command"]
    flags = {f"--{name.replace('_', '-')}": value for name, value in instead.items()}
    return [*(each for each in command if each.partition("=")[0] not in flags), *map("=".join, flags.items())]


@contextmanager
def deployed(platform: Platform) -> Iterator[Deployed]:
    configuration = platform.folder / "config.yaml"
    configuration.write_text(OBJECTS["ConfigMap", "kai-scheduler-default"]["data"]["config.yaml"])
    hooks, metrics, pages = free_port(), free_port(), free_port()
    webhooks = command_of(
        "kai-admission",
        url=f"https://127.0.0.1:{hooks}",
        port=str(hooks),
        health_probe_bind_address=f"127.0.0.1:{free_port()}",
    )
    scheduler = command_of(
        "kai-scheduler-default",
        scheduler_conf=str(configuration),
        listen_address=f"127.0.0.1:{metrics}",
        plugin_server_port=str(pages),
        schedule_period="200ms",
    )
    with platform.running(*webhooks) as admission, platform.running(*scheduler) as scheduling:
        wait_until(lambda: admission.says("all webhooks are registered"), "the webhooks to be registered")
        wait_until(lambda: are_called(platform), "the API server to know of the webhooks")
        yield Deployed(
            platform,
            scheduling,
            admission,
            f"http://127.0.0.1:{metrics}",
            f"http://127.0.0.1:{pages}/api/v1/visualizer",
        )


def are_called(platform: Platform) -> bool:
    """Whether the API server has heard of all registrations: nonsense of every kind would be refused."""
    trial = "kubectl create --dry-run=server -n default -f -"
    half = platform.terminal.run(
        f"{trial} -o json", stdin=json.dumps(a_kai_pod("half", annotations={"gpu-fraction": "0.5"}))
    )
    return "shared-gpu-configmap" in half.stdout and all(
        platform.terminal.run(trial, stdin=json.dumps(body)).returncode for body in NONSENSE.values()
    )


def a_gang(name: str, pods: int, *, gpus: int) -> list[dict[str, Any]]:
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": pods, "queue": names.DEFAULT_QUEUE},
    }
    marks: dict[str, Any] = {"labels": {"gang": name}, "annotations": {names.POD_GROUP: name}}
    return [group, *(a_kai_pod(f"{name}-{number}", gpus=gpus, **marks) for number in range(pods))]


def are_running(pods: list[dict[str, Any]], count: int) -> bool:
    return len(pods) == count and all(pod["status"].get("phase") == "Running" for pod in pods)


def test_gangs_and_parts_of_gpus_are_placed_with_no_more_rights_than_the_file_gives(platform: Platform) -> None:
    with deployed(platform) as shoal:
        terminal = platform.terminal
        terminal.shows("kubectl get queue default-queue -o name", "default-queue", within=60)
        shoal.apply(
            *a_gang("train", 3, gpus=4),
            a_kai_pod("half", annotations={"gpu-fraction": "0.5"}),
            a_kai_pod("alone", gpus=1),
        )
        wait_until(lambda: are_running(shoal.pods("-l gang=train"), 3), "the gang to run", within=90)
        wait_until(lambda: are_running(shoal.pods(), 5), "all pods to run", within=90)

        [half] = [pod for pod in shoal.pods() if pod["metadata"]["name"] == "half"]
        assert half["spec"]["runtimeClassName"] == "nvidia"
        assert half["metadata"]["labels"]["runai-gpu-group"]
        [reservation] = shoal.pods(namespace="kai-resource-reservation")
        assert reservation["spec"]["nodeName"] == half["spec"]["nodeName"]
        terminal.shows(
            "kubectl get queue default-queue -o jsonpath='{.status.allocated}'", '"nvidia.com/gpu":"13', within=60
        )
        terminal.shows("kubectl get queue default-parent-queue -o jsonpath='{.status.childQueues}'", "default-queue")
        terminal.shows(
            "kubectl get podgroup.scheduling.run.ai train -o jsonpath='{.status.resourcesStatus.allocated}'",
            '"nvidia.com/gpu":"12"',
            within=60,
        )

        # Entitled to all GPUs, and larger than what is left: others have to go for it.
        quota = {"cpu": -1, "memory": -1, "gpu": 16}
        owner = queue_manifest("owner", names.DEFAULT_PARENT_QUEUE, quota=quota)
        shoal.apply({"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", **owner})
        large = a_gang("large", 2, gpus=8)
        large[0]["spec"]["queue"] = "owner"
        shoal.apply(*large)
        wait_until(lambda: are_running(shoal.pods("-l gang=large"), 2), "the entitled gang to run", within=90)
        assert shoal.pods("-l gang=train") == []
        wait_until(lambda: not shoal.pods(namespace="kai-resource-reservation"), "the reservation to go", within=60)

        # For a part that nobody can give now, room is asked for as autoscalers understand it.
        shoal.apply(a_kai_pod("waiting", annotations={"gpu-fraction": "0.5"}))
        wait_until(lambda: shoal.pods(namespace="kai-scale-adjust"), "a pod that asks for room", within=90)

        # It listens on every address, and so asks the API server whose a token is.
        admin = {"Authorization": f"Bearer {(platform.shoal.data_dir / 'pki' / 'admin.token').read_text()}"}

        def is_shown() -> bool:
            asked = urllib.request.Request(f"{shoal.pages}/summary", headers=admin)
            with urllib.request.urlopen(asked, timeout=10) as answer:
                return bool(json.load(answer)["allocatedGPUs"] == 16)

        wait_until(is_shown, "the summary to show the gang", within=60)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{shoal.pages}/summary", timeout=10)
        lease = json.loads(terminal.type(f"kubectl get lease {names.SCHEDULER} -n {NAMESPACE} -o json"))
        assert lease["spec"]["holderIdentity"]
        assert shoal.complaints() == []
        # The first reservation is made before its account, whose absence is answered in the same way.
        assert shoal.refusals() == {"POST": 1}
        terminal.type("kubectl delete pods,podgroups.scheduling.run.ai --all -n default")


NONSENSE = {
    "spec.resources: Required value": {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": "bad"},
        "spec": {},
    },
    "spec.minSubGroup: Forbidden": {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "bad"},
        "spec": {"minMember": 1, "minSubGroup": 1},
    },
    "metadata.annotations[gpu-fraction]: Invalid value": a_kai_pod("bad", annotations={"gpu-fraction": "2"}),
}


def test_its_webhooks_refuse_nonsense_and_leave_grove_to_others(platform: Platform) -> None:
    terminal = platform.terminal
    with deployed(platform) as shoal:
        for said, body in NONSENSE.items():
            refused = terminal.run("kubectl apply -n default -f -", stdin=json.dumps(body))
            assert (refused.returncode, said in refused.stderr) == (1, True), refused.stderr
        kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
        registered = terminal.type(f"kubectl get {kinds} -o name").split()
        assert len(registered) == 6
        assert all("kai" in name for name in registered)
        assert shoal.complaints() == []
        assert shoal.refusals() == {}


@pytest.mark.parametrize(
    ("verb", "group", "resource"),
    [
        ("delete", "", "nodes"),
        ("get", "", "secrets"),
        ("delete", "", "namespaces"),
        ("create", "rbac.authorization.k8s.io", "clusterroles"),
        ("impersonate", "", "users"),
        ("delete", "apiextensions.k8s.io", "customresourcedefinitions"),
        ("create", "apps", "deployments"),
        ("delete", "scheduling.run.ai", "queues"),
    ],
)
def test_the_account_may_not_do_more(platform: Platform, verb: str, group: str, resource: str) -> None:
    plural = f"{resource}.{group}" if group else resource
    user = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
    asked = platform.terminal.run(f"kubectl auth can-i {verb} {plural} --as={user} -n default")
    assert asked.stdout.strip() == "no", asked.stderr


def test_the_documents_own_commands_find_the_configuration(platform: Platform, tmp_path: Path) -> None:
    written = tmp_path / "config.yaml"
    platform.terminal.type(
        "kubectl -n kai-scheduler get configmap kai-scheduler-default -o jsonpath='{.data.config\\.yaml}' > "
        f"{written}"
    )
    assert yaml.safe_load(written.read_text())["actions"].startswith("allocate")


def test_no_right_of_the_file_is_unused(platform: Platform) -> None:
    """After the stories above, on the real API server."""
    check_that_no_right_is_unused(platform, FILE)
