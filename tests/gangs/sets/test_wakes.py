"""Which changes ask for a look at a set: every one that its status and its work go by, and no others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from shoal.api.scheduler_grove_io import PodGang
from shoal.gangs.sets import wakes
from shoal.kube import Change
from tests.gangs.builders import a_set

MADE = "2026-01-01T00:00:00Z"
OWNER = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "web", "uid": "u2", "controller": True}


def a_condition(kind: str, status: str = "True", since: str = MADE) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": since}


def a_part(*, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: Any) -> Any:
    return {
        "metadata": {"name": "web-0-a", "namespace": "default", "uid": "u", **metadata},
        "spec": spec or {},
        "status": status or {},
    }


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param({"generation": 2}, True, id="it asks for something else"),
        pytest.param({"deletionTimestamp": MADE}, True, id="it goes"),
        pytest.param({"finalizers": ["grove.io/podcliqueset.grove.io"]}, True, id="its finalizer"),
        pytest.param({"annotations": {"grove.io/reconcile-trigger": "1"}}, True, id="it asks to be looked at"),
        pytest.param({"annotations": {"grove.io/mnnvl-group": "fast"}}, True, id="its MNNVL group"),
        pytest.param({"annotations": {"note": "b"}, "labels": {"a": "b"}}, False, id="what others say of it"),
    ],
)
def test_a_set_is_looked_at(after: dict[str, Any], expected: bool) -> None:
    body = a_set("web", metadata={"generation": 1})
    changed = {**body, "metadata": {**body["metadata"], **after}}
    change = Change(msgspec.convert(body, PodCliqueSet), msgspec.convert(changed, PodCliqueSet))
    assert wakes.set_concerns(change) is expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param({"deletionTimestamp": MADE}, True, id="it goes"),
        pytest.param({"ownerReferences": [OWNER]}, True, id="it is another's"),
        pytest.param({"labels": {"grove.io/pod-template-hash": "new"}}, True, id="its template"),
        pytest.param({"spec": {"replicas": 3}}, True, id="its size"),
        pytest.param({"status": {"readyReplicas": 1}}, True, id="ready pods"),
        pytest.param({"status": {"updatedReplicas": 1}}, True, id="updated pods"),
        pytest.param({"status": {"scheduledReplicas": 1}}, True, id="the first pod with a node"),
        pytest.param({"status": {"currentPodTemplateHash": "new"}}, True, id="the template of its pods"),
        pytest.param({"status": {"currentPodCliqueSetGenerationHash": "new"}}, True, id="the templates of the set"),
        pytest.param({"status": {"conditions": [a_condition("MinAvailableBreached")]}}, True, id="a breach"),
        pytest.param({"status": {"conditions": [a_condition("PodCliqueScheduled")]}}, True, id="enough have nodes"),
        pytest.param({"status": {"conditions": [a_condition("PodsGated")]}}, False, id="why pods are gated"),
        pytest.param({"status": {"replicas": 1, "scheduleGatedReplicas": 1}}, False, id="gated pods"),
        pytest.param({"labels": {"a": "b"}, "resourceVersion": "8"}, False, id="what others say of it"),
    ],
)
def test_a_clique_wakes_its_set(after: dict[str, Any], expected: bool) -> None:
    then, now = (msgspec.convert(a_part(**fields), PodClique) for fields in ({}, after))
    assert wakes.clique_concerns(Change(then, now)) is expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param({"deletionTimestamp": MADE}, True, id="it goes"),
        pytest.param({"ownerReferences": [OWNER]}, True, id="it is another's"),
        pytest.param({"spec": {"replicas": 3}}, True, id="its size"),
        pytest.param({"status": {"availableReplicas": 1}}, True, id="available replicas"),
        pytest.param({"status": {"updatedReplicas": 1}}, True, id="updated replicas"),
        pytest.param({"status": {"currentPodCliqueSetGenerationHash": "new"}}, True, id="the templates of the set"),
        pytest.param({"status": {"conditions": [a_condition("GangTerminationInProgress")]}}, True, id="a teardown"),
        pytest.param({"status": {"scheduledReplicas": 1}}, False, id="scheduled replicas alone"),
    ],
)
def test_a_scaling_group_wakes_its_set(after: dict[str, Any], expected: bool) -> None:
    then, now = (msgspec.convert(a_part(**fields), PodCliqueScalingGroup) for fields in ({}, after))
    assert wakes.group_concerns(Change(then, now)) is expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param({"deletionTimestamp": MADE}, True, id="it goes"),
        pytest.param({"ownerReferences": [OWNER]}, True, id="it is another's"),
        pytest.param({"status": {"phase": "Running"}}, True, id="its phase"),
        pytest.param({"status": {"conditions": [a_condition("Initialized")]}}, True, id="a condition"),
        pytest.param({"spec": {"priorityClassName": "high"}, "generation": 2}, False, id="what it says to schedulers"),
    ],
)
def test_a_gang_wakes_its_set(after: dict[str, Any], expected: bool) -> None:
    then, now = (msgspec.convert(a_part(**fields), PodGang) for fields in ({}, after))
    assert wakes.gang_concerns(Change(then, now)) is expected
