"""The webhooks as API servers call them: posted manifests are stamped, checked, warned of and refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from shoal.api import jobset, trainer
from shoal.api.jobset import JOB_SETS
from shoal.api.meta import Document, Resource
from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES
from shoal.kube import ApiError, Client, Forbidden, Invalid
from shoal.kube.admission import AdmissionServer, MemoryStore, Policy, SelfMade, UrlEndpoint, WebhookMetrics
from shoal.kube.admission.configuration import MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS
from shoal.kube.transport import Request, Response
from shoal.training.admission import Lookups, training_webhooks, webhook_configurations
from tests.support.clusters.client import client_to, install, until
from tests.support.clusters.engines import Engine
from tests.training.admission.verdicts import TRAINER
from tests.training.builders import a_job_patch, a_patch

JOBS, RUNTIMES, CLUSTER_RUNTIMES = (
    kind.documents() for kind in (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
)
CONFIGURATIONS = {resource.kind: resource for resource in (MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS)}


@dataclass
class Hooked:
    """A cluster that calls the webhooks."""

    namespace: str
    client: Client
    metrics: WebhookMetrics = field(default_factory=WebhookMetrics)

    def asked(self, path: str) -> float:
        """How often the API server has called a webhook."""
        labels = {"webhook": path, "code": "200"}
        return self.metrics.registry.get_sample_value("controller_runtime_webhook_requests_total", labels) or 0

    async def post(self, name: str = "job", *, runtime: str = "runtime", **spec: Any) -> dict[str, Any]:
        """Creates a TrainJob of a runtime of the namespace, and gives it as it is stored."""
        reference = {"kind": "TrainingRuntime", "name": runtime}
        body = {"metadata": {"name": name}, "spec": {"runtimeRef": reference, **spec}}
        return (await self.client.create(JOBS, body, self.namespace)).content

    async def change(self, **spec: Any) -> dict[str, Any]:
        """Changes fields of the TrainJob."""
        found = await self.client.merge_patch(JOBS, "job", {"spec": spec}, self.namespace)
        return found.content


def a_runtime_body(name: str = "runtime", *jobs: dict[str, Any], **labels: str) -> dict[str, Any]:
    template = {"spec": {"replicatedJobs": list(jobs) or [TRAINER]}}
    return {
        "metadata": {"name": name, "labels": {f"trainer.kubeflow.org/{key}": value for key, value in labels.items()}},
        "spec": {"mlPolicy": {"torch": {}}, "template": template},
    }


@pytest.fixture
async def hooked(engine: Engine, namespace: str) -> AsyncIterator[Hooked]:
    async with client_to(engine.kubeconfig) as client:
        for definition in (*trainer.DEFINITIONS, *jobset.DEFINITIONS):
            await install(client, definition)
        found = Hooked(namespace, client)
        async with _called(found):
            yield found


@asynccontextmanager
async def _called(cluster: Hooked) -> AsyncIterator[None]:
    """The API server calls the webhooks, for one namespace alone where kinds are in one."""
    webhooks = training_webhooks(Lookups.live(cluster.client))
    server = AdmissionServer(webhooks, host="127.0.0.1", port=0, metrics=cluster.metrics)
    serving = await SelfMade(MemoryStore(), Policy(names=("127.0.0.1",))).current()
    server.use(serving.pair)
    await server.start()
    registered: list[tuple[Resource[Document], str]] = []
    try:
        at = UrlEndpoint(f"https://127.0.0.1:{server.port}")
        for body in webhook_configurations(webhooks, at, authorities=serving.authorities):
            for webhook in body["webhooks"]:
                webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}}
            await cluster.client.create(CONFIGURATIONS[body["kind"]], body)
            registered.append((CONFIGURATIONS[body["kind"]], body["metadata"]["name"]))
        await until(lambda: _are_called(cluster))
        yield
    finally:
        await server.stop()
        for resource, name in registered:
            await cluster.client.delete(resource, name)


async def _are_called(cluster: Hooked) -> bool:
    """Whether the API server has begun to call all of them: they check both kinds of runtimes, stamp and check jobs."""
    wrong = {**TRAINER, "replicas": 2}
    for resource, namespace in ((RUNTIMES, cluster.namespace), (CLUSTER_RUNTIMES, "")):
        probe = a_runtime_body(f"probe-{cluster.namespace[-8:]}", wrong)
        if not await _is_refused(cluster.client.create(resource, probe, namespace, dry_run=True)):
            return False
    patched = {"runtimeRef": {"name": "none"}, "runtimePatches": [{"manager": "acme.io/probe"}]}
    probe = {"metadata": {"name": "probe"}, "spec": patched}
    if not await _is_refused(cluster.client.create(JOBS, probe, cluster.namespace, dry_run=True)):
        return False
    name = f"probe-{cluster.namespace[-8:]}"
    await cluster.client.apply(RUNTIMES, a_runtime_body(name), cluster.namespace, name=name, field_manager="probe")
    probe["spec"] = {**patched, "runtimeRef": {"name": name, "kind": "TrainingRuntime"}}
    stored = await cluster.client.create(JOBS, probe, cluster.namespace, dry_run=True)
    return "time" in stored.content["spec"]["runtimePatches"][0]


async def _is_refused(asked: Awaitable[object]) -> bool:
    try:
        await asked
    except ApiError as error:
        return "trainer.kubeflow.org" in str(error) and "denied the request" in str(error)
    return False


async def _answer(client: Client, resource: Resource[Any], body: dict[str, Any], namespace: str) -> Response:
    """The whole answer to a creation that leaves nothing, with its warnings."""
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
    return await client.transport.send(
        Request(method="POST", path=resource.path(namespace), query={"dryRun": "All"}, body=msgspec.json.encode(whole))
    )


async def test_a_job_may_follow_its_runtime_at_once(hooked: Hooked) -> None:
    for attempt in range(10):
        await hooked.client.create(RUNTIMES, a_runtime_body(f"runtime-{attempt}"), hooked.namespace)
        stored = await hooked.post(f"job-{attempt}", runtime=f"runtime-{attempt}")
        assert stored["spec"]["runtimeRef"]["apiGroup"] == "trainer.kubeflow.org"


async def test_a_refusal_is_forbidden_and_a_broken_schema_invalid(hooked: Hooked) -> None:
    await hooked.client.create(RUNTIMES, a_runtime_body(), hooked.namespace)
    with pytest.raises(Forbidden) as refused:
        await hooked.post(trainer={"env": [{"name": "PET_NNODES", "value": "2"}]})
    assert refused.value.message == (
        'admission webhook "validator.trainjob.trainer.kubeflow.org" denied the request: spec.trainer.env: '
        'Invalid value: ["PET_NNODES"]: must not have reserved envs, invalid envs configured: [PET_NNODES]'
    )
    with pytest.raises(Invalid, match=r"metadata\.name must match RFC 1035 DNS label format"):
        await hooked.post("1job")
    with pytest.raises(Forbidden, match=r"unsupported runtime: Workflow\.trainer\.kubeflow\.org"):
        await hooked.post(runtimeRef={"kind": "Workflow", "name": "runtime"})


async def test_a_job_outlives_its_runtime(hooked: Hooked) -> None:
    await hooked.client.create(RUNTIMES, a_runtime_body(), hooked.namespace)
    await hooked.post(trainer={"numNodes": 2})
    await hooked.client.delete(RUNTIMES, "runtime", hooked.namespace)
    assert (await hooked.change(suspend=True))["spec"]["suspend"] is True
    with pytest.raises(Forbidden, match=r'trainingruntimes\.trainer\.kubeflow\.org \\?"runtime\\?" not found'):
        await hooked.post("other")


async def test_patches_are_stamped_and_change_only_while_nothing_runs(hooked: Hooked) -> None:
    await hooked.client.create(RUNTIMES, a_runtime_body(), hooked.namespace)
    north, south = ([a_patch(a_job_patch("node", nodeSelector={"zone": zone}))] for zone in ("north", "south"))
    stored = await hooked.post(runtimePatches=north)
    [patch] = stored["spec"]["runtimePatches"]
    assert patch["time"].endswith("Z")
    with pytest.raises(Forbidden, match="suspended before or after the update"):
        await hooked.change(runtimePatches=south)
    kept = await hooked.change(suspend=True, runtimePatches=[{**north[0], "time": "2020-01-01T00:00:00Z"}])
    assert kept["spec"]["runtimePatches"] == [patch]

    running = {"replicatedJobsStatus": [_status("node", active=1), _status("other", active=0)], "restarts": 0}
    await hooked.client.create(
        JOB_SETS.documents(), {"metadata": {"name": "job"}, "spec": {"replicatedJobs": [TRAINER]}}, hooked.namespace
    )
    await hooked.client.merge_patch(
        JOB_SETS.documents(), "job", {"status": running}, hooked.namespace, subresource="status"
    )
    with pytest.raises(Forbidden, match="ReplicatedJob node is still active"):
        await hooked.change(runtimePatches=south)
    idle = {"replicatedJobsStatus": [_status("node", active=0)], "restarts": 0}
    await hooked.client.merge_patch(
        JOB_SETS.documents(), "job", {"status": idle}, hooked.namespace, subresource="status"
    )
    changed = await hooked.change(runtimePatches=south, suspend=False)
    assert changed["spec"]["runtimePatches"][0]["time"] >= patch["time"]


async def test_nobody_is_asked_to_stamp_a_job_without_patches(hooked: Hooked) -> None:
    await hooked.client.create(RUNTIMES, a_runtime_body(), hooked.namespace)
    stamps, checks = (f"/{verb}-trainer-kubeflow-org-v1alpha1-trainjob" for verb in ("mutate", "validate"))
    before = hooked.asked(stamps), hooked.asked(checks)
    await hooked.post()
    assert (hooked.asked(stamps), hooked.asked(checks)) == (before[0], before[1] + 1)
    changed = await hooked.change(suspend=True, runtimePatches=[{"manager": "acme.io/a"}])
    assert "time" in changed["spec"]["runtimePatches"][0]
    # A server whose cache is behind its store asks everybody once more.
    after = hooked.asked(stamps), hooked.asked(checks)
    assert after >= (before[0] + 1, before[1] + 2)
    removed = await hooked.change(runtimePatches=None)
    assert "runtimePatches" not in removed["spec"]
    assert hooked.asked(stamps) == after[0]
    assert hooked.asked(checks) > after[1]


def _status(name: str, *, active: int) -> dict[str, Any]:
    return {"name": name, "ready": 0, "succeeded": 0, "failed": 0, "suspended": 0, "active": active}


async def test_a_runtime_is_checked_unless_it_asks_not_to_be(hooked: Hooked) -> None:
    wrong = {**TRAINER, "replicas": 2}
    name = f"wrong-{hooked.namespace[-8:]}"
    for resource, namespace in ((RUNTIMES, hooked.namespace), (CLUSTER_RUNTIMES, "")):
        with pytest.raises(Forbidden, match=r"replicatedJobs\[0\]\.replicas: Invalid value: 2: always must be 1"):
            await hooked.client.create(resource, a_runtime_body(name, wrong), namespace)
        unchecked = a_runtime_body(name, wrong, **{"webhook-validation": "disabled"})
        await hooked.client.create(resource, unchecked, namespace, dry_run=True)


async def test_a_change_of_a_runtime_is_checked_where_all_namespaces_use_it(hooked: Hooked) -> None:
    name = f"changed-{hooked.namespace[-8:]}"
    twice = {"spec": a_runtime_body(name, {**TRAINER, "replicas": 2})["spec"]}
    await hooked.client.create(CLUSTER_RUNTIMES, a_runtime_body(name), "")
    try:
        with pytest.raises(Forbidden, match="always must be 1"):
            await hooked.client.merge_patch(CLUSTER_RUNTIMES, name, twice)
    finally:
        await hooked.client.delete(CLUSTER_RUNTIMES, name)
    await hooked.client.create(RUNTIMES, a_runtime_body(name), hooked.namespace)
    await hooked.client.merge_patch(RUNTIMES, name, twice, hooked.namespace)


async def test_a_deprecated_runtime_is_warned_of(hooked: Hooked) -> None:
    name = f"old-{hooked.namespace[-8:]}"
    body = a_runtime_body(name, support="deprecated")
    answer = await _answer(hooked.client, CLUSTER_RUNTIMES, body, "")
    assert f'ClusterTrainingRuntime \\"{name}\\" is deprecated' in answer.headers["Warning"]
    await hooked.client.create(CLUSTER_RUNTIMES, body)
    try:
        job = {"metadata": {"name": "job"}, "spec": {"runtimeRef": {"name": name}}}
        answer = await _answer(hooked.client, JOBS, job, hooked.namespace)
        assert answer.status == 201
        assert f'Referenced ClusterTrainingRuntime \\"{name}\\" is deprecated' in answer.headers["Warning"]
    finally:
        await hooked.client.delete(CLUSTER_RUNTIMES, name)
    await hooked.client.create(RUNTIMES, body, hooked.namespace)
    mine = {"metadata": {"name": "mine"}, "spec": {"runtimeRef": {"name": name, "kind": "TrainingRuntime"}}}
    answer = await _answer(hooked.client, JOBS, mine, hooked.namespace)
    assert f'Referenced TrainingRuntime \\"{name}\\" is deprecated: use another one' in answer.headers["Warning"]
    with pytest.raises(Forbidden, match="there is a TrainingRuntime of that name"):
        await hooked.client.create(JOBS, {**mine, "spec": {"runtimeRef": {"name": name}}}, hooked.namespace)
