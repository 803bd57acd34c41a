from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.apiserver.access.authorization import Query
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.kinds.kind import Object
from tests.cluster.apiserver.access.memory import (
    ANN,
    BOT,
    Memory,
    a_binding,
    a_role,
    account,
    an_object,
    at,
    group,
    on,
    user,
)


def ask(verb: str = "get", resource: str = "pods", **more: Any) -> Query:
    return Query(**{"user": ANN, "verb": verb, "resource": resource, **more})


RULES: list[tuple[str, Object, Query, bool]] = [
    ("the resource and the verb", on("pods"), ask(), True),
    ("another verb", on("pods"), ask("list"), False),
    ("one of several verbs", on("pods", "get,list"), ask("list"), True),
    ("every verb", on("pods", "*"), ask("zap"), True),
    ("another resource", on("pods"), ask(resource="nodes"), False),
    ("every resource", on("*"), ask(resource="nodes"), True),
    ("another group", on("pods"), ask(group="metrics.k8s.io"), False),
    ("every group", on("pods", groups=["*"]), ask(group="metrics.k8s.io"), True),
    ("a named group", on("deployments", groups=["apps"]), ask(resource="deployments", group="apps"), True),
    ("the core group is no wildcard", on("deployments"), ask(resource="deployments", group="apps"), False),
    ("a subresource is not in its resource", on("pods"), ask(subresource="log"), False),
    ("the subresource by name", on("pods/log"), ask(subresource="log"), True),
    ("a subresource does not give its resource", on("pods/log"), ask(), False),
    ("another subresource", on("pods/log"), ask(subresource="exec"), False),
    ("every resource has its subresources too", on("*"), ask(subresource="log"), True),
    ("one subresource of every resource", on("*/scale"), ask(subresource="scale"), True),
    ("one subresource of every resource, another asked", on("*/scale"), ask(subresource="status"), False),
    ("one subresource of every resource, none asked", on("*/scale"), ask(), False),
    ("every subresource of a resource is no form", on("pods/*"), ask(subresource="log"), False),
    ("a star subresource by that very name", on("pods/*"), ask(subresource="*"), True),
    ("a longer subresource is not its ending", on("*/scale"), ask(subresource="upscale"), False),
    ("an object by name", on("pods", names=["a"]), ask(name="a"), True),
    ("another name", on("pods", names=["a"]), ask(name="b"), False),
    ("names do not give the list", on("pods", "list", names=["a"]), ask("list"), False),
    ("no names are all names", on("pods", names=[]), ask(name="b"), True),
    ("a star is no wildcard among names", on("pods", names=["*"]), ask(name="b"), False),
    ("an empty name can be named", on("pods", names=[""]), ask(), True),
    ("a rule without groups", {"verbs": ["get"], "resources": ["pods"]}, ask(), False),
    ("a path", at("/healthz"), ask(resource="", path="/healthz"), True),
    ("another path", at("/healthz"), ask(resource="", path="/livez"), False),
    ("another verb of a path", at("/healthz"), ask("post", resource="", path="/healthz"), False),
    ("every path", at("*"), ask(resource="", path="/x/y"), True),
    ("paths below", at("/apis/*"), ask(resource="", path="/apis/apps/v1"), True),
    ("paths below are not the path", at("/apis/*"), ask(resource="", path="/apis"), False),
    ("paths with a beginning", at("/api*"), ask(resource="", path="/apis/apps"), True),
    ("a star within a path is itself", at("/a/*/c"), ask(resource="", path="/a/b/c"), False),
    ("a path is no resource", at("*", "*"), ask(), False),
    ("resources are no path", on("*", "*", groups=["*"]), ask(resource="", path="/healthz"), False),
    ("names say nothing of paths", {**at("/x"), "resourceNames": ["a"]}, ask(resource="", path="/x"), True),
]


@pytest.mark.parametrize(("rule", "query", "allowed"), [case[1:] for case in RULES], ids=[case[0] for case in RULES])
def test_a_rule_allows_what_it_names(rule: Object, query: Query, allowed: bool) -> None:
    authorizer = Memory(a_role("r", rule), a_binding("b", "r", user("ann"))).authorizer()
    assert authorizer.allowed(query) is allowed
    assert authorizer.allowed(query) is allowed, "the same when it is asked again"
    assert authorizer.decision(query).allowed is allowed, "and when a review asks"


HOME = "build"
SUBJECTS: list[tuple[str, Object, User, str, bool]] = [
    ("a user", a_binding("b", "r", user("ann")), ANN, "", True),
    ("another user", a_binding("b", "r", user("eve")), ANN, "", False),
    ("a group", a_binding("b", "r", group("devs")), ANN, "", True),
    ("a group's name is no user", a_binding("b", "r", user("devs")), ANN, "", False),
    ("a user's name is no group", a_binding("b", "r", group("ann")), ANN, "", False),
    ("one of several", a_binding("b", "r", user("eve"), group("devs")), ANN, "", True),
    ("nobody", a_binding("b", "r"), ANN, "", False),
    ("an unknown kind of subject", a_binding("b", "r", {"kind": "Robot", "name": "ann"}), ANN, "", False),
    ("an account", a_binding("b", "r", account("bot", HOME)), BOT, "", True),
    ("an account of another namespace", a_binding("b", "r", account("bot", "x")), BOT, "", False),
    ("an account by its user name", a_binding("b", "r", user(BOT.name)), BOT, "", True),
    ("the accounts of a namespace", a_binding("b", "r", group("system:serviceaccounts:build")), BOT, "", True),
    ("an account without a namespace, for the cluster", a_binding("b", "r", account("bot")), BOT, HOME, False),
    ("an account without a namespace, in one", a_binding("b", "r", account("bot"), namespace=HOME), BOT, HOME, True),
    ("an account of elsewhere", a_binding("b", "r", account("bot", HOME), namespace="x"), BOT, "x", True),
    ("the cluster's binding in a namespace", a_binding("b", "r", user("ann")), ANN, HOME, True),
    ("a namespace's binding there", a_binding("b", "r", user("ann"), namespace=HOME), ANN, HOME, True),
    ("a namespace's binding elsewhere", a_binding("b", "r", user("ann"), namespace=HOME), ANN, "x", False),
    ("a namespace's binding for all", a_binding("b", "r", user("ann"), namespace=HOME), ANN, "", False),
    ("a role of the namespace", a_binding("b", "own", user("ann"), namespace=HOME, of="Role"), ANN, HOME, True),
    ("a role of another namespace", a_binding("b", "own", user("ann"), namespace="x", of="Role"), ANN, "x", False),
    ("a role that is not there", a_binding("b", "nope", user("ann")), ANN, "", False),
    ("a reference of an unknown kind", a_binding("b", "r", user("ann"), of="Zip"), ANN, "", False),
]


@pytest.mark.parametrize(
    ("binding", "who", "namespace", "allowed"), [case[1:] for case in SUBJECTS], ids=[case[0] for case in SUBJECTS]
)
def test_a_binding_gives_its_role_to_its_subjects(binding: Object, who: User, namespace: str, allowed: bool) -> None:
    state = Memory(a_role("r", on("pods")), a_role("own", on("pods"), namespace=HOME), binding)
    assert state.authorizer().allowed(ask(user=who, namespace=namespace)) is allowed


def test_masters_may_do_everything_without_any_role() -> None:
    root = User(name="root", groups=("system:masters",))
    assert Memory().authorizer().allowed(ask("zap", user=root))
    assert Memory().authorizer().decision(ask("zap", user=root)) == (True, "")


def test_rules_of_several_bindings_add_up() -> None:
    state = Memory(
        a_role("named", on("pods", names=["a"])),
        a_role("other", on("pods", names=["b"])),
        a_binding("1", "named", user("ann")),
        a_binding("2", "other", group("devs")),
        a_binding("3", "missing", group("devs")),
    )
    authorizer = state.authorizer()
    assert [authorizer.allowed(ask(name=name)) for name in ("a", "b", "c")] == [True, True, False]


def test_a_decision_holds_until_a_role_or_binding_changes() -> None:
    state = Memory(a_role("r", on("pods")), bound := a_binding("b", "r", user("ann")))
    authorizer = state.authorizer()
    assert authorizer.allowed(ask(name="a"))
    seen = state.reads
    assert authorizer.allowed(ask(name="b")), "another object, the same decision"
    assert state.reads == seen
    state.put(a_role("r", on("pods", names=["a"])))
    assert authorizer.allowed(ask(name="a"))
    assert not authorizer.allowed(ask(name="b"))
    state.remove(bound)
    assert not authorizer.allowed(ask(name="a"))
    state.put(a_binding("b", "r", user("ann"), namespace="x"))
    assert authorizer.allowed(ask(name="a", namespace="x"))


REFUSALS = [
    (
        "an object",
        ask(name="x", namespace="z"),
        'pods "x" is forbidden: User "ann" cannot get resource "pods" in API group "" in the namespace "z"',
    ),
    (
        "a list in all namespaces",
        ask("list", "deployments", group="apps"),
        'deployments.apps is forbidden: User "ann" cannot list resource "deployments" in API group "apps" '
        "at the cluster scope",
    ),
    (
        "a subresource",
        ask(name="x", namespace="z", subresource="log"),
        'pods "x" is forbidden: User "ann" cannot get resource "pods/log" in API group "" in the namespace "z"',
    ),
    ("a path", ask(resource="", path="/metrics"), 'forbidden: User "ann" cannot get path "/metrics"'),
    (
        "a name that looks like markup",
        ask(resource="", path="/<b>"),
        'forbidden: User "ann" cannot get path "/&lt;b&gt;"',
    ),
]


@pytest.mark.parametrize(("query", "message"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
def test_a_refusal_says_who_cannot_do_what_where(query: Query, message: str) -> None:
    status = Memory().authorizer().refusal(query).status
    assert (status.code, status.reason, status.message) == (403, "Forbidden", message)
    assert (status.details.name, status.details.kind) == (query.name, query.resource)


def test_a_refusal_tells_of_the_roles_that_are_missing() -> None:
    state = Memory(
        a_binding("a", "nope", user("ann")),
        a_binding("b", "nope2", group("devs"), namespace="z", of="Role"),
    )
    group_name = "rbac.authorization.k8s.io"
    told = f'RBAC: [clusterrole.{group_name} "nope" not found, role.{group_name} "nope2" not found]'
    assert state.authorizer().decision(ask(namespace="z")) == (False, told)
    assert state.authorizer().refusal(ask(namespace="z")).status.message.endswith(f'in the namespace "z": {told}')
    assert state.authorizer().decision(ask()) == (False, f'RBAC: clusterrole.{group_name} "nope" not found')


def test_a_decision_names_the_binding_that_allows() -> None:
    state = Memory(
        a_role("r", on("pods")),
        a_role("own", on("nodes"), namespace="z"),
        a_binding("b", "r", group("devs")),
        a_binding("c", "own", account("bot"), namespace="build", of="Role"),
        a_role("own", on("nodes"), namespace="build"),
    )
    told = state.authorizer().decision(ask()).reason
    assert told == 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "devs"'
    told = state.authorizer().decision(ask(user=BOT, resource="nodes", namespace="build")).reason
    assert told == 'RBAC: allowed by RoleBinding "c/build" of Role "own" to ServiceAccount "bot/build"'


def test_the_rules_of_a_user_are_told_apart_by_what_they_are_about() -> None:
    state = Memory(
        a_role("r", on("pods", names=["a"]), at("/x")),
        a_role("own", on("secrets"), namespace="z"),
        a_binding("b", "r", group("devs")),
        a_binding("c", "own", user("ann"), namespace="z", of="Role"),
        a_binding("d", "nope", user("ann")),
    )
    found = state.authorizer().rules_for(ANN, "z")
    assert found.resource == [on("pods", names=["a"]), on("secrets")]
    assert found.non_resource == [at("/x")]
    assert found.problems == ['clusterrole.rbac.authorization.k8s.io "nope" not found']
    assert state.authorizer().rules_for(ANN, "other").resource == [on("pods", names=["a"])]


def test_a_role_without_rules_and_a_binding_without_subjects_are_no_fault() -> None:
    bare = an_object("ClusterRoleBinding", "b", roleRef={"kind": "ClusterRole", "name": "r"})
    state = Memory(an_object("ClusterRole", "r"), bare, a_binding("c", "r", user("ann")))
    assert not state.authorizer().allowed(ask())
