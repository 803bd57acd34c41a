"""What a JobSet is where its author did not say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.jobset import JobSet
from shoal.training.jobset.admission import defaulted
from tests.training.jobset.builders import a_job_set, a_pod_template, a_replicated_job


def filled(body: dict[str, Any]) -> dict[str, Any]:
    """The specification with everything filled in, as plain values."""
    found: dict[str, Any] = msgspec.to_builtins(defaulted(msgspec.convert(body, JobSet)))
    return dict(found["spec"])


def test_everything_that_was_not_said_is_filled_in() -> None:
    policies = [{"templates": [{"metadata": {"name": "data"}}]}]
    spec = filled(a_job_set(failurePolicy={"rules": [{"action": "FailJobSet"}]}, volumeClaimPolicies=policies))
    assert spec["successPolicy"] == {"operator": "All"}
    assert spec["startupPolicy"] == {"startupPolicyOrder": "AnyOrder"}
    assert spec["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert spec["failurePolicy"]["rules"] == [{"name": "failurePolicyRule0", "action": "FailJobSet"}]
    assert spec["volumeClaimPolicies"][0]["retentionPolicy"] == {"whenDeleted": "Delete"}
    job = spec["replicatedJobs"][0]["template"]["spec"]
    assert (job["completionMode"], job["template"]["spec"]["restartPolicy"]) == ("Indexed", "OnFailure")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("successPolicy", {"operator": "Any", "targetReplicatedJobs": ["workers"]}),
        ("startupPolicy", {"startupPolicyOrder": "InOrder"}),
        ("network", {"enableDNSHostnames": False, "publishNotReadyAddresses": False, "subdomain": "here"}),
        ("failurePolicy", {"maxRestarts": 0, "rules": [{"name": "own", "action": "RestartJobSet"}]}),
        ("volumeClaimPolicies", [{"templates": [], "retentionPolicy": {"whenDeleted": "Retain"}}]),
    ],
)
def test_what_was_said_stays(field: str, value: Any) -> None:
    found = filled(a_job_set(**{field: value}))[field]
    expected = [{"retentionPolicy": {"whenDeleted": "Retain"}}] if field == "volumeClaimPolicies" else value
    assert found == expected


def test_a_template_keeps_its_own_mode_and_policy() -> None:
    pods = a_pod_template(restartPolicy="Never", nodeSelector={"a": "b"})
    spec = filled(a_job_set(a_replicated_job(pods=pods, completionMode="NonIndexed", backoffLimit=0)))
    job = spec["replicatedJobs"][0]["template"]["spec"]
    assert job == {"template": pods, "completionMode": "NonIndexed", "backoffLimit": 0}


@given(
    network=st.sampled_from([None, {}, {"enableDNSHostnames": False}, {"subdomain": "a"}]),
    names=st.lists(st.sampled_from(["", "own"]), max_size=3),
    mode=st.sampled_from([None, "Indexed", "NonIndexed"]),
)
def test_filled_in_twice_it_is_filled_in_once(network: Any, names: list[str], mode: str | None) -> None:
    rules = [{"name": name, "action": "FailJobSet"} for name in names]
    job = a_replicated_job(completionMode=mode)
    body = a_job_set(job, failurePolicy={"rules": rules}, network=network)
    once = defaulted(msgspec.convert(body, JobSet))
    assert defaulted(once) == once
