from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shoal.cluster.apiserver.access import reviews
from shoal.cluster.apiserver.access.authentication import Authenticator
from shoal.cluster.apiserver.access.authorization import Authorizer
from shoal.cluster.apiserver.access.credentials import Credentials
from shoal.cluster.apiserver.access.tokens import ISSUER
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import Refused
from tests.cluster.apiserver.access.memory import ANN, Memory, a_binding, a_role, at, group, on

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def authorizer() -> Authorizer:
    return Memory(
        a_role("r", on("pods", "get,list"), at("/x"), at("*", "all")), a_binding("b", "r", group("devs"))
    ).authorizer()


def body(kind: str, spec: Object | None = None, **metadata: Any) -> Object:
    made: Object = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "metadata": metadata}
    return made if spec is None else {**made, "spec": spec}


def asked(spec: Object | None = None, **metadata: Any) -> Object:
    return body("SubjectAccessReview", spec, **metadata)


POD = {"verb": "get", "resource": "pods"}
BY = 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "devs"'
ALLOWED = {"allowed": True, "reason": BY}
ANSWERS: list[tuple[str, Object, Object]] = [
    ("a resource", {"groups": ["devs"], "resourceAttributes": POD}, ALLOWED),
    ("a user of no group", {"user": "ann", "resourceAttributes": POD}, {"allowed": False}),
    ("masters", {"groups": ["system:masters"], "resourceAttributes": {"verb": "zap"}}, {"allowed": True}),
    (
        "a path",
        {"groups": ["devs"], "nonResourceAttributes": {"verb": "get", "path": "/x"}},
        ALLOWED,
    ),
    ("no path", {"groups": ["devs"], "nonResourceAttributes": {"verb": "get"}}, {"allowed": False}),
    (
        "no path, for all",
        {"groups": ["devs"], "nonResourceAttributes": {"verb": "all"}},
        ALLOWED,
    ),
    (
        "selectors that cannot be read",
        {
            "user": "x",
            "resourceAttributes": {
                **POD,
                "fieldSelector": {"rawSelector": "a=b,c"},
                "labelSelector": {"rawSelector": "a in ("},
            },
        },
        {
            "allowed": False,
            "evaluationError": "spec.resourceAttributes.fieldSelector ignored due to parse error; "
            "spec.resourceAttributes.labelSelector ignored due to parse error",
        },
    ),
    (
        "requirements that are not all understood",
        {
            "user": "x",
            "resourceAttributes": {
                **POD,
                "labelSelector": {
                    "requirements": [{"key": "a", "operator": "Zip"}, {"key": "a", "operator": "Exists"}]
                },
            },
        },
        {
            "allowed": False,
            "evaluationError": "spec.resourceAttributes.labelSelector partially ignored due to parse error",
        },
    ),
    (
        "selectors that can be read",
        {
            "user": "x",
            "resourceAttributes": {
                **POD,
                "fieldSelector": {"rawSelector": "a=b,c!=d"},
                "labelSelector": {"rawSelector": "a in (b)"},
            },
        },
        {"allowed": False},
    ),
]


@pytest.mark.parametrize(("spec", "status"), [case[1:] for case in ANSWERS], ids=[case[0] for case in ANSWERS])
def test_a_review_says_whether_and_why(authorizer: Authorizer, spec: Object, status: Object) -> None:
    question = asked(spec)
    assert reviews.subject_access_review(question, authorizer) == {**question, "status": status}


def message(spec: Object | None = None, **metadata: Any) -> str:
    with pytest.raises(Refused) as refused:
        reviews.subject_access_review(asked(spec, **metadata), Memory().authorizer())
    assert refused.value.status.code == 422
    return refused.value.status.message.removeprefix('.authorization.k8s.io "" is invalid: ')


def test_a_review_must_ask_for_one_thing_of_someone() -> None:
    either = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    someone = 'spec.user: Invalid value: "": at least one of user or group must be specified'
    assert message({}) == f"[spec.resourceAttributes: Invalid value: null: {either}, {someone}]"
    assert message() == message({})
    assert message({"resourceAttributes": POD}) == someone
    assert message({"user": "x", "resourceAttributes": {}, "nonResourceAttributes": {}}) == (
        'spec.nonResourceAttributes: Invalid value: {"Path":"","Verb":""}: '
        "cannot be specified in combination with resourceAttributes"
    )
    assert message({"user": "x", "resourceAttributes": POD}, name="q") == (
        'metadata: Invalid value: {"name":"q"}: must be empty'
    )


def test_a_review_must_have_selectors_that_make_sense() -> None:
    place = "spec.resourceAttributes"
    both = {"rawSelector": "a", "requirements": [{"key": "a", "operator": "In"}]}
    assert message({"user": "x", "resourceAttributes": {"fieldSelector": {}, "labelSelector": both}}) == (
        f"[{place}.fieldSelector.requirements: Required value: when {place}.fieldSelector is specified, requirements "
        f'or rawSelector is required, {place}.labelSelector.rawSelector: Invalid value: "a": may not specified at the '
        f"same time as requirements, {place}.labelSelector.requirements[0].values: Required value: must be specified "
        "when `operator` is 'In' or 'NotIn']"
    )
    keyless = {"requirements": [{"key": "", "operator": "In"}]}
    odd = {"requirements": [{"key": "a b", "operator": "Zip"}, {"key": "a", "operator": "Exists", "values": ["1"]}]}
    said = message({"user": "x", "resourceAttributes": {"fieldSelector": keyless, "labelSelector": odd}})
    assert said.startswith(
        f"[{place}.fieldSelector.requirements[0].key: Required value: must be specified, "
        f"{place}.fieldSelector.requirements[0].values: Required value: must be specified when `operator` is 'In' or "
        f"'NotIn', {place}.labelSelector.requirements[0].key: Invalid value: \"a b\": name part must consist of"
    )
    assert said.endswith(
        f"{place}.labelSelector.requirements[1].values: Forbidden: may not be specified when `operator` is 'Exists' or "
        "'DoesNotExist']"
    )


def test_a_local_review_is_about_its_namespace(authorizer: Authorizer) -> None:
    def local(spec: Object, **metadata: Any) -> Object:
        question = body("LocalSubjectAccessReview", {"groups": ["devs"], **spec}, **metadata)
        return reviews.local_subject_access_review(question, authorizer, namespace="z")

    answer = local({"resourceAttributes": {**POD, "namespace": "z"}})
    assert answer["metadata"] == {"namespace": "z"}
    assert answer["status"]["allowed"]
    with pytest.raises(Refused, match=r'namespace: Invalid value: "y": must match metadata.namespace'):
        local({"resourceAttributes": {**POD, "namespace": "y"}})
    with pytest.raises(Refused) as refused:
        local({"nonResourceAttributes": {"verb": "get"}}, name="q")
    assert refused.value.status.message.removeprefix('.authorization.k8s.io "" is invalid: ') == (
        '[metadata: Invalid value: {"name":"q","namespace":"z"}: must be empty except for namespace, '
        'spec.nonResourceAttributes: Invalid value: {"Path":"","Verb":"get"}: disallowed on this kind of request]'
    )


def test_one_may_ask_for_oneself(authorizer: Authorizer) -> None:
    question = body("SelfSubjectAccessReview", {"resourceAttributes": POD})
    assert reviews.self_subject_access_review(question, ANN, authorizer)["status"] == {"allowed": True, "reason": BY}
    with pytest.raises(Refused, match="exactly one of"):
        reviews.self_subject_access_review(body("SelfSubjectAccessReview", {}), ANN, authorizer)


def test_one_may_ask_for_all_that_one_may_do(authorizer: Authorizer) -> None:
    question = body("SelfSubjectRulesReview", {"namespace": "z"})
    assert reviews.self_subject_rules_review(question, ANN, authorizer) == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "metadata": {},
        "spec": {},
        "status": {
            "resourceRules": [on("pods", "get,list")],
            "nonResourceRules": [at("/x"), at("*", "all")],
            "incomplete": False,
        },
    }
    with pytest.raises(Refused, match="no namespace on request"):
        reviews.self_subject_rules_review(body("SelfSubjectRulesReview"), ANN, authorizer)


def test_rules_that_could_not_be_found_are_told_of() -> None:
    authorizer = Memory(a_binding("b", "gone", group("devs"))).authorizer()
    status = reviews.self_subject_rules_review({"spec": {"namespace": "z"}}, ANN, authorizer)["status"]
    assert status["evaluationError"] == 'clusterrole.rbac.authorization.k8s.io "gone" not found'


def test_one_may_ask_who_one_is() -> None:
    who = User(name="ann", uid="u", groups=("devs",), extra={"b": ("1",), "a": ("2", "3")})
    answer = reviews.self_subject_review(body("SelfSubjectReview", name="x"), who, now=NOW)
    assert answer["metadata"] == {"creationTimestamp": "2026-05-01T12:00:00Z"}
    info = {"username": "ann", "uid": "u", "groups": ["devs"], "extra": {"a": ["2", "3"], "b": ["1"]}}
    assert answer["status"] == {"userInfo": info}


def test_a_token_review_says_whom_a_token_stands_for(tmp_path: Path) -> None:
    credentials = Credentials.at(tmp_path, names=["localhost"], now=NOW)
    authenticator = Authenticator(credentials, Memory(), clock=lambda: NOW)

    def status(token: str, **more: Any) -> Any:
        return reviews.token_review({"spec": {"token": token, **more}}, authenticator)["status"]

    admin = {"username": "admin", "uid": "admin", "groups": ["system:masters", "system:authenticated"]}
    assert status(credentials.admin_token) == {"authenticated": True, "user": admin, "audiences": [ISSUER]}
    assert status(credentials.admin_token, audiences=["x"]) == {"user": {}, "error": "invalid bearer token"}
    assert status("bad") == {"user": {}, "error": "invalid bearer token"}
    with pytest.raises(Refused, match="token is required for TokenReview in authentication"):
        status("")
