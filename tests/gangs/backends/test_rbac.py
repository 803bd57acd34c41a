"""The rights of the backends cover every kind that they write."""

from __future__ import annotations

from shoal.gangs.backends.rbac import RULES
from shoal.gangs.backends.registry import built_in

VERBS = {"create", "get", "list", "watch", "update", "patch", "delete"}


def allowed(group: str, resource: str) -> set[str]:
    return {
        verb for rule in RULES if group in rule["apiGroups"] and resource in rule["resources"] for verb in rule["verbs"]
    }


def test_every_kind_that_a_backend_writes_may_be_written() -> None:
    for backend in built_in():
        for kind in backend.kinds:
            assert allowed(kind.group, kind.plural) >= VERBS, kind
            assert allowed(kind.group, f"{kind.plural}/status") >= VERBS, kind


def test_the_groups_of_all_schedulers_are_there() -> None:
    assert {group for rule in RULES for group in rule["apiGroups"]} == {
        "scheduling.run.ai",
        "scheduling.k8s.io",
        "scheduling.koordinator.sh",
        "scheduling.sigs.k8s.io",
        "scheduling.volcano.sh",
    }
