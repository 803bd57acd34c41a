"""What the labels of a namespace ask for."""

from __future__ import annotations

import pytest

from shoal.cluster.apiserver.admission.pod_security.policy import PREFIX, UNRESTRICTED, policy_of

LATEST_NOTHING = "privileged:latest"


def read(**labels: str) -> tuple[list[str], list[str]]:
    """The three modes and the problems, as people read them."""
    policy, problems = policy_of({PREFIX + mode.replace("_", "-"): value for mode, value in labels.items()})
    return [str(policy.enforce), str(policy.audit), str(policy.warn)], [str(problem) for problem in problems]


@pytest.mark.parametrize(
    ("labels", "enforce", "audit", "warn"),
    [
        ({}, LATEST_NOTHING, LATEST_NOTHING, LATEST_NOTHING),
        ({"audit": "baseline"}, LATEST_NOTHING, "baseline:latest", LATEST_NOTHING),
        ({"warn": "baseline", "warn_version": "v1.30"}, LATEST_NOTHING, LATEST_NOTHING, "baseline:v1.30"),
        ({"enforce": "restricted"}, "restricted:latest", LATEST_NOTHING, "restricted:latest"),
        ({"enforce": "baseline", "enforce_version": "v1.0"}, "baseline:v1.0", LATEST_NOTHING, "baseline:v1.0"),
        ({"enforce": "baseline", "warn_version": "v1.9"}, "baseline:latest", LATEST_NOTHING, "baseline:v1.9"),
        ({"enforce": "restricted", "warn": "privileged"}, "restricted:latest", LATEST_NOTHING, LATEST_NOTHING),
        ({"enforce": "baseline", "warn": "restricted"}, "baseline:latest", LATEST_NOTHING, "restricted:latest"),
        ({"enforce": "privileged", "warn": "baseline"}, LATEST_NOTHING, LATEST_NOTHING, "baseline:latest"),
        ({"enforce_version": "v1.99"}, "privileged:v1.99", LATEST_NOTHING, LATEST_NOTHING),
    ],
)
def test_labels_name_a_level_and_a_version_for_each_mode(
    labels: dict[str, str], enforce: str, audit: str, warn: str
) -> None:
    assert read(**labels) == ([enforce, audit, warn], [])


@pytest.mark.parametrize("version", ["1.30", "v1", "v1.", "v1.01", "v2.0", "V1.0", "v1.0\n", "", f"v1.{2**63}", "v1.٣"])
def test_a_version_that_is_none_is_a_problem_and_the_latest(version: str) -> None:
    modes, problems = read(enforce="baseline", enforce_version=version)
    assert modes == ["baseline:latest", LATEST_NOTHING, "baseline:latest"]
    (problem,) = problems
    assert problem.startswith("metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: ")
    assert problem.endswith(': must be "latest" or "v1.x"')


def test_a_level_that_is_none_is_enforced_as_the_strictest_and_warned_of_nowhere() -> None:
    modes, problems = read(enforce="strict", audit="", warn="Baseline")
    assert modes == ["restricted:latest", LATEST_NOTHING, LATEST_NOTHING]
    words = "must be one of privileged, baseline, restricted"
    assert problems == [
        f'metadata.labels[pod-security.kubernetes.io/{mode}]: Invalid value: "{value}": {words}'
        for mode, value in (("enforce", "strict"), ("audit", ""), ("warn", "Baseline"))
    ]


def test_other_labels_ask_for_nothing() -> None:
    policy, problems = policy_of({"kubernetes.io/metadata.name": "team", "enforce": "restricted"})
    assert policy is UNRESTRICTED
    assert problems == []
