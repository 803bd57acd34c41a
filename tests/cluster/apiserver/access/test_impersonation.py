from __future__ import annotations

import pytest

from shoal.cluster.apiserver.access.authorization import Query
from shoal.cluster.apiserver.access.impersonation import account_of, impersonated
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import Refused
from tests.cluster.apiserver.access.memory import ANN, BOT, Memory, a_binding, a_role, on, user

ROOT = User(name="root", groups=("system:masters",))
AUTHENTICATION = ("authentication.k8s.io",)
Headers = list[tuple[str, str]]


def act(headers: Headers, *rules: Object, who: User = ANN, verb: str = "get") -> User:
    state = Memory(a_role("r", *rules), a_binding("b", "r", user(who.name)))
    request = Query(user=who, verb=verb, resource="pods", namespace="z", name="x")
    return impersonated(who, headers, state.authorizer().allowed, request)


def test_without_headers_everyone_is_themselves() -> None:
    assert act([]) is ANN
    assert act([("Impersonate-User", "")]) is ANN


JANE = ("Impersonate-User", "jane")
WANTED: list[tuple[str, Headers, User]] = [
    ("a user", [JANE], User(name="jane", groups=("system:authenticated",))),
    ("names in any case", [("impersonate-USER", "jane")], User(name="jane", groups=("system:authenticated",))),
    (
        "groups",
        [JANE, ("Impersonate-Group", "a"), ("Impersonate-Group", "b")],
        User(name="jane", groups=("a", "b", "system:authenticated")),
    ),
    (
        "a group that says whether the user is known",
        [JANE, ("Impersonate-Group", "system:unauthenticated")],
        User(name="jane", groups=("system:unauthenticated",)),
    ),
    (
        "masters",
        [JANE, ("Impersonate-Group", "system:masters")],
        User(name="jane", groups=("system:masters", "system:authenticated")),
    ),
    ("a uid", [JANE, ("Impersonate-Uid", "u")], User(name="jane", uid="u", groups=("system:authenticated",))),
    (
        "extras, their keys escaped and in lower case",
        [JANE, ("Impersonate-Extra-Acme.io%2fP", "1"), ("Impersonate-Extra-Acme.io%2fP", "2")],
        User(name="jane", groups=("system:authenticated",), extra={"acme.io/p": ("1", "2")}),
    ),
    (
        "an extra whose key cannot be unescaped",
        [JANE, ("Impersonate-Extra-A%zz", "1")],
        User(name="jane", groups=("system:authenticated",), extra={"a%zz": ("1",)}),
    ),
    (
        "an account",
        [("Impersonate-User", BOT.name)],
        BOT,
    ),
    (
        "an account in other groups",
        [("Impersonate-User", BOT.name), ("Impersonate-Group", "x")],
        User(name=BOT.name, groups=("x", "system:authenticated")),
    ),
    (
        "nobody",
        [("Impersonate-User", "system:anonymous")],
        User(name="system:anonymous", groups=("system:unauthenticated",)),
    ),
    (
        "nobody, in a group",
        [("Impersonate-User", "system:anonymous"), ("Impersonate-Group", "system:authenticated")],
        User(name="system:anonymous", groups=("system:authenticated", "system:unauthenticated")),
    ),
    (
        "a node",
        [("Impersonate-User", "system:node:n")],
        User(name="system:node:n", groups=("system:nodes", "system:authenticated")),
    ),
]


@pytest.mark.parametrize(("headers", "expected"), [case[1:] for case in WANTED], ids=[case[0] for case in WANTED])
def test_an_administrator_becomes_whom_the_headers_name(headers: Headers, expected: User) -> None:
    assert act(headers, who=ROOT) == expected


NAMELESS = [
    (
        [("Impersonate-Group", "g")],
        'Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)',
    ),
    ([("Impersonate-Uid", "u")], 'Name:"", UID:"u", Groups:[]string(nil), Extra:map[string][]string(nil)'),
    (
        [("Impersonate-Extra-X", "g"), ("Impersonate-Extra-X", "h")],
        'Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"x":[]string{"g", "h"}}',
    ),
]


@pytest.mark.parametrize(("headers", "shown"), NAMELESS, ids=["a group", "a uid", "an extra"])
def test_headers_without_a_user_are_refused(headers: Headers, shown: str) -> None:
    with pytest.raises(Refused) as refused:
        act(headers, who=ROOT)
    status = refused.value.status
    assert status.code == 400
    assert status.message == f"requested &user.DefaultInfo{{{shown}}} without impersonating a user name"


LEGACY: list[tuple[str, Headers, list[Object], bool]] = [
    ("nothing", [JANE], [], False),
    ("any user", [JANE], [on("users", "impersonate")], True),
    ("this user", [JANE], [on("users", "impersonate", names=["jane"])], True),
    ("another user", [JANE], [on("users", "impersonate", names=["joe"])], False),
    ("groups are asked for too", [JANE, ("Impersonate-Group", "g")], [on("users", "impersonate")], False),
    ("users and groups", [JANE, ("Impersonate-Group", "g")], [on("users,groups", "impersonate")], True),
    (
        "one group of two",
        [JANE, ("Impersonate-Group", "g"), ("Impersonate-Group", "h")],
        [on("users", "impersonate"), on("groups", "impersonate", names=["g"])],
        False,
    ),
    ("uids are of another group", [JANE, ("Impersonate-Uid", "u")], [on("users,uids", "impersonate")], False),
    ("a uid", [JANE, ("Impersonate-Uid", "u")], [on("users,uids", "impersonate", groups=["", *AUTHENTICATION])], True),
    (
        "an extra by its key",
        [JANE, ("Impersonate-Extra-Scopes", "v")],
        [on("users", "impersonate"), on("userextras/scopes", "impersonate", groups=AUTHENTICATION, names=["v"])],
        True,
    ),
    (
        "another extra",
        [JANE, ("Impersonate-Extra-Scopes", "v")],
        [on("users", "impersonate"), on("userextras/other", "impersonate", groups=AUTHENTICATION)],
        False,
    ),
    ("an account is no user", [("Impersonate-User", BOT.name)], [on("users", "impersonate")], False),
    ("an account", [("Impersonate-User", BOT.name)], [on("serviceaccounts", "impersonate", names=["bot"])], True),
]


@pytest.mark.parametrize(
    ("headers", "rules", "allowed"), [case[1:] for case in LEGACY], ids=[case[0] for case in LEGACY]
)
def test_every_thing_that_is_impersonated_must_be_allowed(headers: Headers, rules: list[Object], allowed: bool) -> None:
    if allowed:
        assert act(headers, *rules).name == headers[0][1]
        return
    with pytest.raises(Refused) as refused:
        act(headers, *rules)
    assert refused.value.status.code == 403


def both(mode: str, resource: str, *names: str, verb: str = "get") -> list[Object]:
    """The two rules of a constrained mode."""
    whom = on(resource, f"impersonate:{mode}", groups=AUTHENTICATION, names=names)
    return [whom, on("pods", f"impersonate-on:{mode}:{verb}")]


AGENT = User(name=BOT.name, groups=BOT.groups, extra={"authentication.kubernetes.io/node-name": ("n",)})
NODE = ("Impersonate-User", "system:node:n")
ANY_GROUP = on("groups", "impersonate:user-info", groups=AUTHENTICATION, names=["*"])
CONSTRAINED: list[tuple[str, User, Headers, list[Object], bool]] = [
    ("a user", ANN, [JANE], both("user-info", "users"), True),
    ("a user for another verb", ANN, [JANE], both("user-info", "users", verb="list"), False),
    ("a user with masters", ANN, [JANE, ("Impersonate-Group", "system:masters")], both("user-info", "*"), False),
    ("a user with a group", ANN, [JANE, ("Impersonate-Group", "g")], both("user-info", "*"), True),
    ("a user with a key that has no domain", ANN, [JANE, ("Impersonate-Extra-X", "g")], both("user-info", "*"), False),
    ("a user with a good key", ANN, [JANE, ("Impersonate-Extra-A.b%2fc", "g")], both("user-info", "*"), True),
    ("an account", ANN, [("Impersonate-User", BOT.name)], both("serviceaccount", "serviceaccounts", "bot"), True),
    ("an account as a user", ANN, [("Impersonate-User", BOT.name)], both("user-info", "*"), False),
    ("a node", ANN, [NODE], both("arbitrary-node", "nodes", "n"), True),
    ("another node", ANN, [NODE], both("arbitrary-node", "nodes", "m"), False),
    ("one's own node", AGENT, [NODE], both("associated-node", "nodes", "*"), True),
    ("a node that is not one's own", BOT, [NODE], both("associated-node", "nodes", "*"), False),
    (
        "many groups at once",
        ANN,
        [JANE, *(("Impersonate-Group", name) for name in "abcd")],
        [*both("user-info", "users"), on("groups", "impersonate:user-info", groups=AUTHENTICATION, names=["*"])],
        True,
    ),
    (
        "few groups are asked for one by one",
        ANN,
        [JANE, ("Impersonate-Group", "a")],
        [*both("user-info", "users"), on("groups", "impersonate:user-info", groups=AUTHENTICATION, names=["*"])],
        False,
    ),
]


@pytest.mark.parametrize(
    ("who", "headers", "rules", "allowed"), [case[1:] for case in CONSTRAINED], ids=[case[0] for case in CONSTRAINED]
)
def test_the_constrained_way_asks_for_the_user_and_for_the_request(
    who: User, headers: Headers, rules: list[Object], allowed: bool
) -> None:
    if allowed:
        assert act(headers, *rules, who=who).name == headers[0][1]
        return
    with pytest.raises(Refused) as refused:
        act(headers, *rules, who=who)
    assert refused.value.status.code == 403


def test_a_refusal_names_what_the_narrowest_way_would_have_needed() -> None:
    with pytest.raises(Refused) as refused:
        act([JANE])
    assert refused.value.status.message == (
        'pods "x" is forbidden: User "ann" cannot impersonate-on:user-info:get resource "pods" in API group "" '
        'in the namespace "z"'
    )
    with pytest.raises(Refused) as refused:
        impersonated(ANN, [JANE], Memory().authorizer().allowed)
    assert refused.value.status.message == (
        'users "jane" is forbidden: User "ann" cannot impersonate resource "users" in API group "" at the cluster scope'
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("system:serviceaccount:build:bot", ("build", "bot")),
        ("system:serviceaccount:build:bot.v1", ("build", "bot.v1")),
        ("system:serviceaccount:build", None),
        ("system:serviceaccount:build:a:b", None),
        ("system:serviceaccount:Build:bot", None),
        ("system:serviceaccount:build:", None),
        ("bot", None),
    ],
)
def test_a_user_name_may_stand_for_an_account(name: str, expected: tuple[str, str] | None) -> None:
    assert account_of(name) == expected
