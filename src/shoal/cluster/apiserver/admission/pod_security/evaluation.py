"""Which checks a level has in a version, and what of them a pod violates."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from shoal.cluster.apiserver.admission.pod_security import host, kernel, privileges, profiles, volumes
from shoal.cluster.apiserver.admission.pod_security.checks import CheckedPod, Rule, Violation
from shoal.cluster.apiserver.admission.pod_security.policy import Level, LevelVersion

CHECKS = (*host.CHECKS, *kernel.CHECKS, *privileges.CHECKS, *profiles.CHECKS, *volumes.CHECKS)

NEWEST_MINOR = max(since for check in CHECKS for since in check.forms)
"""The last version in which a check changed; the policy of all later ones, and the latest, is the same."""


def violations(policy: LevelVersion, pod: CheckedPod) -> list[Violation]:
    """What a pod violates: baseline checks first, then restricted ones, each in the order of their names."""
    minor = policy.version.minor
    rules = rules_of(policy.level, NEWEST_MINOR if minor is None else min(minor, NEWEST_MINOR))
    return [violation for rule in rules if (violation := rule(pod)) is not None]


def in_detail(found: Iterable[Violation]) -> str:
    """Violations as the message on one pod lists them."""
    return ", ".join(map(str, found))


@cache
def rules_of(level: Level, minor: int) -> tuple[Rule, ...]:
    """The rules of a level; the restricted level has those of the baseline as well, but for those it replaces."""
    if level is Level.PRIVILEGED:
        return ()
    applicable = [
        (check, form)
        for check in sorted(CHECKS, key=lambda check: (check.level is Level.RESTRICTED, check.id))
        if not check.level.is_stricter_than(level) and (form := check.form(minor)) is not None
    ]
    replaced = {check.replaces for check, _ in applicable}
    return tuple(form for check, form in applicable if check.id not in replaced)
