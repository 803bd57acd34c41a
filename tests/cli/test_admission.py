"""Webhooks of a process: registered once they are served, whole, and again where somebody takes them away."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from shoal.api import grove, scheduling_run_ai
from shoal.api.core import PODS
from shoal.api.crd import CustomResource
from shoal.api.grove import POD_CLIQUE_SETS
from shoal.api.meta import PartialObject
from shoal.api.scheduling_run_ai import QUEUES
from shoal.cli.processes.admission import Admission, holds, registration
from shoal.cli.processes.offers import SchedulerAdmission, offered
from shoal.cli.registrations import MARKS, marked, unregister
from shoal.gangs.settings import Authorizing, GangSettings
from shoal.kube import Invalid, Manager, running
from shoal.kube.admission import AdmissionServer, DirectoryStore, Policy, SelfMade, UrlEndpoint
from shoal.kube.admission.configuration import MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS
from shoal.scheduler.admission.gpu_sharing import GpuSharingSettings
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import eventually

NAME = "podcliqueset-validating-webhook"
BODY = {"kind": "x", "webhooks": [{"name": "a", "clientConfig": {"url": "https://one"}, "failurePolicy": "Fail"}]}


@pytest.fixture
def kinds() -> Sequence[CustomResource]:
    """Grove's kinds and KAI's."""
    return (*grove.DEFINITIONS, *scheduling_run_ai.DEFINITIONS)


@asynccontextmanager
async def serving(
    cluster: Cluster,
    folder: Path,
    port: int,
    *,
    settings: GangSettings | None = GangSettings(),
    scheduler: SchedulerAdmission | None = None,
    marks: Mapping[str, str] | None = None,
) -> AsyncIterator[Manager]:
    """The webhooks at a port of this machine, until the API server can call them and after."""
    manager = Manager(cluster.server.transport(), name="webhooks")
    endpoint = UrlEndpoint(f"https://127.0.0.1:{port}")
    offer = offered(manager, endpoint, gangs=settings, scheduler=scheduler, training=None)
    server = AdmissionServer(offer.webhooks, host="127.0.0.1", port=port)
    source = SelfMade(DirectoryStore(folder), Policy(names=("127.0.0.1",)))
    retired = [] if marks else offer.retired
    admission = Admission(manager, server, source, offer.configurations, retired=retired, marks=marks)
    async with running(manager):
        await eventually(admission.ready.is_set)
        yield manager


async def entry(cluster: Cluster) -> dict[str, Any] | None:
    found = await cluster.read(VALIDATING_CONFIGURATIONS, NAME)
    if found is None:
        return None
    [webhook] = found["webhooks"]
    return dict(webhook)


async def until_registered(cluster: Cluster, port: int) -> dict[str, Any]:
    async def registered() -> dict[str, Any] | None:
        found = await entry(cluster)
        is_ours = found is not None and str(found["clientConfig"].get("url")).startswith(f"https://127.0.0.1:{port}/")
        return found if is_ours and found and found["clientConfig"].get("caBundle") else None

    found: dict[str, Any] = await until(registered, within=10)
    return found


async def test_what_keeps_the_api_server_from_calling_is_put_right(
    cluster: Cluster, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with serving(cluster, tmp_path / "certs", unused_tcp_port):
        await until_registered(cluster, unused_tcp_port)
        await cluster.client.delete(VALIDATING_CONFIGURATIONS, NAME)
        first = await until_registered(cluster, unused_tcp_port)

        path = "/webhooks/0/clientConfig"
        for change in (
            {"op": "replace", "path": f"{path}/url", "value": "https://127.0.0.1:1/elsewhere"},
            {"op": "replace", "path": f"{path}/caBundle", "value": base64.b64encode(b"nobody").decode()},
            {"op": "remove", "path": f"{path}/caBundle"},
        ):
            await cluster.client.json_patch(VALIDATING_CONFIGURATIONS, NAME, [change])

            async def is_mended() -> bool:
                found = await entry(cluster)
                return found is not None and found["clientConfig"] == first["clientConfig"]

            await until(is_mended, within=10)


async def test_what_people_change_beyond_that_stays_until_the_next_start(
    cluster: Cluster, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with serving(cluster, tmp_path / "certs", unused_tcp_port) as manager:
        before = writes_of(manager)
        change = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
        await cluster.client.json_patch(VALIDATING_CONFIGURATIONS, NAME, change)
        # Looked at after the change above: it comes back, and the other was left as it is.
        await cluster.client.delete(MUTATING_CONFIGURATIONS, "podcliqueset-defaulting-webhook")

        async def is_back() -> bool:
            return await cluster.read(MUTATING_CONFIGURATIONS, "podcliqueset-defaulting-webhook") is not None

        await until(is_back, within=10)
        found = await entry(cluster)
        assert found is not None
        assert found["failurePolicy"] == "Ignore"
        assert writes_of(manager) == before + 1
    async with serving(cluster, tmp_path / "certs", unused_tcp_port):
        found = await entry(cluster)
        assert found is not None
        assert found["failurePolicy"] == "Fail"


async def test_a_second_start_writes_nothing(cluster: Cluster, tmp_path: Path, unused_tcp_port: int) -> None:
    async with serving(cluster, tmp_path / "certs", unused_tcp_port):
        pass
    async with serving(cluster, tmp_path / "certs", unused_tcp_port) as manager:
        body = {"metadata": {"name": "late"}, "spec": {"replicas": 0, "template": {"cliques": []}}}
        with pytest.raises(Exception, match=r"spec\.template\.cliques"):
            await cluster.make(POD_CLIQUE_SETS, body)
        assert writes_of(manager) == 0


async def test_a_registration_that_is_offered_no_more_is_taken_back_if_it_is_ours(
    cluster: Cluster, tmp_path: Path, unused_tcp_port: int
) -> None:
    enabled = GangSettings(authorizing=Authorizing(is_enabled=True))
    async with serving(cluster, tmp_path / "certs", unused_tcp_port, settings=enabled):
        assert await cluster.read(VALIDATING_CONFIGURATIONS, "authorizer-webhook") is not None
    async with serving(cluster, tmp_path / "certs", unused_tcp_port):
        assert await cluster.read(VALIDATING_CONFIGURATIONS, "authorizer-webhook") is None
    await cluster.make(VALIDATING_CONFIGURATIONS, {"metadata": {"name": "authorizer-webhook"}})
    async with serving(cluster, tmp_path / "certs", unused_tcp_port):
        assert await cluster.read(VALIDATING_CONFIGURATIONS, "authorizer-webhook") is not None, "somebody else's"


SHARING = SchedulerAdmission(pods=GpuSharingSettings(is_enabled=True, runtime_class=""))
NOT_SHARING = SchedulerAdmission()
OF_THE_SCHEDULER = {
    "kai-podgroup-validation-v2alpha2",
    "kai-queue-validation-v2",
    "kai-schedulingshard-validation-v1",
    "kai-topology-validation-v1alpha1",
    "mutating-kai-admission",
    "validating-kai-admission",
}
OF_GANGS = {
    "clustertopology-validating-webhook",
    "podcliqueset-defaulting-webhook",
    "podcliqueset-validating-webhook",
}


async def registered(cluster: Cluster) -> set[str]:
    kinds = (MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS)
    return {
        found.metadata.name for kind in kinds for found in (await cluster.client.list(kind.view(PartialObject))).items
    }


def a_sharing_pod(fraction: str) -> dict[str, Any]:
    """A pod that asks for a part of a GPU."""
    return pod_manifest(
        annotations={"gpu-fraction": fraction}, scheduler="kai-scheduler", automountServiceAccountToken=False
    )


async def test_both_sides_are_served_together(cluster: Cluster, tmp_path: Path, unused_tcp_port: int) -> None:
    async with serving(cluster, tmp_path / "certs", unused_tcp_port, scheduler=SHARING):
        assert await registered(cluster) == OF_GANGS | OF_THE_SCHEDULER
        with pytest.raises(Invalid, match=r"spec\.resources: Required value"):
            await cluster.make(QUEUES, {"metadata": {"name": "team"}, "spec": {}})
        with pytest.raises(Invalid, match=r"metadata\.annotations\[gpu-fraction\]"):
            await cluster.make(PODS, a_sharing_pod("1.5"))
        made = await cluster.make(PODS, a_sharing_pod("0.5"))
        assert "runai/shared-gpu-configmap" in made.metadata.annotations
        with pytest.raises(Invalid, match=r"spec\.template\.cliques"):
            await cluster.make(POD_CLIQUE_SETS, {"metadata": {"name": "a"}, "spec": {"template": {"cliques": []}}})


async def test_what_the_other_side_registered_elsewhere_is_left_alone(
    cluster: Cluster, tmp_path: Path, unused_tcp_port: int, unused_tcp_port_factory: Callable[[], int]
) -> None:
    other = unused_tcp_port_factory()
    async with (
        serving(cluster, tmp_path / "one", unused_tcp_port, settings=None, scheduler=SHARING) as one,
        serving(cluster, tmp_path / "two", other) as two,
    ):
        assert await registered(cluster) == OF_GANGS | OF_THE_SCHEDULER
        with pytest.raises(Invalid, match=r"spec\.resources: Required value"):
            await cluster.make(QUEUES, {"metadata": {"name": "team"}, "spec": {}})
        assert (writes_of(one), writes_of(two)) == (len(OF_THE_SCHEDULER), len(OF_GANGS))


async def test_where_gpus_are_shared_no_more_nobody_is_asked_to_prepare_pods(
    cluster: Cluster, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with serving(cluster, tmp_path / "certs", unused_tcp_port, scheduler=SHARING):
        pass
    async with serving(cluster, tmp_path / "certs", unused_tcp_port, scheduler=NOT_SHARING):
        assert await registered(cluster) == OF_GANGS | OF_THE_SCHEDULER - {"mutating-kai-admission"}
        with pytest.raises(Invalid, match="not shared in this cluster"):
            await cluster.make(PODS, a_sharing_pod("0.5"))


async def test_what_has_our_mark_and_is_offered_no_more_is_taken_back(
    cluster: Cluster, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with serving(cluster, tmp_path / "certs", unused_tcp_port, scheduler=SHARING, marks=MARKS):
        pass
    patch = {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}
    await cluster.client.merge_patch(VALIDATING_CONFIGURATIONS, "kai-queue-validation-v2", patch)
    async with serving(cluster, tmp_path / "certs", unused_tcp_port, marks=MARKS):
        assert await registered(cluster) == OF_GANGS | {"kai-queue-validation-v2"}


async def test_a_registration_that_lost_our_mark_is_left_to_who_took_it_over(
    cluster: Cluster, tmp_path: Path, unused_tcp_port: int, unused_tcp_port_factory: Callable[[], int]
) -> None:
    other, still_ours = unused_tcp_port_factory(), "kai-queue-validation-v2"

    async def is_back() -> bool:
        return await cluster.read(VALIDATING_CONFIGURATIONS, still_ours) is not None

    async with serving(cluster, tmp_path / "up", unused_tcp_port, scheduler=SHARING, marks=MARKS) as up:
        before = writes_of(up)
        async with serving(cluster, tmp_path / "apart", other) as apart:
            await until_registered(cluster, other)
            # When it is back for the second time, all has been looked at since the others were taken over.
            for _ in range(2):
                await cluster.client.delete(VALIDATING_CONFIGURATIONS, still_ours)
                await until(is_back, within=10)
            assert (writes_of(up), writes_of(apart)) == (before + 2, len(OF_GANGS))
            await until_registered(cluster, other)


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        pytest.param(BODY, True, id="the same"),
        pytest.param({**BODY, "metadata": {}}, True, id="with more"),
        pytest.param({**BODY, "webhooks": [{"name": "b"}, *BODY["webhooks"]]}, True, id="among others"),
        pytest.param({**BODY, "webhooks": [{"name": "b"}]}, False, id="another name"),
        pytest.param({**BODY, "webhooks": [{"name": "a", "clientConfig": {"url": "https://two"}}]}, False, id="moved"),
        pytest.param({**BODY, "webhooks": []}, False, id="emptied"),
        pytest.param({}, False, id="missing"),
    ],
)
def test_what_is_wanted_is_found_in_what_is_there(present: dict[str, Any], expected: bool) -> None:
    assert holds(present, BODY) is expected


def test_authorities_are_part_of_a_registration_where_they_are_known() -> None:
    [webhook] = registration(BODY, b"trust me")["webhooks"]
    assert webhook["clientConfig"] == {"url": "https://one", "caBundle": base64.b64encode(b"trust me").decode()}
    assert registration(BODY, b"") == BODY


def test_only_registrations_of_shoal_up_are_taken_back(tmp_path: Path) -> None:
    shoal = Shoal(tmp_path / "data", "--only=api")
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    with shoal.foreground():
        for body in ({"metadata": {"name": "theirs"}}, marked({"metadata": {"name": "ours", "labels": {"a": "b"}}})):
            shoal.admin.request("POST", path, body)
        assert unregister(shoal.admin) == ["ours"]
        assert [found["metadata"]["name"] for found in shoal.objects(path)] == ["theirs"]
        assert unregister(shoal.admin) == []
