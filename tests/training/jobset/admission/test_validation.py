"""Which JobSets are refused, for which field and by which rule."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.kube.admission import FieldProblem, Warn
from shoal.training.jobset.admission import job_set_findings
from shoal.training.jobset.settings import JobSetSettings
from tests.training.jobset.builders import a_job_set, a_pod_template, a_replicated_job, typed

ALL_ON = JobSetSettings(restarts_single_jobs=True, restarts_in_place=True)
RULES = "spec.failurePolicy.rules[0]"


def findings(body: dict[str, Any], settings: JobSetSettings = JobSetSettings()) -> list[str]:
    found = list(job_set_findings(typed(body), settings))
    return [str(each) if isinstance(each, FieldProblem) else f"warning: {each.message}" for each in found]


def refused(body: dict[str, Any], place: str, words: str, settings: JobSetSettings = JobSetSettings()) -> None:
    found = findings(body, settings)
    assert len(found) == 1, found
    assert found[0].startswith(f"{place}: ")
    assert words in found[0]


def a_rule(**fields: Any) -> dict[str, Any]:
    return a_job_set(failurePolicy={"rules": [{"action": "FailJobSet", **fields}]})


def test_a_sound_job_set_is_accepted() -> None:
    body = a_job_set(
        a_replicated_job("leader", completions=2),
        a_replicated_job("workers", 4, depends_on={"leader": "Ready"}, group="all"),
        network={"subdomain": "net"},
        managedBy="kueue.x-k8s.io/multikueue",
        successPolicy={"operator": "All", "targetReplicatedJobs": ["leader"]},
        failurePolicy={"maxRestarts": 3, "rules": [{"action": "FailJobSet", "targetReplicatedJobs": ["workers"]}]},
        coordinator={"replicatedJob": "leader", "podIndex": 1},
    )
    assert findings(body) == []


REFUSED: list[Any] = [
    pytest.param(
        a_job_set(a_replicated_job("a", depends_on={"b": "Ready"}), a_replicated_job("b")),
        "spec.replicatedJobs[0].dependsOn",
        "DependsOn can't be set for the first ReplicatedJob",
        id="the first one depends on nobody",
    ),
    pytest.param(
        a_job_set(a_replicated_job("a"), a_replicated_job("b", depends_on={"c": "Ready"}), a_replicated_job("c")),
        "spec.replicatedJobs[1].dependsOn[0].name",
        "b cannot depend on c",
        id="nobody depends on a later one",
    ),
    pytest.param(
        a_job_set(a_replicated_job("a"), a_replicated_job("b", depends_on={"b": "Ready"})),
        "spec.replicatedJobs[1].dependsOn[0].name",
        "b cannot depend on b",
        id="nor on itself",
    ),
    pytest.param(
        a_job_set(network={"subdomain": "1st"}),
        "spec.network.subdomain",
        "start with a letter",
        id="a subdomain's letters",
    ),
    pytest.param(a_job_set(network={"subdomain": "a" * 64}), "spec.network.subdomain", "63", id="a subdomain's length"),
    pytest.param(a_job_set(managedBy="me"), "spec.managedBy", "domain-prefixed path", id="a manager's domain"),
    pytest.param(a_job_set(managedBy="/me"), "spec.managedBy", "domain-prefixed path", id="a manager's empty domain"),
    pytest.param(a_job_set(managedBy="a.io/"), "spec.managedBy", "domain-prefixed path", id="a manager's path"),
    pytest.param(a_job_set(managedBy=f"a.io/{'b' * 59}"), "spec.managedBy", "63", id="a manager's length"),
    pytest.param(
        a_job_set(a_replicated_job(group="Big")),
        "spec.replicatedJobs[0].groupName",
        "start with a letter",
        id="a group's name",
    ),
    pytest.param(
        a_job_set(a_replicated_job("workers", 101), name="j" * 53),
        "spec.replicatedJobs[0].name",
        "the names of its Jobs would not do",
        id="names of Jobs have at most 63 characters",
    ),
    pytest.param(
        a_job_set(a_replicated_job("w", completions=10), name="j" * 52),
        "spec.replicatedJobs[0].name",
        "the names of its pods would not do",
        id="names of pods, with their suffix, too",
    ),
    pytest.param(
        a_job_set(a_replicated_job(replicas=2**20, parallelism=2**12)),
        "spec.replicatedJobs[0].replicas",
        "2147483647",
        id="more pods than can be counted",
    ),
    pytest.param(
        a_job_set(successPolicy={"operator": "Any", "targetReplicatedJobs": ["workers", "other"]}),
        "spec.successPolicy.targetReplicatedJobs[1]",
        "'other' does not appear in .spec.ReplicatedJobs",
        id="success of nobody",
    ),
    pytest.param(
        a_rule(targetReplicatedJobs=["other"]),
        f"{RULES}.targetReplicatedJobs[0]",
        "'other' does not appear",
        id="failure of nobody",
    ),
    pytest.param(a_rule(name="a" * 129), f"{RULES}.name", "1 to 128", id="a rule's name is short"),
    pytest.param(a_rule(name="9a"), f"{RULES}.name", "begin with a letter", id="a rule's name has letters"),
    pytest.param(a_rule(name="a:"), f"{RULES}.name", "end with a letter", id="a rule's name ends with one"),
    pytest.param(
        a_rule(onJobFailureReasons=["Bored"]),
        f"{RULES}.onJobFailureReasons[0]",
        "BackoffLimitExceeded",
        id="a reason that Jobs never have",
    ),
    pytest.param(
        a_job_set(failurePolicy={"rules": [{"name": "a", "action": "FailJobSet"}] * 2}),
        "spec.failurePolicy.rules[1].name",
        "Duplicate",
        id="a rule that is there twice",
    ),
    pytest.param(a_rule(action="RestartJob"), f"{RULES}.action", "not enabled", id="what is not enabled"),
    pytest.param(
        a_job_set(failurePolicy={"restartStrategy": "InPlaceRestart"}),
        "spec.failurePolicy.restartStrategy",
        "InPlaceRestart is not enabled",
        id="a restart in place",
    ),
    pytest.param(
        a_job_set(coordinator={"replicatedJob": "other"}),
        "spec.coordinator.replicatedJob",
        "coordinator replicatedJob other does not exist",
        id="a coordinator that is not there",
    ),
    pytest.param(
        a_job_set(a_replicated_job(completions=1), coordinator={"replicatedJob": "workers", "jobIndex": 1}),
        "spec.coordinator.jobIndex",
        "coordinator job index 1 is invalid",
        id="a coordinator in no Job",
    ),
    pytest.param(
        a_job_set(a_replicated_job(completions=2), coordinator={"replicatedJob": "workers", "podIndex": 2}),
        "spec.coordinator.podIndex",
        "coordinator pod index 2 is invalid",
        id="a coordinator in no pod",
    ),
    pytest.param(
        a_job_set(coordinator={"replicatedJob": "workers"}),
        "spec.coordinator.replicatedJob",
        "must be indexed completion mode, and completions number must be set",
        id="a coordinator without an index",
    ),
    pytest.param(
        a_job_set(
            a_replicated_job(completions=1),
            coordinator={"replicatedJob": "workers"},
            network={"subdomain": "n" * 60},
        ),
        "spec.coordinator",
        "pods are labelled with it",
        id="a coordinator whose address is no label",
    ),
]
"""JobSets that one rule refuses: the place, and what is said."""


@pytest.mark.parametrize(("body", "place", "words"), REFUSED)
def test_a_job_set_is_refused_by_one_rule(body: dict[str, Any], place: str, words: str) -> None:
    refused(body, place, words, ALL_ON if "not enabled" not in words else JobSetSettings())


def test_a_name_that_the_server_finishes_is_as_long_as_it_will_be() -> None:
    body = a_job_set(a_replicated_job("w"))
    body["metadata"] = {"generateName": "j" * 55, "namespace": "default"}
    assert findings(body) != []
    body["metadata"]["generateName"] = "j" * 54
    assert findings(body) == []


def test_single_restarts_need_room_in_the_status() -> None:
    body = a_job_set(a_replicated_job(replicas=1025), failurePolicy={"rules": [{"action": "RestartJob"}]})
    refused(body, f"{RULES}.action", "no more than 1024", ALL_ON)


def test_a_restart_in_place_needs_jobs_that_never_give_up() -> None:
    policy = {"restartStrategy": "InPlaceRestart"}
    sound: dict[str, Any] = {
        "backoffLimit": 2**31 - 1,
        "podReplacementPolicy": "Failed",
        "completions": 2,
        "parallelism": 2,
    }
    assert findings(a_job_set(a_replicated_job(**sound), failurePolicy=policy), ALL_ON) == []
    spec = "spec.replicatedJobs[0].template.spec"
    for field, value in (("backoffLimit", 6), ("podReplacementPolicy", "TerminatingOrFailed"), ("completions", 1)):
        body = a_job_set(a_replicated_job(**{**sound, field: value}), failurePolicy=policy)
        refused(body, f"{spec}.{field}", "InPlaceRestart", ALL_ON)


def test_a_pattern_that_is_none_is_warned_of() -> None:
    [found] = job_set_findings(typed(a_rule(onJobFailureMessagePatterns=["a+", "("])), JobSetSettings())
    assert isinstance(found, Warn)
    assert "onJobFailureMessagePatterns[1]: '(' is no RE2 pattern" in found.message


MOUNTS = [{"name": "data", "mountPath": "/data"}]
CLAIM = {"metadata": {"name": "data"}, "spec": {}}


def with_claims(*templates: dict[str, Any], name: str = "train", **pod: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "busybox", "volumeMounts": MOUNTS}]
    pods = a_pod_template(**{"containers": containers, **pod})
    return a_job_set(a_replicated_job(pods=pods), name=name, volumeClaimPolicies=[{"templates": list(templates)}])


TEMPLATE = "spec.volumeClaimPolicies[0].templates[0].metadata.name"


@pytest.mark.parametrize(
    ("body", "place", "words"),
    [
        pytest.param(with_claims(CLAIM, CLAIM), TEMPLATE.replace("s[0].m", "s[1].m"), "Duplicate", id="twice"),
        pytest.param(with_claims(CLAIM, name="j" * 47), "", "", id="as long as it may be"),
        pytest.param(with_claims(CLAIM, name="j" * 59), TEMPLATE, "more than 63 characters", id="too long"),
        pytest.param(
            with_claims(CLAIM, containers=[{"name": "a"}]), TEMPLATE, "matching volumeMount", id="not mounted"
        ),
        pytest.param(
            with_claims(CLAIM, volumes=[{"name": "data", "emptyDir": {}}]),
            "spec.replicatedJobs[0].template.spec.template.spec.volumes[0].name",
            "conflicts with VolumeClaimPolicy template name: data",
            id="a volume of that name",
        ),
    ],
)
def test_claims_are_named_once_mounted_and_not_in_the_way(body: dict[str, Any], place: str, words: str) -> None:
    if place:
        # A JobSet of 59 letters has Jobs whose names are too long as well: that is another rule's business.
        found = [each for each in findings(body) if "names of its Jobs" not in each]
        assert len(found) == 1, found
        assert found[0].startswith(place)
        assert words in found[0]
    else:
        assert findings(body) == []


def test_a_claim_needs_a_name() -> None:
    body = with_claims({"spec": {}})
    assert any(TEMPLATE in each for each in findings(body))
