"""Acting as another user: the Impersonate-* headers, and who may use them.

There are two ways to be allowed. The newer, constrained one asks twice: whether the requester may impersonate such a
user (verb ``impersonate:<mode>``) and whether the requester may make this very request so (``impersonate-on:<mode>:
<verb>``), where the mode is the sort of user that is wanted. The older one asks only for the verb ``impersonate`` on
everything that the headers name, and then all is open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from urllib.parse import unquote

from shoal.api.meta import dns1123_label_problems, dns1123_subdomain_problems
from shoal.cluster.apiserver.access.account_tokens import account_groups
from shoal.cluster.apiserver.access.authentication import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED
from shoal.cluster.apiserver.access.authorization import MASTERS, Query, refusal
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.access.wording import quoted
from shoal.cluster.apiserver.refusals import Refused, bad_request

NODES = "system:nodes"
_NODE = "system:node:"
_ACCOUNT = "system:serviceaccount:"
_NODE_NAME = "authentication.kubernetes.io/node-name"
_AUTHENTICATION = "authentication.k8s.io"
_EXTRA = "impersonate-extra-"
_BAD_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})")
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_MANY = 4

Allowed = Callable[[Query], bool]


def impersonated(
    user: User, headers: Iterable[tuple[str, str]], allowed: Allowed, request: Query | None = None
) -> User:
    """The user that a request is made as: the one who makes it, or the one that the headers name.

    ``request`` is what is asked for, as the requester would ask it; without it the older way alone is open. Raises
    Refused: 400 where headers name no user, 403 where the requester may not.
    """
    wanted = _wanted(headers)
    if wanted is None:
        return user
    refused: Refused | None = None
    for mode in _modes(user, wanted) if request is not None else ():
        assert request is not None
        try:
            return _constrained(user, wanted, mode, allowed, request)
        except Refused as error:
            refused = refused or error
    try:
        _check(wanted, allowed, user, verb="impersonate", group="")
    except Refused as error:
        raise refused or error from None
    groups = wanted.groups
    if not groups and (account := account_of(wanted.name)):
        groups = account_groups(account[0])
    return _completed(wanted, groups)


def account_of(name: str) -> tuple[str, str] | None:
    """The namespace and name of the ServiceAccount that a user name stands for."""
    parts = name.removeprefix(_ACCOUNT).split(":") if name.startswith(_ACCOUNT) else []
    if len(parts) != 2 or dns1123_label_problems(parts[0]) or dns1123_subdomain_problems(parts[1]):
        return None
    return parts[0], parts[1]


def _wanted(headers: Iterable[tuple[str, str]]) -> User | None:
    name, uid, groups, extra = "", "", list[str](), dict[str, list[str]]()
    for header, value in headers:
        key = header.lower()
        if key == "impersonate-user":
            name = name or value
        elif key == "impersonate-uid":
            uid = uid or value
        elif key == "impersonate-group":
            groups.append(value)
        elif key.startswith(_EXTRA):
            extra.setdefault(_unescaped(key.removeprefix(_EXTRA)), []).append(value)
    if name:
        return User(
            name=name, uid=uid, groups=tuple(groups), extra={key: tuple(values) for key, values in extra.items()}
        )
    if uid or groups or extra:
        shown = f'&user.DefaultInfo{{Name:"", UID:{quoted(uid)}, Groups:{_go(groups)}, Extra:{_go_map(extra)}}}'
        raise bad_request(f"requested {shown} without impersonating a user name")
    return None


def _unescaped(key: str) -> str:
    return key if _BAD_ESCAPE.search(key) else unquote(key)


def _modes(user: User, wanted: User) -> Iterator[str]:
    """The constrained modes that a wanted user can be had by."""
    is_plain = not (wanted.uid or wanted.groups or wanted.extra)
    if node := _node(wanted.name):
        if is_plain:
            if account_of(user.name) and user.extra.get(_NODE_NAME) == (node,):
                yield "associated-node"
            yield "arbitrary-node"
    elif account_of(wanted.name):
        if is_plain:
            yield "serviceaccount"
    else:
        yield "user-info"


def _constrained(user: User, wanted: User, mode: str, allowed: Allowed, request: Query) -> User:
    on = replace(request, user=user, verb=f"impersonate-on:{mode}:{request.verb}")
    if not allowed(on):
        raise refusal(on)
    _check(wanted, allowed, user, verb=f"impersonate:{mode}", group=_AUTHENTICATION)
    groups = wanted.groups
    if _node(wanted.name):
        groups = (NODES,)
    elif account := account_of(wanted.name):
        groups = account_groups(account[0])
    return _completed(wanted, groups)


def _check(wanted: User, allowed: Allowed, user: User, *, verb: str, group: str) -> None:
    """Asks for each thing that the headers name; raises the refusal of the first that is not allowed."""
    is_constrained = bool(group)
    queries = list(_queries(wanted, user, verb=verb, group=group))
    for query in queries:
        if is_constrained and (why := _never(query)):
            raise refusal(query, why)
    for query in queries:
        if not allowed(query) and not (is_constrained and _all_allowed(query, wanted, allowed)):
            raise refusal(query)


def _all_allowed(query: Query, wanted: User, allowed: Allowed) -> bool:
    """Whether one who asks for many groups or extras may have any: asked for by the name ``*``."""
    if query.resource == "groups":
        return len(wanted.groups) >= _MANY and allowed(replace(query, name="*"))
    if query.resource == "userextras":
        many = sum(map(len, wanted.extra.values())) >= _MANY
        return many and allowed(replace(query, subresource="*", name="*"))
    return False


def _queries(wanted: User, user: User, *, verb: str, group: str) -> Iterator[Query]:
    whom = Query(user=user, verb=verb, group=group, version="v1", resource="users", name=wanted.name)
    if group and (node := _node(wanted.name)):
        name = "*" if verb.endswith(":associated-node") else node
        whom = replace(whom, resource="nodes", name=name)
    elif account := account_of(wanted.name):
        whom = replace(whom, resource="serviceaccounts", namespace=account[0], name=account[1])
    yield whom
    rest = replace(whom, namespace="", resource="uids", group=_AUTHENTICATION)
    if wanted.uid:
        yield replace(rest, name=wanted.uid)
    for each in wanted.groups:
        yield replace(rest, resource="groups", group=group, name=each)
    for key, values in wanted.extra.items():
        for value in values:
            yield replace(rest, resource="userextras", subresource=key, name=value)


def _never(query: Query) -> str:
    """Why the constrained way is closed whatever the rules say, or nothing."""
    if query.resource == "groups" and not query.name:
        return "impersonating the empty string group is not allowed"
    if query.resource == "groups" and query.name == MASTERS:
        return "impersonating the system:masters group is not allowed"
    if query.resource == "userextras" and not query.subresource:
        return "impersonating the empty string key in extra is not allowed"
    if query.resource == "userextras" and (problem := _key_problem(query.subresource)):
        shown = f"extra.key: Invalid value: {quoted(query.subresource)}: {problem}"
        return f"impersonating an invalid key in extra is not allowed: {shown}"
    if query.resource == "userextras" and not query.name:
        return "impersonating the empty string value in extra is not allowed"
    return ""


def _key_problem(key: str) -> str:
    domain, slash, path = key.partition("/")
    if not slash or not domain or not path:
        return 'must be a domain-prefixed path (such as "acme.io/foo")'
    if problems := dns1123_subdomain_problems(domain):
        return problems[0]
    return "" if _PATH.fullmatch(path) else f"Invalid path (regex used for validation is '{_PATH.pattern}')"


def _completed(wanted: User, groups: tuple[str, ...]) -> User:
    if wanted.name != ANONYMOUS.name and UNAUTHENTICATED in groups:
        return replace(wanted, groups=groups)
    added = UNAUTHENTICATED if wanted.name == ANONYMOUS.name else AUTHENTICATED
    return replace(wanted, groups=groups if added in groups else (*groups, added))


def _node(name: str) -> str:
    node = name.removeprefix(_NODE) if name.startswith(_NODE) else ""
    return node if node and not dns1123_subdomain_problems(node) else ""


def _go(values: Iterable[str]) -> str:
    shown = ", ".join(map(quoted, values))
    return f"[]string{{{shown}}}" if shown else "[]string(nil)"


def _go_map(values: dict[str, list[str]]) -> str:
    shown = ", ".join(f"{quoted(key)}:{_go(values[key])}" for key in sorted(values))
    return f"map[string][]string{{{shown}}}" if shown else "map[string][]string(nil)"
