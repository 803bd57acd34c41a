from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from shoal.api.core import Pod, ResourceQuota
from shoal.cluster.controllers.quotas.ledger import Group, pod_face
from shoal.cluster.controllers.quotas.status import (
    counted_kinds,
    counted_usage,
    measured_kinds,
    measured_usage,
    quota_status,
)
from shoal.cluster.pod_resources import amounts
from tests.support.builders.pods import a_pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_quota(hard: dict[str, str], status: dict[str, Any] | None = None, **spec: Any) -> ResourceQuota:
    return msgspec.convert({"spec": {"hard": hard, **spec}, "status": status or {}}, ResourceQuota)


def shown(quota: ResourceQuota, *groups: tuple[Pod, int]) -> dict[str, str]:
    found = measured_usage(quota, "pods", [Group(msgspec.to_builtins(pod), count) for pod, count in groups], NOW)
    return {name: str(amount) for name, amount in found.items()}


def test_equal_pods_are_multiplied_and_different_ones_added() -> None:
    quota = a_quota({"pods": "9", "requests.memory": "9Gi", "limits.cpu": "1"})
    groups = (a_pod(requests={"memory": "512Mi"}), 3), (a_pod(requests={"memory": "1Gi"}), 1)
    assert shown(quota, *groups) == {"limits.cpu": "0", "pods": "4", "requests.memory": "2560Mi"}


@pytest.mark.parametrize(
    ("pod", "pods"),
    [
        pytest.param(a_pod(phase="Succeeded"), "0", id="finished"),
        pytest.param(
            a_pod(metadata={"deletionTimestamp": "2025-12-31T23:59:00Z", "deletionGracePeriodSeconds": 30}), "0",
            id="should be gone by now",
        ),
        pytest.param(
            a_pod(metadata={"deletionTimestamp": "2025-12-31T23:59:50Z", "deletionGracePeriodSeconds": 30}), "2",
            id="has time left",
        ),
    ],
)  # fmt: skip
def test_a_pod_that_is_over_is_an_object_and_nothing_more(pod: Pod, pods: str) -> None:
    assert shown(a_quota({"pods": "9", "count/pods": "9"}), (pod, 2)) == {"count/pods": "2", "pods": pods}


def test_a_scoped_quota_counts_only_pods_of_its_scope_and_no_other_kind() -> None:
    quota = a_quota({"pods": "9"}, scopes=["Terminating"])
    assert shown(quota, (a_pod(activeDeadlineSeconds=5), 1), (a_pod(), 4)) == {"pods": "1"}
    counting = a_quota({"count/configmaps": "9"}, scopes=["Terminating"])
    assert counted_usage(counting, "configmaps", 7)["count/configmaps"].is_zero


def test_which_kinds_a_quota_is_about() -> None:
    quota = a_quota(
        dict.fromkeys(
            ["requests.nvidia.com/gpu", "gold.storageclass.storage.k8s.io/requests.storage", "count/deployments.apps",
             "secrets", "count/pods", "count/events"], "1",
        )
    )  # fmt: skip
    assert measured_kinds(quota) == ["pods", "persistentvolumeclaims"]
    assert counted_kinds(quota) == ["deployments.apps", "secrets"]


def test_what_cannot_be_found_out_stays_and_what_is_not_limited_goes() -> None:
    before = {"hard": {"a.b/c": "5", "old": "1"}, "used": {"a.b/c": "2", "old": "1"}}
    status = quota_status(a_quota({"a.b/c": "5", "pods": "3"}, before), amounts({"pods": "1"}))
    assert (status.hard, status.used) == ({"a.b/c": "5", "pods": "3"}, {"a.b/c": "2", "pods": "1"})


def test_the_same_amount_in_another_spelling_is_no_change() -> None:
    before = {"hard": {"requests.memory": "1024Mi"}, "used": {"requests.memory": "512Mi"}}
    quota = a_quota({"requests.memory": "1Gi"}, before)
    assert quota_status(quota, amounts({"requests.memory": "0.5Gi"})) == quota.status


def test_pods_have_the_same_face_where_they_use_the_same() -> None:
    pod = a_pod(requests={"cpu": "1"})
    other = {"name": "main", "image": "other"}
    running = a_pod(requests={"cpu": "1"}, uid="other", containers=[other], phase="Running")
    assert pod_face(pod) == pod_face(running)
    assert pod_face(pod) != pod_face(a_pod(requests={"cpu": "2"}))
    assert pod_face(pod) != pod_face(a_pod(requests={"cpu": "1"}, phase="Failed"))
    assert pod_face(pod) != pod_face(a_pod(requests={"cpu": "1"}, priorityClassName="high"))
    assert pod_face(pod) != pod_face(a_pod(requests={"cpu": "1"}, activeDeadlineSeconds=1))
    resized = {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}
    assert pod_face(pod) != pod_face(a_pod(requests={"cpu": "1"}, status=resized))
