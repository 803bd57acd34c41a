from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.access.authorization import Query
from shoal.cluster.apiserver.access.escalation import check_binding, check_role, is_upkeep
from shoal.cluster.apiserver.access.rules import Rule, TooManyParts, parts, uncovered
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import Refused
from tests.cluster.apiserver.access.memory import ANN, Memory, a_binding, a_role, at, on, user

RBAC = ("rbac.authorization.k8s.io",)
HELD: list[tuple[str, list[Object], list[Object], bool]] = [
    ("the same", [on("pods", "get")], [on("pods", "get")], True),
    ("less", [on("pods,nodes", "get,list")], [on("pods", "get")], True),
    ("another verb", [on("pods", "get")], [on("pods", "list")], False),
    ("from two rules", [on("pods", "get"), on("pods", "list")], [on("pods", "get,list")], True),
    ("every verb of one's own", [on("pods", "*")], [on("pods", "zap")], True),
    ("every verb of another's", [on("pods", "get")], [on("pods", "*")], False),
    ("every resource", [on("*", "get")], [on("pods/log", "get")], True),
    ("a subresource of all", [on("*/scale", "get")], [on("deployments/scale", "get")], True),
    ("a subresource of all is no resource", [on("*/scale", "get")], [on("scale", "get")], False),
    ("every group", [on("pods", groups=["*"])], [on("pods", groups=["x"])], True),
    ("a name of one's own", [on("pods", names=["a"])], [on("pods", names=["a"])], True),
    ("a name where all are held", [on("pods")], [on("pods", names=["a"])], True),
    ("all where a name is held", [on("pods", names=["a"])], [on("pods")], False),
    ("names from two rules", [on("pods", names=["a"]), on("pods", names=["b"])], [on("pods", names=["a", "b"])], True),
    ("a path below", [at("/x/*")], [at("/x/y")], True),
    ("all paths", [at("/x/*")], [at("*")], False),
    ("a path by resources", [on("*", "*", groups=["*"])], [at("/x")], False),
    ("nothing", [], [], True),
    ("a rule without verbs", [], [{"verbs": [], "apiGroups": [""], "resources": ["pods"]}], True),
]


@pytest.mark.parametrize(("held", "wanted", "covered"), [case[1:] for case in HELD], ids=[case[0] for case in HELD])
def test_what_one_holds_covers_what_one_grants(held: list[Object], wanted: list[Object], covered: bool) -> None:
    assert (not uncovered(held, wanted)) is covered


def check(wanted: Object, *held: Object, old: Object | None = None, who: User = ANN, name: str = "") -> str:
    """What is said to one who writes a role, or nothing."""
    state = Memory(a_role("mine", *held), a_binding("b", "mine", user("ann")))
    namespace = wanted["metadata"].get("namespace", "")
    resource = "roles" if namespace else "clusterroles"
    try:
        check_role(state.authorizer(), who, wanted, old, resource=resource, namespace=namespace, request_name=name)
    except Refused as refused:
        return f"{refused.status.code} {refused.status.message}"
    return ""


def test_a_role_with_more_than_one_holds_is_refused_with_what_is_missing() -> None:
    rules = [
        on("pods", "get,list", groups=["", "apps"]),
        on("pods", names=["a", "b"]),
        at("/x,/y/*", "get,post"),
    ]
    assert check(a_role("r", *rules), on("pods", "list", groups=["apps"])) == (
        '403 clusterroles.rbac.authorization.k8s.io "r" is forbidden: '
        'user "ann" (groups=["devs" "system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}\n'
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get"]}\n'
        '{NonResourceURLs:["/x"], Verbs:["get"]}\n'
        '{NonResourceURLs:["/x"], Verbs:["post"]}\n'
        '{NonResourceURLs:["/y/*"], Verbs:["get"]}\n'
        '{NonResourceURLs:["/y/*"], Verbs:["post"]}'
    )


def test_a_role_within_what_one_holds_is_taken() -> None:
    assert check(a_role("r", on("pods")), on("pods", "*")) == ""
    assert check(a_role("r", on("pods"), namespace="z"), on("pods", "*")) == ""


def test_masters_grant_anything() -> None:
    assert check(a_role("r", on("*", "*")), who=User(name="root", groups=("system:masters",))) == ""


def test_the_verb_escalate_lifts_the_check() -> None:
    wanted = a_role("r", on("pods"))
    assert check(wanted, on("clusterroles", "escalate", groups=RBAC)) == ""
    assert check(a_role("r", on("pods"), namespace="z"), on("clusterroles", "escalate", groups=RBAC)) != ""
    named = on("clusterroles", "escalate", groups=RBAC, names=["r"])
    assert check(wanted, named) != "", "a POST does not name the object"
    assert check(wanted, named, name="r", old=a_role("r")) == ""


def test_who_cannot_do_everything_cannot_collect_anything() -> None:
    collecting: Any = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    refused = (
        '403 clusterroles.rbac.authorization.k8s.io "r" is forbidden: '
        "must have cluster-admin privileges to use the aggregationRule"
    )
    assert check(a_role("r", **collecting), on("*", "*")) == refused
    assert check(a_role("r"), on("*", "*"), old=a_role("r", **collecting)) == refused
    assert check(a_role("r", **collecting), on("*", "*", groups=["*"]), at("*", "*")) == ""


def test_the_garbage_collector_need_not_hold_what_it_cleans_up() -> None:
    old = a_role("r", on("pods"))
    new = {**old, "metadata": {**old["metadata"], "finalizers": ["x"], "ownerReferences": [], "managedFields": []}}
    assert is_upkeep(new, old)
    assert check(new, old=old) == ""
    assert check({**new, "rules": [on("nodes")]}, old=old) != ""
    assert not is_upkeep({**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}, old)


def bind(wanted: Object, *objects: Object, old: Object | None = None) -> tuple[int, str]:
    namespace = wanted["metadata"].get("namespace", "")
    resource = "rolebindings" if namespace else "clusterrolebindings"
    try:
        check_binding(Memory(*objects).authorizer(), ANN, wanted, old, resource=resource, namespace=namespace)
    except Refused as refused:
        return refused.status.code, refused.status.message
    return 0, ""


ROLE = a_role("target", on("pods"))
MISSING = (
    'is forbidden: user "ann" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not '
    'currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'
)


def holding(*rules: Object) -> tuple[Object, Object]:
    return a_role("mine", *rules), a_binding("b", "mine", user("ann"))


def test_a_binding_to_a_role_that_one_does_not_hold_is_refused() -> None:
    wanted = a_binding("w", "target", user("joe"))
    assert bind(wanted, ROLE) == (403, f'clusterrolebindings.rbac.authorization.k8s.io "w" {MISSING}')
    assert bind(wanted, ROLE, *holding(on("pods"))) == (0, "")
    assert bind(wanted, ROLE, *holding(on("clusterroles", "bind", groups=RBAC, names=["target"]))) == (0, "")
    assert bind(wanted, ROLE, *holding(on("roles", "bind", groups=RBAC)))[0] == 403
    in_one = a_binding("w", "target", user("joe"), namespace="z")
    assert bind(in_one, ROLE) == (403, f'rolebindings.rbac.authorization.k8s.io "w" {MISSING}')
    own = a_role("mine", on("pods"), namespace="z"), a_binding("b", "mine", user("ann"), namespace="z", of="Role")
    assert bind(in_one, ROLE, *own) == (0, ""), "in a namespace what one holds there is enough"
    assert bind(wanted, ROLE, *own)[0] == 403


def test_a_binding_to_a_role_that_is_not_there_is_refused_where_it_cannot_be_judged() -> None:
    wanted = a_binding("w", "nope", user("joe"), namespace="z", of="Role")
    assert bind(wanted) == (404, 'rolebindings.rbac.authorization.k8s.io "nope" not found')
    assert bind(wanted, *holding(on("roles", "bind", groups=RBAC))) == (0, "")
    assert bind(a_binding("w", "target", user("joe"), of="Role")) == (400, "Namespace parameter required.")


def test_roles_that_could_not_be_found_are_told_of() -> None:
    code, message = bind(a_binding("w", "target", user("joe")), ROLE, a_binding("b", "gone", user("ann")))
    assert code == 403
    assert message.endswith('; resolution errors: [clusterrole.rbac.authorization.k8s.io "gone" not found]')


WORDS = st.lists(st.sampled_from(["a", "b", "*", "a/b", "*/b"]), min_size=1, max_size=2, unique=True)
RESOURCE_RULES = st.builds(
    lambda verbs, groups, resources, names: (
        {"verbs": verbs, "apiGroups": groups, "resources": resources} | ({"resourceNames": names} if names else {})
    ),
    WORDS,
    WORDS,
    WORDS,
    st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
)
QUERIES = st.builds(
    lambda verb, group, resource, subresource, name: Query(
        user=ANN, verb=verb, group=group, resource=resource, subresource=subresource, name=name
    ),
    *([st.sampled_from(["a", "b", "c"])] * 3),
    st.sampled_from(["", "b", "c"]),
    st.sampled_from(["", "a", "b"]),
)


@given(held=st.lists(RESOURCE_RULES, max_size=3), wanted=RESOURCE_RULES, query=QUERIES)
def test_what_is_covered_allows_nothing_new(held: list[Object], wanted: Object, query: Query) -> None:
    allowed = any(Rule(rule).allows(query) for rule in held)
    assert allowed or uncovered(held, [wanted]) or not Rule(wanted).allows(query)


@given(rule=RESOURCE_RULES, query=QUERIES)
def test_a_rule_taken_apart_allows_the_same(rule: Object, query: Query) -> None:
    assert Rule(rule).allows(query) == any(Rule(part).allows(query) for part in parts(rule))


def test_a_small_rule_of_a_hundred_million_combinations_is_refused_and_not_taken_apart() -> None:
    hundred = [f"x{number}" for number in range(100)]
    wide = on(",".join(hundred), ",".join(hundred), groups=hundred, names=hundred)
    with pytest.raises(TooManyParts):
        uncovered([on("pods", "get")], [wide])
    assert not uncovered([on("pods", "get"), on("*", "*", groups=["*"])], [wide])
    assert "split the role" in check(a_role("wide", wide), on("pods", "get"))
