"""``shoal operator`` and its webhooks as deploy/training.yaml runs them, with the rights of that file alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.gangs.operators import NO_PORTS, ROOT, Platform, Running, a_platform, free_port
from tests.e2e.rights import check_that_no_right_is_unused
from tests.support.clusters.both_engines import ON_EMBEDDED_WITH_KUBECTL, ON_KUBE, audited_engine_options
from tests.support.clusters.shoal_up import SHOAL
from tests.support.programs.command import run_to_end
from tests.support.waiting import wait_until

FILE = ROOT / "deploy" / "training.yaml"
NAMESPACE, ACCOUNT, WEBHOOKS = "kubeflow-system", "kubeflow-trainer-controller-manager", "kubeflow-trainer-webhooks"


@pytest.fixture(scope="module", params=[ON_EMBEDDED_WITH_KUBECTL, ON_KUBE])
def platform(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A cluster with nodes and no training, as the file finds it."""
    folder = tmp_path_factory.mktemp("deployed")
    engine = audited_engine_options(request.param, request, folder / "audit", namespace=NAMESPACE)
    with a_platform(
        folder,
        engine,
        manifests=FILE,
        namespace=NAMESPACE,
        account=ACCOUNT,
        webhooks_account=WEBHOOKS,
    ) as platform:
        yield platform


@contextmanager
def deployed(platform: Platform) -> Iterator[tuple[Running, Running]]:
    """Both Deployments of the file, as processes, and the runtimes."""
    port = free_port()
    where = (
        f"--url=https://127.0.0.1:{port}",
        f"--port={port}",
        "--health-probe-bind-address=0",
        "--only=training",
        f"--service={WEBHOOKS}",
    )
    with (
        platform.running("webhooks", *where) as webhooks,
        platform.running(
            "operator", "--enable=training", "--leader-elect", "--feature-gates=TrainJobStatus=true", *NO_PORTS
        ) as operator,
    ):
        wait_until(lambda: webhooks.says("all webhooks are registered"), "the webhooks to be registered")
        installed = run_to_end([SHOAL, "runtimes", "install", f"--kubeconfig={platform.shoal.kubeconfig}"])
        assert installed.returncode == 0, installed.stderr
        yield operator, webhooks


def complaints(*running: Running) -> list[str]:
    """What they say of rights that they lack."""
    logs = (one.log.read_text() for one in running)
    return [line for log in logs for line in log.splitlines() if re.search(r"is forbidden|\b403\b", line)]


def a_train_job(name: str, runtime: str, **spec: Any) -> str:
    trainer = {"numNodes": 2, "command": ["train"]}
    body = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"runtimeRef": {"name": runtime}, "trainer": trainer, **spec},
    }
    return json.dumps(body)


def test_training_runs_with_no_more_rights_than_the_file_gives(platform: Platform) -> None:
    terminal = platform.terminal
    with deployed(platform) as (operator, webhooks):
        for name, runtime in (("torch", "torch-distributed"), ("mpi", "deepspeed-distributed")):
            terminal.type("kubectl apply -f -", stdin=a_train_job(name, runtime))
        for name in ("torch", "mpi"):
            terminal.type(f"kubectl wait trainjob/{name} --for=condition=Complete --timeout=90s")
        terminal.type("kubectl apply -f -", stdin=a_train_job("late", "jax-distributed", suspend=True))
        terminal.type("kubectl wait trainjob/late --for=condition=Suspended --timeout=60s")
        terminal.type("""kubectl patch trainjob late --type=merge -p '{"spec":{"suspend":false}}'""")
        terminal.type("kubectl wait trainjob/late --for=condition=Complete --timeout=90s")
        # What is over stays so, also in kubectl's list, whatever is asked of it afterwards.
        terminal.type("""kubectl patch trainjob torch --type=merge -p '{"spec":{"suspend":true}}'""")
        terminal.type("kubectl wait trainjob/torch --for=condition=Suspended --timeout=60s")
        assert [line.split()[:2] for line in terminal.type("kubectl get trainjobs --no-headers").splitlines()] == [
            ["late", "Complete"],
            ["mpi", "Complete"],
            ["torch", "Complete"],
        ]
        short = a_train_job("short", "jax-distributed", suspend=False, ttlSecondsAfterFinished=0)
        terminal.type("kubectl apply -f -", stdin=short)
        terminal.type("kubectl wait trainjob/short --for=delete --timeout=90s")
        refused = terminal.run("kubectl apply -f -", stdin=a_train_job("lost", "no-such-runtime"))
        assert "no-such-runtime" in refused.stderr
        assert complaints(operator, webhooks) == []
        terminal.type("kubectl delete trainjobs --all -n default")


@pytest.mark.parametrize(
    ("verb", "group", "resource"),
    [
        ("delete", "", "nodes"),
        ("delete", "", "namespaces"),
        ("create", "", "pods"),
        ("create", "rbac.authorization.k8s.io", "clusterroles"),
        ("delete", "apiextensions.k8s.io", "customresourcedefinitions"),
        ("create", "trainer.kubeflow.org", "trainjobs"),
        ("create", "apps", "deployments"),
    ],
)
def test_the_account_may_not_do_more(platform: Platform, verb: str, group: str, resource: str) -> None:
    plural = f"{resource}.{group}" if group else resource
    user = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
    asked = platform.terminal.run(f"kubectl auth can-i {verb} {plural} --as={user} -n default")
    assert asked.stdout.strip() == "no", asked.stderr


def test_no_right_of_the_file_is_unused(platform: Platform) -> None:
    """After the stories above, on the real API server."""
    check_that_no_right_is_unused(platform, FILE)
