"""Gangs in a whole Shoal: they start together or not at all, get what they are entitled to, and are explained."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scheduler.tenants import Tenant
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import wait_until

PAGES = "/api/v1/visualizer"


@pytest.fixture
def tenant(shoal: Shoal) -> Iterator[Tenant]:
    tenant = Tenant(shoal)
    yield tenant
    tenant.leave()


@pytest.fixture
def other_tenant(shoal: Shoal) -> Iterator[Tenant]:
    tenant = Tenant(shoal)
    yield tenant
    tenant.leave()


def page(url: str, token: str = "") -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
        return json.load(answer)


def refusal(url: str) -> int:
    with pytest.raises(urllib.error.HTTPError) as refused:
        page(url)
    refused.value.close()
    return refused.value.code


def test_of_two_gangs_that_need_all_room_one_runs_and_then_the_other(tenant: Tenant) -> None:
    """Taken pod by pod, each would hold half of the room and wait for the other for ever."""
    names = ["left", "right"]
    for name in names:
        tenant.job(name, 4, gpus=8)
    wait_until(lambda: tenant.running() == 4, "one of the gangs to run", within=60)
    wait_until(lambda: len(tenant.pods()) == 8, "both gangs to have their pods", within=60)
    assert sorted(map(tenant.running, names)) == [0, 4]
    names.sort(key=tenant.running)
    tenant.delete_job(names[1])
    tenant.wait_for(names[0], 4)


def test_a_queue_below_its_quota_takes_back_what_others_borrowed(tenant: Tenant) -> None:
    owner, borrower = tenant.queue("owner", gpus=16), tenant.queue("borrower", gpus=16)
    for number in range(4):
        tenant.job(f"borrowing-{number}", 1, gpus=8, queue=borrower)
    wait_until(lambda: tenant.running() == 4, "the borrower to run on all nodes", within=60)
    tenant.job("own", 2, gpus=8, queue=owner)
    tenant.wait_for("own", 2)
    assert tenant.running() - tenant.running("own") == 2


def test_two_halves_of_a_gpu_are_one_gpu(shoal: Shoal, tenant: Tenant) -> None:
    for name in ("one", "two"):
        tenant.pod(name, annotations={"gpu-fraction": "0.5"})
    wait_until(lambda: tenant.running() == 2, "both halves to run", within=60)
    (group,) = {pod["metadata"]["labels"]["runai-gpu-group"] for pod in tenant.pods()}
    assert group
    url = shoal.endpoints()["visualizer"] + PAGES

    def shared() -> list[str]:
        return [slot["occupiedBy"] for node in page(f"{url}/nodes") for slot in node["gpuSlots"] if slot["occupiedBy"]]

    wait_until(lambda: shared() == ["one,two"], "the nodes' page to show them on one GPU", within=30)
    assert page(f"{url}/summary")["allocatedGPUs"] == 1


def test_plain_pods_are_placed_beside_gangs(tenant: Tenant) -> None:
    tenant.job("gang", 3, gpus=8)
    tenant.wait_for("gang", 3)
    tenant.pod("plain", annotations={}, gpus=8, scheduler="default-scheduler")
    wait_until(lambda: tenant.running() == 4, "the plain pod to run", within=60)
    nodes = Counter(pod["spec"]["nodeName"] for pod in tenant.pods())
    assert set(nodes.values()) == {1}


def test_a_gang_that_the_server_will_not_have_bound_starves_nobody(
    shoal: Shoal, tenant: Tenant, other_tenant: Tenant
) -> None:
    """The webhook that is asked about its bindings is down: a real refusal, and it ends when the webhook does."""
    with bindings_refused(shoal, tenant.namespace):
        tenant.job("refused", 4, gpus=8)
        wait_until(tenant.failed_bindings, "a refused binding to be told", within=60)
        other_tenant.job("taken", 4, gpus=8)
        other_tenant.wait_for("taken", 4)
        assert tenant.running() == 0
    other_tenant.delete_job("taken")
    wait_until(lambda: tenant.running("refused") == 4, "the gang to run after all", within=120)


@contextmanager
def bindings_refused(shoal: Shoal, namespace: str) -> Iterator[None]:
    """Nobody can be bound in a namespace for the length of a block."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    name = f"down.{namespace}.example.com"
    webhook = {
        "name": name,
        "clientConfig": {"url": "https://127.0.0.1:1/nobody"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/binding"], "operations": ["CREATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    shoal.admin.request("POST", path, {"metadata": {"name": name}, "webhooks": [webhook]})
    try:
        yield
    finally:
        shoal.admin.request("DELETE", f"{path}/{name}")


def test_why_a_gang_waits_is_told_with_what_would_let_it_start(shoal: Shoal, tenant: Tenant) -> None:
    tenant.job("huge", 5, gpus=8)

    def explained() -> dict[str, Any]:
        said = shoal("explain", "job/huge", f"--namespace={tenant.namespace}", "-o", "json")
        found: dict[str, Any] = json.loads(said.stdout)["jobs"][0] if said.returncode == 0 else {}
        return found

    wait_until(lambda: explained().get("state") == "Waiting", "the gang to be explained", within=60)
    job = explained()
    assert (job["pods"]["needed"], job["pods"]["waiting"]) == (5, 5)
    assert job["position"]["inQueue"] == 1
    assert job["remedies"]
    (shortage,) = job["shortages"]
    assert (shortage["nodes"], shortage["room"]) == (4, 4)
    said = shoal("explain", "job/huge", f"--namespace={tenant.namespace}").stdout
    assert "5 needed, 5 there, 5 waiting" in said
    assert max(map(len, said.splitlines())) <= 80


def test_a_scheduler_that_is_killed_is_started_again_and_loses_nothing(shoal: Shoal, tenant: Tenant) -> None:
    for number in range(8):
        tenant.job(f"gang-{number}", 4, gpus=1)
    wait_until(lambda: tenant.running() > 0, "the first pods to run", within=60)
    before = shoal.part("scheduler")
    os.kill(before["pid"], signal.SIGKILL)
    restarted = before["restarts"] + 1
    wait_until(lambda: shoal.part("scheduler")["restarts"] == restarted, "the scheduler to be started again", within=60)
    wait_until(lambda: tenant.running() == 32, "all pods to run", within=90)
    assert len(tenant.pods()) == 32
    assert max(Counter(pod["spec"]["nodeName"] for pod in tenant.pods()).values()) == 8


def test_the_http_port_shows_what_the_plugin_port_shows(shoal: Shoal, tenant: Tenant) -> None:
    tenant.job("shown", 2, gpus=4)
    tenant.wait_for("shown", 2)
    ports = shoal.endpoints()
    for name in ("summary", "queues", f"jobs?namespace={tenant.namespace}", "nodes"):
        wait_until(
            lambda name=name: (  # type: ignore[misc]
                page(f"{ports['portal']}{PAGES}/{name}") == page(f"{ports['visualizer']}{PAGES}/{name}")
            ),
            f"both ports to show the same {name}",
            within=30,
        )
    assert refusal(f"{ports['portal']}{PAGES}/jobs?name=x") == 400
    stream = urllib.request.urlopen(f"{ports['portal']}{PAGES}/events", timeout=20)
    with stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        assert stream.readline()


def test_a_token_is_needed_where_one_was_asked_for(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("open-sesame\n")
    shoal = Shoal(tmp_path / "data", "--sim=1x1", f"--visualizer-auth={tokens}")
    with shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready"), line
        for port in ("visualizer", "portal"):
            url = f"{shoal.endpoints()[port]}{PAGES}/summary"
            assert refusal(url) == 401
            wait_until(lambda url=url: page(url, "open-sesame")["totalNodes"] == 1, "its node to be shown")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--scheduler-conf=absent", "--scheduler-conf absent: no such file or directory: name a file that can be read"),
        ("--visualizer-auth=absent", "--visualizer-auth absent: no such file or directory: name a file with tokens"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_before_anything_is_started(tmp_path: Path, option: str, said: str) -> None:
    shoal = Shoal(tmp_path / "data", option)
    ended = shoal.starting()
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
