"""The webhooks of pods, called by a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shoal.api.core import PODS
from shoal.kube import ApiError, Client, Invalid, Retry
from shoal.kube.admission import (
    AdmissionServer,
    MemoryStore,
    Policy,
    SelfMade,
    ServiceEndpoint,
    UrlEndpoint,
    Webhooks,
)
from shoal.kube.admission.configuration import MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS
from shoal.scheduler.admission.gpu_sharing import (
    GpuSharingSettings,
    add_gpu_sharing_webhooks,
    gpu_sharing_configurations,
)
from tests.scheduler.builders import kai_pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

HALF = {"gpu-fraction": "0.5"}
CHOOSING = [{"name": "main", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}]
OTHER = [{"name": "main", "env": [{"name": "PATH", "value": "/bin"}]}]
ON = GpuSharingSettings(is_enabled=True, runtime_class="", guards_devices=True, schedulers=("kai-scheduler", "shoal"))


def the_webhooks(settings: GpuSharingSettings) -> Webhooks:
    webhooks = Webhooks()
    add_gpu_sharing_webhooks(webhooks, settings)
    return webhooks


@asynccontextmanager
async def calling(cluster: Cluster, settings: GpuSharingSettings) -> AsyncIterator[AdmissionServer]:
    """A cluster that calls the webhooks, and the server that answers."""
    webhooks = the_webhooks(settings)
    server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
    serving = await SelfMade(MemoryStore(), Policy(names=("127.0.0.1",))).current()
    server.use(serving.pair)
    await server.start()
    try:
        at = UrlEndpoint(f"https://127.0.0.1:{server.port}")
        for body in gpu_sharing_configurations(webhooks, at, authorities=serving.authorities):
            kinds = {"M": MUTATING_CONFIGURATIONS, "V": VALIDATING_CONFIGURATIONS}
            await cluster.client.create(kinds[body["kind"][0]], body)

        async def are_called() -> bool:
            body = kai_pod_manifest("probe", annotations={"gpu-fraction": "2"})
            try:
                await cluster.client.create(PODS.documents(), body, "default", dry_run=True)
            except Invalid:
                return True
            return False

        await until(are_called)
        yield server
    finally:
        await server.stop()


async def test_a_pod_that_shares_a_gpu_is_prepared_and_one_of_another_scheduler_is_not(cluster: Cluster) -> None:
    async with calling(cluster, ON):
        ours = await cluster.make(PODS, kai_pod_manifest("ours", scheduler="shoal", annotations=HALF))
        other = await cluster.make(
            PODS, kai_pod_manifest("other", scheduler="default-scheduler", annotations={"gpu-fraction": "2"})
        )
    [main] = ours.content["spec"]["containers"]
    prefix = ours.metadata.annotations["runai/shared-gpu-configmap"]
    assert {variable["name"] for variable in main["env"]} >= {"NVIDIA_VISIBLE_DEVICES", "GPU_PORTION"}
    assert main["envFrom"][0]["configMapRef"]["name"] == f"{prefix}-0-evar"
    assert other.metadata.annotations == {"gpu-fraction": "2"}


async def test_nonsense_is_refused_with_its_field(cluster: Cluster) -> None:
    async with calling(cluster, ON):
        with pytest.raises(Invalid, match=r"metadata\.annotations\[gpu-memory\].*whole number of MiB"):
            await cluster.make(PODS, kai_pod_manifest("bad", annotations={"gpu-memory": "1Gi"}))
        with pytest.raises(Invalid, match=r"spec\.containers\[0\]\.env\[0\].*given, not chosen"):
            await cluster.make(PODS, kai_pod_manifest("sly", containers=CHOOSING))


async def test_a_pod_that_was_prepared_can_be_changed(cluster: Cluster) -> None:
    async with calling(cluster, ON):
        await cluster.make(PODS, kai_pod_manifest("web", annotations=HALF))
        patch = {"metadata": {"labels": {"runai-gpu-group": "g"}}}
        await cluster.client.merge_patch(PODS.documents(), "web", patch, "default")


GUARDING = GpuSharingSettings(is_enabled=True, runtime_class="", guards_devices=True)
SHARING = GpuSharingSettings(is_enabled=True, runtime_class="")


@pytest.mark.parametrize(
    ("settings", "pod", "is_made"),
    [
        pytest.param(SHARING, kai_pod_manifest("p"), True, id="asks for nothing"),
        pytest.param(
            SHARING, kai_pod_manifest("p", annotations={"note": "x"}), True, id="annotated with something else"
        ),
        pytest.param(
            SHARING, kai_pod_manifest("p", containers=CHOOSING), True, id="chooses devices, which nobody guards"
        ),
        pytest.param(
            SHARING, kai_pod_manifest("p", scheduler="default-scheduler", annotations=HALF), True, id="of others"
        ),
        pytest.param(SHARING, kai_pod_manifest("p", annotations=HALF), False, id="a portion"),
        pytest.param(SHARING, kai_pod_manifest("p", annotations={"gpu-memory": "1"}), False, id="memory"),
        pytest.param(SHARING, kai_pod_manifest("p", annotations={"mps": "true"}), False, id="mps"),
        pytest.param(GUARDING, kai_pod_manifest("p", containers=OTHER), True, id="with variables, guarded"),
        pytest.param(GUARDING, kai_pod_manifest("p", containers=CHOOSING), False, id="chooses devices, guarded"),
        pytest.param(GUARDING, kai_pod_manifest("p", annotations=HALF), False, id="a portion, guarded"),
    ],
)
async def test_where_nobody_answers_only_pods_that_ask_for_gpus_are_held_up(
    cluster: Cluster, settings: GpuSharingSettings, pod: dict[str, Any], is_made: bool
) -> None:
    async with calling(cluster, settings) as server:
        await server.stop()
        if is_made:
            await cluster.make(PODS, pod)
        else:
            with pytest.raises(ApiError, match="failed calling webhook"):
                await impatient(cluster).create(PODS.documents(), pod, "default")


def impatient(cluster: Cluster) -> Client:
    """A client that tries nothing twice."""
    return Client(cluster.server.transport(), retry=Retry(within=0))


async def test_parts_are_refused_where_gpus_are_not_shared(cluster: Cluster) -> None:
    async with calling(cluster, GpuSharingSettings()):
        with pytest.raises(Invalid, match="not shared in this cluster"):
            await cluster.make(PODS, kai_pod_manifest("web", annotations=HALF))
        await cluster.make(PODS, kai_pod_manifest("plain"))


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (ON, ["mutating-kai-admission", "validating-kai-admission"]),
        (GpuSharingSettings(), ["validating-kai-admission"]),
    ],
    ids=["shared", "not shared"],
)
def test_each_webhook_is_registered_under_the_name_that_is_known(
    settings: GpuSharingSettings, names: list[str]
) -> None:
    at = ServiceEndpoint(name="admission", namespace="kai-scheduler")
    found = gpu_sharing_configurations(the_webhooks(settings), at)
    assert [body["metadata"]["name"] for body in found] == names
    for body in found:
        [webhook] = body["webhooks"]
        assert webhook["rules"][0]["resources"] == ["pods"]
        assert "kai-scheduler" in webhook["matchConditions"][0]["expression"]
