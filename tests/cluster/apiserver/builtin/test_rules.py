"""Rules that no server of the recorded sort can be asked about, and what must hold for all of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from shoal.cluster.apiserver.builtin import RULES
from shoal.cluster.apiserver.builtin.certificates import prepare_approval, sign_as, validate_approval
from shoal.cluster.apiserver.builtin.endpoints import endpoints_problems
from shoal.cluster.apiserver.builtin.priorities import validate_workload_update, workload_problems
from shoal.cluster.apiserver.builtin.volumes import default_volume
from shoal.cluster.apiserver.kinds.decode import decode
from tests.cluster.apiserver.builtin.answers import all_cases, in_namespace, kinds
from tests.cluster.apiserver.builtin.kind_cases import Case, changed

WORKLOAD: dict[str, Any] = {
    "metadata": {"name": "w"},
    "spec": {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "j"},
        "podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 4}}}],
    },
}
GROUP = WORKLOAD["spec"]["podGroups"][0]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(("spec.podGroups", [GROUP]), [], id="fine"),
        pytest.param(("spec.podGroups", []), ["spec.podGroups: Required value"], id="no-groups"),
        pytest.param(
            ("spec.podGroups", [GROUP] * 9),
            ["spec.podGroups: Too many: 9: must have at most 8 items"],
            id="too-many-groups",
        ),
        pytest.param(("spec.podGroups.0.policy", {"basic": {}}), [], id="basic"),
        pytest.param(
            ("spec.podGroups.0.policy", {}),
            ['spec.podGroups[0].policy: Invalid value: "": must specify one of: `basic`, `gang`'],
            id="no-policy",
        ),
        pytest.param(
            ("spec.podGroups.0.policy.gang.minCount", -1),
            ["spec.podGroups[0].policy.gang.minCount: Invalid value: -1: must be greater than or equal to 1"],
            id="less-than-one",
        ),
        pytest.param(
            ("spec.controllerRef", {"kind": "a/b", "name": ""}),
            [
                "spec.controllerRef.kind: Invalid value: \"a/b\": may not contain '/'",
                "spec.controllerRef.name: Required value",
            ],
            id="a-bad-controller",
        ),
    ],
)
def test_a_workload_names_its_groups(change: tuple[str, Any], expected: list[str]) -> None:
    assert [str(each) for each in workload_problems(changed(WORKLOAD, change))] == expected


def test_the_groups_of_a_workload_stay() -> None:
    new = changed(WORKLOAD, ("spec.podGroups.0.policy.gang.minCount", 5))
    (problem,) = validate_workload_update(new, WORKLOAD)
    assert (problem.path, problem.message) == ("spec.podGroups", "field is immutable")


def test_a_controller_can_be_named_later_and_then_stays() -> None:
    without = {**WORKLOAD, "spec": {"podGroups": WORKLOAD["spec"]["podGroups"]}}
    assert not validate_workload_update(WORKLOAD, without)
    assert [each.path for each in validate_workload_update(without, WORKLOAD)] == ["spec.controllerRef"]


def test_who_asks_for_a_certificate_is_not_for_the_client_to_say() -> None:
    new = {"spec": {"username": "somebody", "groups": ["system:masters"], "uid": "x"}}
    sign_as(new, "ada", "", ["users"], {"scopes": ["a"]})
    assert new["spec"] == {"username": "ada", "groups": ["users"], "extra": {"scopes": ["a"]}}


def test_a_decision_is_dated_and_never_taken_back() -> None:
    old: dict[str, Any] = {"metadata": {}, "spec": {"usages": ["any"]}, "status": {"certificate": "Yw=="}}
    new = {**copy.deepcopy(old), "status": {"conditions": [{"type": "Approved", "status": "True"}]}}
    prepare_approval(new, old)
    (condition,) = new["status"]["conditions"]
    assert new["status"]["certificate"] == "Yw=="
    assert condition["lastTransitionTime"]
    words = [each.message for each in validate_approval(old, new)]
    assert 'updates may not remove a condition of type "Approved"' in words


ACCEPTED = [case for case in all_cases() if case.id.endswith("as-it-is")]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in ACCEPTED])
def test_defaults_are_in_normal_form_and_add_nothing_the_second_time(case: Case) -> None:
    body = in_namespace(case.object)
    kind = kinds()[body["apiVersion"], body["kind"]]
    new = {**decode(kind.schema, body, []), "apiVersion": body["apiVersion"], "kind": body["kind"]}
    kind.rules.defaults(new)
    once = copy.deepcopy(new)
    kind.rules.defaults(new)
    assert new == once
    plain = {key: value for key, value in new.items() if key not in ("apiVersion", "kind")}
    normal = decode(kind.schema, new, [])
    assert {key: value for key, value in normal.items() if key not in ("apiVersion", "kind")} == plain


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in ACCEPTED])
def test_a_change_never_touches_the_old_object(case: Case) -> None:
    body = in_namespace(case.object)
    kind = kinds()[body["apiVersion"], body["kind"]]
    old = {**decode(kind.schema, body, []), "apiVersion": body["apiVersion"], "kind": body["kind"]}
    kind.rules.defaults(old)
    before = copy.deepcopy(old)
    for prepare, validate in (
        (kind.rules.prepare_update, kind.rules.validate_update),
        (kind.rules.prepare_status, kind.rules.validate_status),
    ):
        new = copy.deepcopy(old)
        prepare(new, old)
        validate(new, old)
        assert old == before


def test_every_kind_that_is_served_has_rules_or_needs_none() -> None:
    without = {(kind.group, kind.kind) for kind in kinds().values() if "create" in kind.verbs} - set(RULES)
    assert without <= WITHOUT_RULES


WITHOUT_RULES = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("authentication.k8s.io", "SelfSubjectReview"),
    ("authentication.k8s.io", "TokenReview"),
    ("authorization.k8s.io", "LocalSubjectAccessReview"),
    ("authorization.k8s.io", "SelfSubjectAccessReview"),
    ("authorization.k8s.io", "SelfSubjectRulesReview"),
    ("authorization.k8s.io", "SubjectAccessReview"),
    ("", "Binding"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
}


def test_a_volumes_source_is_completed_as_a_pods_is() -> None:
    volume: dict[str, Any] = {"spec": {"iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.a", "lun": 0}}}
    default_volume(volume)
    assert volume["spec"]["iscsi"]["iscsiInterface"] == "default"


@pytest.mark.parametrize("address", ["::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0"])
def test_an_address_of_this_machine_is_no_endpoint_in_the_guise_of_another_version(address: str) -> None:
    subset = {"addresses": [{"ip": address}], "ports": [{"port": 80, "protocol": "TCP"}]}
    said = [problem.message for problem in endpoints_problems({"subsets": [subset]})]
    assert len(said) == 2
    assert "must not be an IPv4-mapped IPv6 address" in said[0]
    assert "may not be " in said[1]
