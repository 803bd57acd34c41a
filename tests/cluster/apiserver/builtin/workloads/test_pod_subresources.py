"""What the subresources of pods do: binding, eviction, resize, ephemeral containers; and how pods end."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from shoal.cluster.apiserver.builtin.workloads import (
    RULES,
    Eviction,
    bind,
    evicted,
    eviction_blocked,
    grace_seconds,
    prepare_ephemeral_containers,
    prepare_resize,
    validate_ephemeral_containers_update,
    validate_resize,
)
from shoal.cluster.apiserver.kinds.decode import decode
from shoal.cluster.apiserver.refusals import Refused
from tests.cluster.apiserver.builtin.workloads.objects import POD, changed, with_changes
from tests.cluster.apiserver.builtin.workloads.server import KINDS

Changes = dict[str, Any]
_BOUND: Changes = {"spec/nodeName": "n"}


def a_stored_pod(changes: Changes | None = None) -> dict[str, Any]:
    kind = KINDS[POD]
    pod: dict[str, Any] = decode(kind.schema, changed(POD, {"metadata/namespace": "ns", "metadata/uid": "u"}), [])
    kind.rules.defaults(pod)
    kind.rules.prepare_create(pod)
    return with_changes(pod, changes or {})


def a_binding(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "it", **metadata}, "target": {"kind": "Node", "name": "n1"}}


def a_budget(name: str = "b", *, allowed: int = 1, policy: str = "", **status: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"selector": {"matchLabels": {"app": "x"}}}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    return {
        "metadata": {"name": name, "generation": 2},
        "spec": spec,
        "status": {"observedGeneration": 2, "disruptionsAllowed": allowed, **status},
    }


def a_running_pod(*, ready: bool = True) -> dict[str, Any]:
    return a_stored_pod(
        {
            "metadata/labels": {"app": "x"},
            "status/phase": "Running",
            "status/conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        }
    )


def problems_of(problems: list[Any]) -> list[str]:
    return [str(each).partition("\n")[0] for each in problems]


def test_a_bound_pod_has_its_node_its_condition_and_what_the_binding_says() -> None:
    pod = a_stored_pod({"metadata/annotations": {"x": "y"}, "status/nominatedNodeName": "n0"})
    before = copy.deepcopy(pod)
    bound = bind(pod, a_binding(annotations={"a": "b"}, labels={"l": "m"}))
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["annotations"] == {"x": "y", "a": "b"}
    assert bound["metadata"]["labels"] == {"l": "m"}
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["lastProbeTime"]) == ("PodScheduled", "True", None)
    assert "nominatedNodeName" not in bound["status"]
    assert pod == before


@pytest.mark.parametrize(
    ("pod", "binding", "code", "message"),
    [
        pytest.param(
            {"spec/nodeName": "n2"},
            a_binding(),
            409,
            'Operation cannot be fulfilled on pods/binding "it": pod it is already assigned to node "n2"',
            id="bound already",
        ),
        pytest.param(
            {"metadata/deletionTimestamp": "2026-01-01T00:00:00Z"},
            a_binding(),
            409,
            'Operation cannot be fulfilled on pods/binding "it": pod it is being deleted, cannot be assigned to a host',
            id="being deleted",
        ),
        pytest.param(
            {"spec/schedulingGates": [{"name": "g"}]},
            a_binding(),
            409,
            'Operation cannot be fulfilled on pods/binding "it": pod it has non-empty .spec.schedulingGates',
            id="gated",
        ),
        pytest.param(
            {},
            a_binding(uid="v"),
            409,
            'Operation cannot be fulfilled on pods "it": StorageError: invalid object, Code: 4, '
            "Key: /registry/pods/ns/it, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
            "UID in precondition: v, UID in object meta: u",
            id="another pod",
        ),
        pytest.param(
            {}, a_binding(name="o"), 400, "name in URL does not match name in Binding object", id="another name"
        ),
        pytest.param(
            {},
            {"metadata": {"name": "it"}, "target": {"kind": "Pod", "name": "n"}},
            500,
            'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
            id="to no node",
        ),
        pytest.param({}, {"metadata": {"name": "it"}}, 500, "target.name: Required value", id="to nowhere"),
    ],
)
def test_a_binding_is_refused_in_the_words_of_kubernetes(
    pod: Changes, binding: dict[str, Any], code: int, message: str
) -> None:
    with pytest.raises(Refused) as refused:
        bind(a_stored_pod(pod), binding)
    assert (refused.value.status.code, refused.value.status.message) == (code, message)


@pytest.mark.parametrize(
    ("changes", "asked", "seconds"),
    [
        pytest.param(_BOUND, None, 30, id="its own period"),
        pytest.param(_BOUND, 5, 5, id="the one asked for"),
        pytest.param(_BOUND, 0, 0, id="at once"),
        pytest.param(_BOUND, -1, 1, id="below zero"),
        pytest.param({}, None, 0, id="never scheduled"),
        pytest.param({**_BOUND, "status/phase": "Succeeded"}, 30, 0, id="succeeded"),
        pytest.param({**_BOUND, "status/phase": "Failed"}, None, 0, id="failed"),
    ],
)
def test_a_pod_gets_time_to_end_only_where_it_runs(changes: Changes, asked: int | None, seconds: int) -> None:
    assert grace_seconds(a_stored_pod(changes), asked) == seconds
    assert RULES[POD].grace_seconds is grace_seconds


@pytest.mark.parametrize(
    ("changes", "needs_same_version"),
    [
        pytest.param({"status/phase": "Pending"}, True, id="pending"),
        pytest.param({"status/phase": "Succeeded"}, False, id="succeeded"),
        pytest.param({"status/phase": "Running", "metadata/deletionTimestamp": "t"}, False, id="going already"),
    ],
)
def test_budgets_do_not_hold_pods_that_do_not_run(changes: Changes, needs_same_version: bool) -> None:
    pod = a_stored_pod({"metadata/labels": {"app": "x"}, **changes})
    assert eviction_blocked(pod, [a_budget(allowed=0)]) == Eviction(needs_same_version=needs_same_version)


def test_an_eviction_is_counted_in_its_budget() -> None:
    budget = a_budget(allowed=1)
    before = copy.deepcopy(budget)
    terms = eviction_blocked(a_running_pod(), [budget, {**a_budget("other"), "spec": {}}])
    assert isinstance(terms, Eviction)
    assert terms.budget is not None
    status = terms.budget["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["it"]
    assert [each["reason"] for each in status["conditions"]] == ["InsufficientPods"]
    assert budget == before


def test_a_pod_of_no_budget_may_go() -> None:
    assert eviction_blocked(a_running_pod(), []) == Eviction()


@pytest.mark.parametrize(
    ("budget", "ready", "may_go"),
    [
        pytest.param(a_budget(allowed=0, policy="AlwaysAllow"), False, True, id="unready, always allowed"),
        pytest.param(a_budget(allowed=0, currentHealthy=2, desiredHealthy=2), False, True, id="unready, enough others"),
        pytest.param(a_budget(allowed=0, currentHealthy=1, desiredHealthy=2), False, False, id="unready, too few"),
        pytest.param(a_budget(allowed=0, policy="AlwaysAllow"), True, False, id="ready"),
    ],
)
def test_an_unready_pod_may_go_where_the_budget_says_so(budget: dict[str, Any], ready: bool, may_go: bool) -> None:
    terms = eviction_blocked(a_running_pod(ready=ready), [budget])
    assert isinstance(terms, Eviction) is may_go


_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."


@pytest.mark.parametrize(
    ("budgets", "code", "message", "cause"),
    [
        pytest.param(
            [a_budget(allowed=0, currentHealthy=1, desiredHealthy=1)],
            429,
            _VIOLATES,
            "The disruption budget b needs 1 healthy pods and has 1 currently",
            id="no disruption left",
        ),
        pytest.param(
            [a_budget(allowed=0, currentHealthy=2)],
            429,
            _VIOLATES,
            "The disruption budget b does not allow evicting pods currently",
            id="for no reason",
        ),
        pytest.param(
            [
                a_budget(
                    allowed=0,
                    conditions=[
                        {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "oh"}
                    ],
                )
            ],
            429,
            _VIOLATES,
            "The disruption budget b does not allow evicting pods currently because it failed sync: oh",
            id="failed sync",
        ),
        pytest.param(
            [a_budget(observedGeneration=1)],
            429,
            _VIOLATES,
            "The disruption budget b is still being processed by the server.",
            id="not observed",
        ),
        pytest.param(
            [a_budget("a"), a_budget("b")],
            500,
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            "",
            id="two budgets",
        ),
        pytest.param(
            [a_budget(allowed=-1)],
            403,
            'poddisruptionbudget.policy "b" is forbidden: pdb disruptions allowed is negative',
            "",
            id="below zero",
        ),
    ],
)
def test_an_eviction_is_refused_in_the_words_of_kubernetes(
    budgets: list[dict[str, Any]], code: int, message: str, cause: str
) -> None:
    refused = eviction_blocked(a_running_pod(), budgets)
    assert isinstance(refused, Refused)
    assert (refused.status.code, refused.status.message) == (code, message)
    assert [each.message for each in refused.status.details.causes] == ([cause] if cause else [])


def test_an_evicted_pod_says_why_it_goes() -> None:
    (condition,) = evicted(a_stored_pod())["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "EvictionByEvictionAPI")


def _resized(changes: Changes, made: Changes | None = None) -> tuple[dict[str, Any], list[str]]:
    old = a_stored_pod(
        {"spec/containers/0/resources": {"requests": {"cpu": "1"}}, "status/qosClass": "Burstable", **(made or {})}
    )
    new = with_changes(copy.deepcopy(old), changes)
    before = copy.deepcopy(old)
    prepare_resize(new, old)
    problems = problems_of(validate_resize(new, old))
    assert old == before
    return new, problems


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"spec/containers/0/resources/requests/cpu": "2"}, [], id="more CPU"),
        pytest.param(
            {"spec/containers/0/resources": {}},
            [
                'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
                "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
            ],
            id="no CPU",
        ),
        pytest.param(
            {"spec/containers/0/resources": {"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}}},
            ["spec: Forbidden: only cpu and memory resources are mutable"],
            id="storage",
        ),
        pytest.param(
            {"spec/containers/0/name": "other"},
            ["spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"],
            id="renamed",
        ),
        pytest.param(
            {
                "spec/containers/1": {
                    "name": "b",
                    "image": "x",
                    "imagePullPolicy": "Always",
                    "terminationMessagePolicy": "File",
                }
            },
            ["spec.containers: Forbidden: containers may not be added or removed on resize"],
            id="one more",
        ),
        pytest.param({"spec/containers/0/image": "other"}, [], id="an image is not looked at"),
    ],
)
def test_a_resize_changes_cpu_and_memory_alone(changes: Changes, expected: list[str]) -> None:
    assert _resized(changes)[1] == expected


def test_a_resize_takes_nothing_but_resources() -> None:
    new, _ = _resized({"spec/containers/0/image": "other", "metadata/labels": {"a": "b"}, "spec/hostNetwork": True})
    assert new["spec"]["containers"][0]["image"] == "registry.example/app:1.2"
    assert "labels" not in new["metadata"]
    assert "hostNetwork" not in new["spec"]


def test_a_resize_needs_a_node_that_can() -> None:
    running = [{"name": "main", "state": {"running": {}}}]
    _, problems = _resized({"spec/containers/0/resources/requests/cpu": "2"}, {"status/containerStatuses": running})
    assert problems == ["spec: Forbidden: Pod running on node without support for resize"]


_LOOK = {"name": "look", "image": "x", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param([], [_LOOK], [], id="added"),
        pytest.param(
            [_LOOK],
            [],
            ['spec.ephemeralContainers: Forbidden: existing ephemeral containers "look" may not be removed'],
            id="taken away",
        ),
        pytest.param(
            [_LOOK],
            [{**_LOOK, "image": "y"}],
            ['spec.ephemeralContainers: Forbidden: existing ephemeral containers "look" may not be changed'],
            id="changed",
        ),
        pytest.param(
            [],
            [
                {
                    **_LOOK,
                    "name": "main",
                    "ports": [{"containerPort": 1, "protocol": "TCP"}],
                    "targetContainerName": "no",
                }
            ],
            [
                'spec.ephemeralContainers[0].name: Duplicate value: "main"',
                'spec.ephemeralContainers[0].targetContainerName: Not found: "no"',
                "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
            ],
            id="bad",
        ),
    ],
)
def test_ephemeral_containers_are_only_added(old: list[Any], new: list[Any], expected: list[str]) -> None:
    before = a_stored_pod({"spec/ephemeralContainers": old} if old else {})
    after = with_changes(copy.deepcopy(before), {"spec/ephemeralContainers": new, "spec/hostNetwork": True})
    prepare_ephemeral_containers(after, before)
    assert "hostNetwork" not in after["spec"]
    assert problems_of(validate_ephemeral_containers_update(after, before)) == expected


@pytest.mark.parametrize(
    ("policy", "code", "problems"),
    [
        pytest.param("Always", 0, [], id="always"),
        pytest.param("OnFailure", 1, [], id="after a failure"),
        pytest.param(
            "OnFailure",
            0,
            ["status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"],
            id="after success",
        ),
        pytest.param(
            "Never",
            1,
            ["status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"],
            id="never",
        ),
    ],
)
def test_a_container_that_ended_for_good_does_not_come_back(policy: str, code: int, problems: list[str]) -> None:
    old = a_stored_pod(
        {
            "spec/restartPolicy": policy,
            "status/containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": code}}}],
        }
    )
    new = with_changes(copy.deepcopy(old), {"status/containerStatuses": [{"name": "main", "state": {"running": {}}}]})
    assert problems_of(RULES[POD].validate_status(new, old)) == problems


def test_a_status_keeps_what_an_old_writer_does_not_know() -> None:
    conditions = [{"type": "Ready", "status": "True", "observedGeneration": 3}]
    old = a_stored_pod(
        {"status/observedGeneration": 4, "status/conditions": conditions, "status/qosClass": "BestEffort"}
    )
    new = a_stored_pod({"status": {"conditions": [{"type": "Ready", "status": "False"}]}, "spec/hostNetwork": True})
    RULES[POD].prepare_status(new, old)
    assert new["spec"] == old["spec"]
    assert new["status"]["qosClass"] == "BestEffort"
    assert new["status"]["observedGeneration"] == 4
    assert new["status"]["conditions"][0]["observedGeneration"] == 3


@pytest.mark.parametrize(
    ("field", "changes", "value"),
    [
        ("spec.nodeName", _BOUND, "n"),
        ("spec.nodeName", {}, ""),
        ("spec.restartPolicy", {}, "Always"),
        ("spec.schedulerName", {}, "default-scheduler"),
        ("spec.serviceAccountName", {}, "default"),
        ("spec.hostNetwork", {}, "false"),
        ("spec.hostNetwork", {"spec/hostNetwork": True}, "true"),
        ("status.phase", {}, "Pending"),
        ("status.podIP", {"status/podIPs": [{"ip": "1.2.3.4"}]}, "1.2.3.4"),
        ("status.nominatedNodeName", {"status/nominatedNodeName": "m"}, "m"),
    ],
)
def test_field_selectors_find_what_a_pod_holds(field: str, changes: Changes, value: str) -> None:
    assert RULES[POD].fields[field](a_stored_pod(changes)) == value
