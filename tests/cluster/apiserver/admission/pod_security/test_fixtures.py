"""The checks judge every pod of Kubernetes' own test data as Kubernetes does, in every version of every level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.cluster.apiserver.admission.pod_security.checks import CheckedPod
from shoal.cluster.apiserver.admission.pod_security.evaluation import CHECKS, NEWEST_MINOR, violations
from shoal.cluster.apiserver.admission.pod_security.policy import Level, LevelVersion, Version
from shoal.cluster.apiserver.builtin import RULES
from shoal.cluster.apiserver.kinds.tables import builtin_kinds
from shoal.cluster.apiserver.verbs.bodies import completed

pytestmark = pytest.mark.kube

(POD,) = [kind for kind in builtin_kinds(RULES) if kind.api_version == "v1" and kind.kind == "Pod"]

LEVELS = (Level.BASELINE, Level.RESTRICTED)
REASONS = {
    "allowprivilegeescalation": {"allowPrivilegeEscalation != false"},
    "apparmorprofile": {"forbidden AppArmor profile", "forbidden AppArmor profiles"},
    "capabilities_baseline": {"non-default capabilities", "unrestricted capabilities"},
    "capabilities_restricted": {"unrestricted capabilities"},
    "hostnamespaces": {"host namespaces"},
    "hostpathvolumes": {"hostPath volumes", "restricted volume types"},
    "hostports": {"hostPort"},
    "hostprobesandhostlifecycle": {"probe or lifecycle host"},
    "privileged": {"privileged"},
    "procmount": {"procMount"},
    "procmount_restricted": {"procMount"},
    "restrictedvolumes": {"restricted volume types"},
    "runasnonroot": {"runAsNonRoot != true"},
    "runasuser": {"runAsUser=0"},
    "seccompprofile_baseline": {"seccompProfile"},
    "seccompprofile_restricted": {"seccompProfile"},
    "selinuxoptions": {"seLinuxOptions"},
    "sysctls": {"forbidden sysctls"},
    "windowshostprocess": {"hostProcess"},
}
"""What a pod is refused for that shows how a check fails: a baseline check may be replaced by a restricted one."""


@pytest.mark.parametrize("minor", range(NEWEST_MINOR + 1))
@pytest.mark.parametrize("level", LEVELS)
def test_pods_pass_and_fail_as_in_kubernetes(level: Level, minor: int, fixtures: Path) -> None:
    folder = fixtures / level.value / f"v1.{minor}"
    policy = LevelVersion(level, Version(minor))
    passing, failing = (
        {file: violations(policy, read(file)) for file in pods(folder / kind)} for kind in ("pass", "fail")
    )
    assert passing
    assert failing
    assert {file.name: found for file, found in passing.items() if found} == {}
    wrong = {
        file.name: found
        for file, found in failing.items()
        if not {each.reason for each in found} & REASONS[file.stem.rstrip("0123456789")]
    }
    assert wrong == {}


@pytest.mark.parametrize("version", [Version(), Version(NEWEST_MINOR + 1), Version(99)], ids=str)
@pytest.mark.parametrize("level", LEVELS)
def test_the_latest_and_future_versions_are_the_newest_that_is_known(
    level: Level, version: Version, fixtures: Path
) -> None:
    folder = fixtures / level.value / f"v1.{NEWEST_MINOR}"
    for file in [*pods(folder / "pass"), *pods(folder / "fail")]:
        pod = read(file)
        newest = violations(LevelVersion(level, Version(NEWEST_MINOR)), pod)
        assert violations(LevelVersion(level, version), pod) == newest


def test_there_are_fixtures_for_every_check_and_no_version_beyond_those_known(fixtures: Path) -> None:
    newest = f"v1.{NEWEST_MINOR}"
    checks = {
        file.stem.rstrip("0123456789") for level in LEVELS for file in pods(fixtures / level.value / newest / "fail")
    }
    assert checks == {check.id.lower() for check in CHECKS} == set(REASONS)
    versions = {folder.name for level in LEVELS for folder in (fixtures / level.value).iterdir()}
    assert versions == {f"v1.{minor}" for minor in range(NEWEST_MINOR + 1)}


def pods(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.yaml"))


def read(file: Path) -> CheckedPod:
    """A pod as admission sees it: in normal form, with the server's defaults."""
    content: dict[str, Any] = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
    return CheckedPod.of(completed(POD, content, []))
