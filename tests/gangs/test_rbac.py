"""The operator's rights are those that the customer's document lists, and what the rooms of gangs need besides."""

from __future__ import annotations

import pytest

from shoal.gangs.rbac import ACCOUNT, NAME, RULES, manifests

VERBS = {"create", "get", "list", "watch", "update", "patch", "delete"}


@pytest.mark.parametrize(
    ("group", "resource"),
    [
        ("scheduler.grove.io", "podgangs"),
        ("scheduling.run.ai", "podgroups"),
        ("scheduling.k8s.io", "workloads"),
        ("scheduling.koordinator.sh", "podgroups"),
        ("scheduling.sigs.k8s.io", "podgroups"),
        ("scheduling.volcano.sh", "podgroups"),
    ],
)
def test_the_document_s_rules_are_there_with_their_status(group: str, resource: str) -> None:
    for name in (resource, f"{resource}/status"):
        allowed = {
            verb for rule in RULES if group in rule["apiGroups"] and name in rule["resources"] for verb in rule["verbs"]
        }
        assert allowed >= VERBS, name


def test_nothing_is_allowed_by_a_wildcard() -> None:
    assert not [rule for rule in RULES if "*" in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}]


def test_no_group_has_a_resource_twice() -> None:
    named = [(group, name) for rule in RULES for group in rule["apiGroups"] for name in rule["resources"]]
    assert len(set(named)) == len(named)


def test_leases_are_held_in_the_operator_s_own_namespace_alone() -> None:
    objects = {(each["kind"], each["metadata"]["name"]): each for each in manifests("here")}
    assert not [rule for rule in RULES if "leases" in rule["resources"]]
    role = objects["Role", f"{NAME}-lease"]
    assert role["metadata"]["namespace"] == "here"
    [subject] = objects["RoleBinding", f"{NAME}-lease"]["subjects"]
    assert (subject["name"], subject["namespace"]) == (ACCOUNT, "here")
