"""What a JobSet's Jobs and their pods are made of."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from shoal.api.jobset import JobSetStatus, names
from shoal.training.jobset.jobs import missing_jobs, wanted_job
from tests.training.jobset.builders import UID, a_pod_template, a_replicated_job, a_status, a_typed_set, restarted

PREFIX = "jobset.sigs.k8s.io/"
SIX = (
    a_replicated_job("driver", group="head"),
    a_replicated_job("workers", 3, group="body"),
    a_replicated_job("readers", 2, group="body"),
)


def job_of(job_set: Any, replicated_job: str, index: int, *, single: bool = False) -> dict[str, Any]:
    [found] = [each for each in job_set.spec.replicated_jobs if each.name == replicated_job]
    return wanted_job(job_set, found, index, restarts_single_jobs=single)


def test_a_job_and_its_pods_are_labelled_and_annotated_alike() -> None:
    job = job_of(a_typed_set(*SIX, status=restarted(2)), "readers", 1)
    key = hashlib.sha1(b"default/train-readers-1", usedforsecurity=False).hexdigest()
    expected = {
        f"{PREFIX}jobset-name": "train",
        f"{PREFIX}jobset-uid": UID,
        f"{PREFIX}replicatedjob-name": "readers",
        f"{PREFIX}restart-attempt": "2",
        f"{PREFIX}replicatedjob-replicas": "2",
        f"{PREFIX}global-replicas": "6",
        f"{PREFIX}job-index": "1",
        f"{PREFIX}job-key": key,
        f"{PREFIX}job-global-index": "5",
        f"{PREFIX}group-name": "body",
        f"{PREFIX}group-replicas": "5",
        f"{PREFIX}job-group-index": "4",
    }
    assert job["metadata"]["name"] == "train-readers-1"
    assert job["metadata"]["namespace"] == "default"
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        assert metadata["labels"] == expected
        assert metadata["annotations"] == expected


@pytest.mark.parametrize(
    ("replicated_job", "index", "global_index", "group_index"),
    [("driver", 0, "0", "0"), ("workers", 0, "1", "0"), ("workers", 2, "3", "2"), ("readers", 0, "4", "3")],
)
def test_jobs_are_numbered_in_the_set_and_in_their_group(
    replicated_job: str, index: int, global_index: str, group_index: str
) -> None:
    labels = job_of(a_typed_set(*SIX), replicated_job, index)["metadata"]["labels"]
    assert (labels[names.JOB_GLOBAL_INDEX], labels[names.JOB_GROUP_INDEX]) == (global_index, group_index)


def test_a_replicated_job_without_a_group_is_in_the_default_one() -> None:
    labels = job_of(a_typed_set(a_replicated_job("a", 2), a_replicated_job("b")), "b", 0)["metadata"]["labels"]
    assert (labels[names.GROUP_NAME], labels[names.GROUP_REPLICAS], labels[names.JOB_GROUP_INDEX]) == (
        "default",
        "3",
        "2",
    )


def test_what_the_template_says_is_kept_and_ours_wins() -> None:
    pods = {
        **a_pod_template(nodeSelector={"a": "b"}),
        "metadata": {"labels": {"own": "pod", names.JOB_INDEX: "9"}, "annotations": {"note": "pod"}},
    }
    body = a_replicated_job(pods=pods, backoffLimit=3, parallelism=2)
    body["template"]["metadata"] = {"labels": {"own": "job"}, "annotations": {"note": "job"}}
    job = job_of(a_typed_set(body), "workers", 0)
    assert (job["metadata"]["labels"]["own"], job["metadata"]["annotations"]["note"]) == ("job", "job")
    template = job["spec"]["template"]
    assert (template["metadata"]["labels"]["own"], template["metadata"]["annotations"]["note"]) == ("pod", "pod")
    assert template["metadata"]["labels"][names.JOB_INDEX] == "0"
    assert (job["spec"]["backoffLimit"], job["spec"]["parallelism"]) == (3, 2)
    assert template["spec"]["nodeSelector"] == {"a": "b"}


@pytest.mark.parametrize(
    ("network", "subdomain"),
    [
        pytest.param(None, "train", id="by default the JobSet's name"),
        pytest.param({"subdomain": "here"}, "here", id="its own"),
        pytest.param({"enableDNSHostnames": False}, None, id="none without names"),
    ],
)
def test_pods_are_found_under_the_subdomain(network: dict[str, Any] | None, subdomain: str | None) -> None:
    job_set = a_typed_set(network=network)
    assert job_of(job_set, "workers", 0)["spec"]["template"]["spec"].get("subdomain") == subdomain


@pytest.mark.parametrize("suspend", [True, False])
def test_a_job_waits_as_its_job_set_does_and_says_so(suspend: bool) -> None:
    job = job_of(a_typed_set(a_replicated_job(suspend=not suspend), suspend=suspend), "workers", 0)
    assert job["spec"]["suspend"] is suspend


def test_all_jobs_know_the_coordinator() -> None:
    coordinator = {"replicatedJob": "driver", "podIndex": 1}
    job_set = a_typed_set(*SIX, coordinator=coordinator, network={"subdomain": "net"})
    for job in (job_of(job_set, "driver", 0), job_of(job_set, "readers", 1)):
        for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
            assert metadata["labels"][names.COORDINATOR] == "train-driver-0-1.net"
            assert metadata["annotations"][names.COORDINATOR] == "train-driver-0-1.net"


def test_a_job_says_how_often_it_was_restarted_alone_where_that_is_enabled() -> None:
    status = JobSetStatus(replicated_jobs_status=[a_status("workers", job_restarts=[0, 2])])
    job_set = a_typed_set(a_replicated_job("workers", 2), a_replicated_job("driver"), status=status)
    said = [
        each["metadata"]["labels"][names.JOB_RESTART_ATTEMPT]
        for replicated_job in job_set.spec.replicated_jobs
        for each in missing_jobs(job_set, replicated_job, (), restarts_single_jobs=True)
    ]
    assert said == ["0", "2", "0"]
    assert names.JOB_RESTART_ATTEMPT not in job_of(job_set, "workers", 1)["metadata"]["labels"]


TOPOLOGY, STRATEGY = names.EXCLUSIVE_TOPOLOGY, names.NODE_SELECTOR_STRATEGY


@pytest.mark.parametrize(
    ("of_set", "of_template", "expected"),
    [
        pytest.param({}, {}, {}, id="none"),
        pytest.param({TOPOLOGY: "rack"}, {}, {TOPOLOGY: "rack"}, id="for all"),
        pytest.param({}, {TOPOLOGY: "rack"}, {TOPOLOGY: "rack"}, id="for one"),
        pytest.param({TOPOLOGY: "rack"}, {TOPOLOGY: "block"}, {TOPOLOGY: "block"}, id="its own wins"),
        pytest.param({TOPOLOGY: "rack", STRATEGY: ""}, {}, {TOPOLOGY: "rack", STRATEGY: ""}, id="on labelled nodes"),
        pytest.param({STRATEGY: ""}, {}, {}, id="labelled nodes alone mean nothing"),
    ],
)
def test_exclusive_placement_is_asked_for_by_annotation(
    of_set: dict[str, str], of_template: dict[str, str], expected: dict[str, str]
) -> None:
    job_set = a_typed_set(a_replicated_job(annotations=of_template), annotations=of_set)
    job = job_of(job_set, "workers", 0)
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        assert {key: value for key, value in metadata["annotations"].items() if key in (TOPOLOGY, STRATEGY)} == expected
        assert TOPOLOGY not in metadata["labels"]
    spec = job["spec"]["template"]["spec"]
    is_labelled = STRATEGY in expected
    assert spec.get("nodeSelector") == ({names.NAMESPACED_JOB: "default_train-workers-0"} if is_labelled else None)
    toleration = {"key": names.NO_SCHEDULE_TAINT, "operator": "Exists", "effect": "NoSchedule"}
    assert spec.get("tolerations") == ([toleration] if is_labelled else None)
