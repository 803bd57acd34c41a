"""The rights of the scheduler's parts: what each needs, nothing by wildcard, and together what all of them need."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from shoal.kube.rights import Rule
from shoal.scheduler.rbac import ACCOUNT, NAME, PARTS, RULES, WEBHOOK_RULES, manifests, merged

FOLLOW = {"list", "watch"}
READ = {"get", *FOLLOW}

NEEDED = [
    ("scheduler", "", "pods", READ | {"delete"}),
    ("scheduler", "", "nodes", FOLLOW),
    ("scheduler", "kai.scheduler", "topologies", FOLLOW),
    ("scheduler", "scheduling.run.ai", "queues", FOLLOW),
    ("scheduler", "scheduling.run.ai", "podgroups/status", {"patch"}),
    ("scheduler", "scheduling.run.ai", "bindrequests", FOLLOW | {"create", "delete"}),
    ("scheduler", "scheduling.k8s.io", "workloads", FOLLOW),
    ("scheduler", "scheduling.sigs.k8s.io", "podgroups", FOLLOW),
    ("scheduler", "scheduling.x-k8s.io", "podgroups", FOLLOW),
    ("scheduler", "scheduling.k8s.io", "compositepodgroups", FOLLOW),
    ("scheduler", "scheduling.volcano.sh", "podgroups", FOLLOW),
    ("scheduler", "resource.k8s.io", "resourceclaims", FOLLOW),
    ("scheduler", "resource.k8s.io", "resourceslices", FOLLOW),
    ("scheduler", "resource.k8s.io", "deviceclasses", FOLLOW),
    ("scheduler", "storage.k8s.io", "storageclasses", FOLLOW),
    ("scheduler", "storage.k8s.io", "csinodes", FOLLOW),
    ("scheduler", "storage.k8s.io", "csidrivers", FOLLOW),
    ("scheduler", "storage.k8s.io", "csistoragecapacities", FOLLOW),
    ("scheduler", "", "persistentvolumeclaims", FOLLOW),
    ("scheduler", "", "persistentvolumes", FOLLOW),
    ("scheduler", "", "configmaps", FOLLOW),
    ("scheduler", "", "namespaces", FOLLOW),
    ("binder", "", "pods", READ | {"create", "patch", "delete"}),
    ("binder", "", "pods/binding", {"create"}),
    ("binder", "", "configmaps", FOLLOW | {"create", "patch", "delete"}),
    ("binder", "", "persistentvolumeclaims", FOLLOW | {"patch"}),
    ("binder", "", "persistentvolumes", FOLLOW | {"patch"}),
    ("binder", "resource.k8s.io", "resourceclaims", READ | {"patch"}),
    ("binder", "resource.k8s.io", "resourceslices", FOLLOW),
    ("binder", "resource.k8s.io", "resourceclaims/status", {"patch"}),
    ("binder", "scheduling.run.ai", "bindrequests/status", {"patch"}),
    ("grouper", "", "pods", READ | {"patch"}),
    ("grouper", "scheduling.run.ai", "podgroups", READ | {"create", "patch"}),
    ("grouper", "batch", "jobs", READ),
    ("grouper", "trainer.kubeflow.org", "trainjobs", READ),
    ("queues", "scheduling.run.ai", "queues/status", {"patch"}),
    ("podgroups", "scheduling.run.ai", "podgroups/status", {"patch"}),
    ("podgroups", "scheduling.k8s.io", "priorityclasses", FOLLOW),
    ("scale-adjuster", "", "pods", READ | {"create", "delete"}),
    ("defaults", "scheduling.run.ai", "queues", {"get", "create"}),
    ("defaults", "scheduling.k8s.io", "priorityclasses", {"get", "create"}),
]


def rights(rules: Iterable[Rule], group: str, resource: str) -> set[str]:
    return {
        verb for rule in rules if group in rule["apiGroups"] and resource in rule["resources"] for verb in rule["verbs"]
    }


@pytest.mark.parametrize(
    ("part", "group", "resource", "verbs"), NEEDED, ids=[f"{part} {name}" for part, _, name, _ in NEEDED]
)
def test_a_part_may_do_its_work_alone_and_among_all(part: str, group: str, resource: str, verbs: set[str]) -> None:
    assert rights(PARTS[part], group, resource) >= verbs
    assert rights(RULES, group, resource) >= verbs


def test_together_they_may_do_what_each_may_and_nothing_else() -> None:
    def all_rights(rules: Iterable[Rule]) -> set[tuple[str, str, str]]:
        return {
            (group, resource, verb)
            for rule in rules
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    assert all_rights(RULES) == all_rights(rule for rules in PARTS.values() for rule in rules)


@pytest.mark.parametrize("part", ["queues", "podgroups"])
def test_controllers_of_figures_write_statuses_and_events_alone(part: str) -> None:
    written = {name for rule in PARTS[part] if set(rule["verbs"]) - READ for name in rule["resources"]}
    assert written == {f"{part}/status", "events"}


def test_nothing_is_allowed_by_a_wildcard() -> None:
    assert not [rule for rule in RULES if "*" in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}]


def test_no_group_has_a_resource_twice() -> None:
    named = [(group, name) for rule in RULES for group in rule["apiGroups"] for name in rule["resources"]]
    assert len(set(named)) == len(named)


def test_rules_of_equal_rights_are_one() -> None:
    found = merged(
        [
            {"apiGroups": ["a"], "resources": ["x"], "verbs": ["get"]},
            {"apiGroups": ["a"], "resources": ["x"], "verbs": ["list"]},
            {"apiGroups": ["a"], "resources": ["y"], "verbs": ["list", "get"]},
        ]
    )
    assert found == ({"apiGroups": ["a"], "resources": ["x", "y"], "verbs": ["get", "list"]},)


def test_webhooks_register_themselves_by_name_and_read_nothing_else() -> None:
    kinds = {resource for rule in WEBHOOK_RULES for resource in rule["resources"]}
    assert kinds == {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
    for rule in WEBHOOK_RULES:
        assert set(rule["verbs"]) == FOLLOW or len(rule["resourceNames"]) == 6


def test_leases_and_certificates_are_held_in_the_parts_own_namespace_alone() -> None:
    objects = {(each["kind"], each["metadata"]["name"]): each for each in manifests("here")}
    assert not [rule for rule in RULES if {"leases", "secrets"} & set(rule["resources"])]
    assert objects["Role", NAME]["metadata"]["namespace"] == "here"
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        [subject] = objects[kind, NAME]["subjects"]
        assert (subject["name"], subject["namespace"]) == (ACCOUNT, "here")
