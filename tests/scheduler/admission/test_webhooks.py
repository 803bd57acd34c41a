"""The webhooks of KAI's kinds as API servers know and call them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from shoal.api.kai_scheduler import SHARDS, TOPOLOGIES
from shoal.api.meta import Resource
from shoal.api.scheduling_run_ai import POD_GROUPS, QUEUES, Queue
from shoal.kube import Forbidden, Invalid
from shoal.kube.admission import (
    AdmissionServer,
    Allowed,
    MemoryStore,
    Policy,
    SelfMade,
    ServiceEndpoint,
    UrlEndpoint,
    Webhooks,
)
from shoal.kube.admission.configuration import VALIDATING_CONFIGURATIONS
from shoal.kube.admission.wire import AdmissionRequest, GroupVersionKind, GroupVersionResource
from shoal.scheduler.admission import AdmissionSettings, add_scheduler_webhooks, webhook_configurations
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

HERE = ServiceEndpoint(name="scheduler", namespace="kai-scheduler")
ALL_RESOURCES = {"gpu": {"limit": -1}, "cpu": {"limit": -1}, "memory": {"limit": -1}}

REGISTERED = {
    "kai-queue-validation-v2": (
        "queue-validation.kai.scheduler",
        "/validate-scheduling-run-ai-v2-queue",
        ("scheduling.run.ai", "v2", "queues"),
        ["CREATE", "UPDATE", "DELETE"],
    ),
    "kai-podgroup-validation-v2alpha2": (
        "podgroup-validation.kai.scheduler",
        "/validate-scheduling-run-ai-v2alpha2-podgroup",
        ("scheduling.run.ai", "v2alpha2", "podgroups"),
        ["CREATE", "UPDATE"],
    ),
    "kai-topology-validation-v1alpha1": (
        "topology-validation.kai.scheduler",
        "/validate-kai-scheduler-v1alpha1-topology",
        ("kai.scheduler", "v1alpha1", "topologies"),
        ["CREATE", "UPDATE"],
    ),
    "kai-schedulingshard-validation-v1": (
        "schedulingshard-validation.kai.scheduler",
        "/validate-kai-scheduler-v1-schedulingshard",
        ("kai.scheduler", "v1", "schedulingshards"),
        ["CREATE", "UPDATE"],
    ),
}


def the_webhooks(settings: AdmissionSettings = AdmissionSettings(), queues: list[Queue] | None = None) -> Webhooks:
    webhooks = Webhooks()
    add_scheduler_webhooks(webhooks, settings, lambda: queues or [])
    return webhooks


def test_each_kind_is_registered_by_a_configuration_of_its_own() -> None:
    found = {body["metadata"]["name"]: body for body in webhook_configurations(the_webhooks(), HERE)}
    assert found.keys() == REGISTERED.keys()
    for name, (webhook, path, (group, version, resource), operations) in REGISTERED.items():
        [entry] = found[name]["webhooks"]
        [rule] = entry["rules"]
        assert found[name]["kind"] == "ValidatingWebhookConfiguration"
        assert (entry["name"], entry["clientConfig"]["service"]["path"]) == (webhook, path)
        assert (rule["apiGroups"], rule["apiVersions"], rule["resources"]) == ([group], [version], [resource])
        assert (rule["operations"], entry["failurePolicy"]) == (operations, "Fail")


def test_webhooks_of_others_are_left_to_those_who_know_them() -> None:
    webhooks = the_webhooks()
    webhooks.validating(QUEUES, path="/of-somebody-else")(lambda change: None)
    assert len(webhook_configurations(webhooks, HERE)) == len(REGISTERED)


TOP = msgspec.convert({"metadata": {"name": "top"}, "spec": {"resources": {"gpu": {"quota": 1}}}}, Queue)


@pytest.mark.parametrize("is_wanted", [True, False], ids=["wanted", "not wanted"])
async def test_a_quota_beyond_the_parent_is_let_through_and_warned_of_where_that_is_wanted(is_wanted: bool) -> None:
    [webhook] = [
        each
        for each in the_webhooks(AdmissionSettings(warns_of_quotas=is_wanted), [TOP])
        if each.path == "/validate-scheduling-run-ai-v2-queue"
    ]
    resources = {**ALL_RESOURCES, "gpu": {"quota": 2, "limit": -1}}
    body = {"metadata": {"name": "a"}, "spec": {"parentQueue": "top", "resources": resources}}
    verdict = await webhook.review(
        AdmissionRequest(
            kind=GroupVersionKind(group=QUEUES.group, version=QUEUES.version, kind=QUEUES.kind),
            resource=GroupVersionResource(group=QUEUES.group, version=QUEUES.version, resource=QUEUES.plural),
            object=msgspec.Raw(msgspec.json.encode(body)),
        )
    )
    assert isinstance(verdict, Allowed)
    assert any("more than the 1 of its parent" in said for said in verdict.warnings) is is_wanted


@pytest.fixture
async def hooked(cluster: Cluster) -> AsyncIterator[Cluster]:
    """A cluster that calls the webhooks."""
    webhooks = the_webhooks()
    server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
    serving = await SelfMade(MemoryStore(), Policy(names=("127.0.0.1",))).current()
    server.use(serving.pair)
    await server.start()
    try:
        at = UrlEndpoint(f"https://127.0.0.1:{server.port}")
        for body in webhook_configurations(webhooks, at, authorities=serving.authorities):
            await cluster.client.create(VALIDATING_CONFIGURATIONS, body)

        async def are_called() -> bool:
            bodies: list[tuple[Resource[Any], dict[str, Any]]] = [
                (QUEUES, {}),
                (POD_GROUPS, {"minMember": 1, "minSubGroup": 1}),
                (TOPOLOGIES, {"levels": [{"nodeLabel": "x", "alias": "x"}]}),
                (SHARDS, {"placementStrategy": {"gpu": "x"}}),
            ]
            for resource, spec in bodies:
                place = "default" if resource.namespaced else ""
                body = {"metadata": {"name": "probe"}, "spec": spec}
                try:
                    await cluster.client.create(resource.documents(), body, place, dry_run=True)
                except Invalid:
                    continue
                return False
            return True

        await until(are_called)
        yield cluster
    finally:
        await server.stop()


async def test_a_queue_is_refused_without_resources_and_kept_while_queues_are_below(hooked: Cluster) -> None:
    with pytest.raises(Invalid, match=r"spec\.resources"):
        await hooked.make(QUEUES, {"metadata": {"name": "team"}, "spec": {}})
    await hooked.make(QUEUES, {"metadata": {"name": "team"}, "spec": {"resources": ALL_RESOURCES}})
    with pytest.raises(Invalid, match=r"spec\.resources"):
        await hooked.client.merge_patch(QUEUES.documents(), "team", {"spec": {"resources": None}})
    await hooked.set_status(QUEUES, "team", {"childQueues": ["a"]})
    with pytest.raises(Forbidden, match="has queues below it"):
        await hooked.client.delete(QUEUES, "team")
    await hooked.set_status(QUEUES, "team", {"childQueues": None})
    await hooked.client.delete(QUEUES, "team")
    assert await hooked.read(QUEUES, "team") is None


async def test_a_gang_at_the_wrong_level_is_refused_when_new_and_warned_of_when_changed(hooked: Cluster) -> None:
    part = {"name": "workers", "minMember": 1}
    await hooked.make(POD_GROUPS, {"metadata": {"name": "gang"}, "spec": {"queue": "a", "subGroups": [part]}})
    wrong = {"name": "workers"}
    with pytest.raises(Invalid, match=r"subGroups\[0\]\.minMember"):
        await hooked.make(POD_GROUPS, {"metadata": {"name": "new"}, "spec": {"subGroups": [wrong]}})
    await hooked.client.merge_patch(POD_GROUPS.documents(), "gang", {"spec": {"subGroups": [wrong]}}, "default")
    changed = await hooked.read(POD_GROUPS, "gang")
    assert changed is not None
    assert changed["spec"]["subGroups"] == [wrong]
