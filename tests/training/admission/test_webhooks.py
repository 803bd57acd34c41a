"""What API servers are told of the webhooks, and what they say of a request: with answers about other objects given."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.trainer import ClusterTrainingRuntime, RuntimeReference, TrainingRuntimeSpec, TrainJob
from shoal.kube.admission import FieldProblem, ServiceEndpoint, forbidden
from shoal.kube.admission.verdicts import Allowed, Denied, Verdict
from shoal.kube.admission.wire import AdmissionRequest
from shoal.training.admission import Lookups, training_webhooks, webhook_configurations
from shoal.training.admission.lookups import runtime_in
from tests.training.builders import a_job_patch, a_patch, a_runtime

HERE = ServiceEndpoint(name="kubeflow-trainer-controller-manager", namespace="kubeflow-system")


def lookups(
    runtime: TrainingRuntimeSpec | None = None,
    *,
    snapshot: TrainingRuntimeSpec | None = None,
    active: tuple[str, ...] = (),
    labels: dict[str, str] | None = None,
    present: tuple[RuntimeReference, ...] = (),
) -> Lookups:
    """A cluster with at most one runtime that can be read, and no priority classes."""

    async def find(reference: RuntimeReference, namespace: str) -> ClusterTrainingRuntime | None:
        if runtime is None:
            return None
        metadata = {"name": reference.name, "labels": labels or {}}
        return msgspec.convert({"metadata": metadata, "spec": msgspec.to_builtins(runtime)}, ClusterTrainingRuntime)

    async def kept(namespace: str, name: str) -> TrainingRuntimeSpec | None:
        return snapshot

    async def active_jobs(namespace: str, name: str) -> tuple[str, ...]:
        return active

    async def has_priority_class(name: str) -> bool:
        return False

    async def runtimes(namespace: str) -> tuple[RuntimeReference, ...]:
        return present

    return Lookups(
        runtime=find,
        snapshot=kept,
        active_jobs=active_jobs,
        has_priority_class=has_priority_class,
        runtimes=runtimes,
    )


CONFIGURED = {
    "/mutate-trainer-kubeflow-org-v1alpha1-trainjob": (
        "defaulter.trainer.kubeflow.org",
        "defaulter.trainjob.trainer.kubeflow.org",
        "trainjobs",
    ),
    "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime": (
        "validator.trainer.kubeflow.org",
        "validator.clustertrainingruntime.trainer.kubeflow.org",
        "clustertrainingruntimes",
    ),
    "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime": (
        "validator.trainer.kubeflow.org",
        "validator.trainingruntime.trainer.kubeflow.org",
        "trainingruntimes",
    ),
    "/validate-trainer-kubeflow-org-v1alpha1-trainjob": (
        "validator.trainer.kubeflow.org",
        "validator.trainjob.trainer.kubeflow.org",
        "trainjobs",
    ),
}


def test_the_configurations_are_as_trainers_own() -> None:
    entries = {
        entry["clientConfig"]["service"]["path"]: (body, entry)
        for body in webhook_configurations(training_webhooks(lookups()), HERE)
        for entry in body["webhooks"]
    }
    assert entries.keys() == CONFIGURED.keys()
    for path, (configuration, name, resource) in CONFIGURED.items():
        body, entry = entries[path]
        kind = "MutatingWebhookConfiguration" if "mutate" in path else "ValidatingWebhookConfiguration"
        assert (body["kind"], body["metadata"]["name"], entry["name"]) == (kind, configuration, name)
        assert (entry["failurePolicy"], entry["sideEffects"]) == ("Fail", "None")
        [rule] = entry["rules"]
        assert rule["operations"] == ["CREATE", "UPDATE"]
        assert (rule["apiGroups"], rule["apiVersions"], rule["resources"]) == (
            ["trainer.kubeflow.org"],
            ["v1alpha1"],
            [resource],
        )


def test_runtimes_may_ask_not_to_be_checked_and_jobs_may_not() -> None:
    found = {webhook.name: webhook.object_selector for webhook in training_webhooks(lookups())}
    skipped = {
        "matchExpressions": [
            {"key": "trainer.kubeflow.org/webhook-validation", "operator": "NotIn", "values": ["disabled"]}
        ]
    }
    assert found == {
        "defaulter.trainjob.trainer.kubeflow.org": None,
        "validator.trainjob.trainer.kubeflow.org": None,
        "validator.clustertrainingruntime.trainer.kubeflow.org": skipped,
        "validator.trainingruntime.trainer.kubeflow.org": skipped,
    }


def test_only_jobs_with_patches_are_asked_about_when_patches_are_stamped() -> None:
    found = {webhook.name: webhook.match_conditions for webhook in training_webhooks(lookups())}
    [condition] = found.pop("defaulter.trainjob.trainer.kubeflow.org")
    assert condition["expression"] == "has(object.spec) && has(object.spec.runtimePatches)"
    assert set(found.values()) == {()}


def a_body(runtime: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "job", "namespace": "team"},
        "spec": {"runtimeRef": runtime or {"name": "torch-distributed"}, **spec},
    }


async def judged(
    around: Lookups, body: dict[str, Any], old: dict[str, Any] | None = None, plugins: Any = None
) -> Verdict:
    """What the validating webhook of TrainJobs says of a creation, or of a change."""
    webhooks = training_webhooks(around, **({"plugin_problems": plugins} if plugins else {}))
    [webhook] = [each for each in webhooks if each.path == "/validate-trainer-kubeflow-org-v1alpha1-trainjob"]
    resource = {"group": "trainer.kubeflow.org", "version": "v1alpha1", "resource": "trainjobs"}
    request = {"resource": resource, "namespace": "team", "operation": "CREATE" if old is None else "UPDATE"}
    return await webhook.review(
        msgspec.structs.replace(
            msgspec.convert(request, AdmissionRequest),
            object=msgspec.Raw(msgspec.json.encode(body)),
            old_object=msgspec.Raw(b"" if old is None else msgspec.json.encode(old)),
        )
    )


async def test_a_sound_job_is_let_through() -> None:
    assert await judged(lookups(a_runtime(ml={"torch": {}})), a_body(trainer={"numNodes": 2})) == Allowed()


@pytest.mark.parametrize(
    ("reference", "key"),
    [
        pytest.param({"name": "a", "kind": "Workflow"}, "Workflow.trainer.kubeflow.org", id="kind"),
        pytest.param({"name": "a", "apiGroup": "acme.io"}, "ClusterTrainingRuntime.acme.io", id="group"),
    ],
)
async def test_a_kind_of_runtime_that_nobody_knows_is_refused(reference: dict[str, Any], key: str) -> None:
    verdict = await judged(lookups(a_runtime()), a_body(reference))
    assert isinstance(verdict, Denied)
    assert (verdict.code, verdict.message) == (403, f"unsupported runtime: {key}")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("ClusterTrainingRuntime", 'clustertrainingruntimes.trainer.kubeflow.org "a" not found: specified cluster'),
        ("TrainingRuntime", 'trainingruntimes.trainer.kubeflow.org "a" not found: specified trainingRuntime must be'),
    ],
)
async def test_a_new_job_needs_its_runtime(kind: str, said: str) -> None:
    verdict = await judged(lookups(), a_body({"name": "a", "kind": kind}))
    assert isinstance(verdict, Denied)
    assert verdict.code == 403
    assert verdict.message.startswith("spec.runtimeRef: Invalid value")
    assert said in verdict.message


CLUSTER = tuple(RuntimeReference(kind="ClusterTrainingRuntime", name=f"r{number:02}") for number in range(12))
HINTS: dict[str, tuple[tuple[RuntimeReference, ...], str]] = {
    "there are none": ((), "is created"),
    "there are others": (CLUSTER[:2], "is created; there are r00, r01"),
    "there are many others": (CLUSTER, "r08, r09 and 2 more"),
    "there is one of the other kind": (
        (*CLUSTER, RuntimeReference(kind="TrainingRuntime", name="a")),
        "is created; there is a TrainingRuntime of that name: set spec.runtimeRef.kind",
    ),
}


@pytest.mark.parametrize(("present", "said"), HINTS.values(), ids=HINTS)
async def test_who_names_no_runtime_is_told_those_that_there_are(
    present: tuple[RuntimeReference, ...], said: str
) -> None:
    verdict = await judged(lookups(present=present), a_body({"name": "a"}))
    assert isinstance(verdict, Denied)
    assert verdict.message.endswith(said)


async def test_a_job_whose_runtime_was_deleted_can_still_be_suspended() -> None:
    assert await judged(lookups(), a_body(suspend=True), a_body()) == Allowed()


async def test_a_job_whose_runtime_was_deleted_is_held_against_what_it_kept_of_it() -> None:
    wrong = a_body(suspend=True, runtimePatches=[a_patch({"name": "nodes"})])
    around = lookups(snapshot=a_runtime(ml={"torch": {}}))
    verdict = await judged(around, wrong, a_body(suspend=True))
    assert isinstance(verdict, Denied)
    assert "must not have replicated job that doesn't exist in the runtime job template" in verdict.message


async def test_who_names_a_deprecated_runtime_is_warned_and_let_through() -> None:
    around = lookups(a_runtime(ml={"torch": {}}), labels={"trainer.kubeflow.org/support": "deprecated"})
    verdict = await judged(around, a_body())
    assert isinstance(verdict, Allowed)
    [warning] = verdict.warnings
    assert warning.startswith('Referenced ClusterTrainingRuntime "torch-distributed" is deprecated')


async def test_a_refusal_has_all_problems_and_their_fields() -> None:
    env = [{"name": "PET_NNODES", "value": "1"}]
    verdict = await judged(
        lookups(a_runtime(ml={"torch": {}})), a_body(trainer={"env": env}, initializer={"model": {}})
    )
    assert isinstance(verdict, Denied)
    assert verdict.message.startswith("[spec.runtimeRef: Invalid value: ")
    assert verdict.message.endswith("configured: [PET_NNODES]]")
    assert verdict.status is not None
    assert [cause.field for cause in verdict.status.details.causes] == ["spec.runtimeRef", "spec.trainer.env"]
    assert (verdict.status.code, verdict.status.reason) == (403, "Forbidden")


async def test_patches_wait_until_no_pod_is_left() -> None:
    around = lookups(a_runtime(ml={"torch": {}}), active=("node",))
    old, new = a_body(suspend=True), a_body(suspend=True, runtimePatches=[a_patch(labels={"a": "b"})])
    verdict = await judged(around, new, old)
    assert isinstance(verdict, Denied)
    assert verdict.message == (
        "spec.runtimePatches: Forbidden: RuntimePatches cannot be modified when the JobSet's ReplicatedJob node is "
        "still active"
    )


async def test_a_priority_class_of_volcanos_must_exist() -> None:
    runtime = a_runtime(
        a_job_patch("node", priorityClassName="high"),
        gang={"volcano": {}},
    )
    verdict = await judged(lookups(runtime), a_body())
    assert isinstance(verdict, Denied)
    assert 'PriorityClass "high" doesn\'t exist' in verdict.message


async def test_plugins_of_others_are_heard() -> None:
    def fussy(old: TrainJob | None, new: TrainJob, runtime: TrainingRuntimeSpec) -> list[FieldProblem]:
        return [forbidden("spec.trainer", f"not for {new.metadata.name}")]

    verdict = await judged(lookups(a_runtime(ml={"torch": {}})), a_body(), plugins=fussy)
    assert isinstance(verdict, Denied)
    assert verdict.message == "spec.trainer: Forbidden: not for job"


@pytest.mark.parametrize("text", ["", "a: [", "[]", "spec: 1"])
def test_a_snapshot_that_somebody_spoilt_is_none(text: str) -> None:
    assert runtime_in(text) is None


def test_a_snapshot_says_what_its_runtime_said() -> None:
    text = "kind: ClusterTrainingRuntime\nmetadata: {name: a}\nspec: {mlPolicy: {numNodes: 3, torch: {}}}\n"
    found = runtime_in(text)
    assert found is not None
    assert found.ml_policy is not None
    assert found.ml_policy.num_nodes == 3
