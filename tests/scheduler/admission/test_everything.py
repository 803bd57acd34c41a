"""All webhooks of the scheduler together."""

from __future__ import annotations

import msgspec
import pytest

from shoal.api.scheduling_run_ai import QUEUES
from shoal.kube import Manager, running
from shoal.kube.admission import Allowed, ServiceEndpoint, Webhooks
from shoal.kube.admission.wire import AdmissionRequest, GroupVersionKind, GroupVersionResource
from shoal.scheduler.admission import AdmissionSettings, add_all_webhooks, unregistered
from shoal.scheduler.admission.gpu_sharing import GpuSharingSettings
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

HERE = ServiceEndpoint(name="kai-admission", namespace="kai-scheduler")
KINDS = [
    "kai-queue-validation-v2",
    "kai-podgroup-validation-v2alpha2",
    "kai-topology-validation-v1alpha1",
    "kai-schedulingshard-validation-v1",
]
MUTATING = ("MutatingWebhookConfiguration", "mutating-kai-admission")


@pytest.mark.parametrize(
    ("is_shared", "of_pods", "retired"),
    [
        pytest.param(True, ["mutating-kai-admission", "validating-kai-admission"], [], id="shared"),
        pytest.param(False, ["validating-kai-admission"], [MUTATING], id="not shared"),
    ],
)
async def test_what_is_registered_depends_on_whether_gpus_are_shared(
    cluster: Cluster, is_shared: bool, of_pods: list[str], retired: list[tuple[str, str]]
) -> None:
    manager = Manager(cluster.server.transport(), name="webhooks")
    webhooks = Webhooks()
    found = add_all_webhooks(webhooks, manager, AdmissionSettings(), GpuSharingSettings(is_enabled=is_shared), HERE)
    assert [body["metadata"]["name"] for body in found] == [*KINDS, *of_pods]
    assert len(list(webhooks)) == len(found), "what is offered and what is registered differ"
    assert unregistered(found) == retired
    assert manager.cache.informers == [], "nothing is read where nobody needs it"


async def test_quotas_are_compared_with_those_of_the_queues_that_are_there(cluster: Cluster) -> None:
    manager = Manager(cluster.server.transport(), name="webhooks")
    webhooks = Webhooks()
    add_all_webhooks(webhooks, manager, AdmissionSettings(warns_of_quotas=True), GpuSharingSettings(), HERE)
    [queues] = [webhook for webhook in webhooks if webhook.path == "/validate-scheduling-run-ai-v2-queue"]
    await cluster.make(QUEUES, {"metadata": {"name": "top"}, "spec": {"resources": {"gpu": {"quota": 1}}}})
    spec = {"parentQueue": "top", "resources": {"gpu": {"quota": 2}}}
    request = AdmissionRequest(
        kind=GroupVersionKind(group=QUEUES.group, version=QUEUES.version, kind=QUEUES.kind),
        resource=GroupVersionResource(group=QUEUES.group, version=QUEUES.version, resource=QUEUES.plural),
        object=msgspec.Raw(msgspec.json.encode({"metadata": {"name": "team"}, "spec": spec})),
    )

    async def is_warned_of() -> bool:
        verdict = await queues.review(request)
        assert isinstance(verdict, Allowed)
        return any("more than the 1 of its parent 'top'" in said for said in verdict.warnings)

    async with running(manager):
        await until(is_warned_of, within=10)
