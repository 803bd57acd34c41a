"""Role-based access control: whether a user may do what is asked.

Whatever a user is granted adds up: the rules of each role that a ClusterRoleBinding gives to the user or to one of the
user's groups, and in a namespace those that a RoleBinding of that namespace gives. What no rule names is refused.

A decision is remembered until a role or a binding changes. It is kept without the object's name, as either everything
or a set of names, so that reading a thousand pods asks the rules once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from shoal.cluster.apiserver.access.rules import Rule
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.access.wording import aggregate, quoted
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.reader import Reader
from shoal.cluster.apiserver.refusals import Refused, forbidden

GROUP = "rbac.authorization.k8s.io"
ROLES = f"roles.{GROUP}"
CLUSTER_ROLES = f"clusterroles.{GROUP}"
ROLE_BINDINGS = f"rolebindings.{GROUP}"
CLUSTER_ROLE_BINDINGS = f"clusterrolebindings.{GROUP}"
KINDS = (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)
"""What the revision that an Authorizer is given must count the changes of."""

MASTERS = "system:masters"
_MOST_DECISIONS = 20_000
_MOST_NAMESPACES = 10_000
_NO_NAMES: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """What a user wants to do, with objects of a resource or, where there is a path, with that path."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Decision(NamedTuple):
    """What was decided, and what a review says of it."""

    allowed: bool
    reason: str


class Held(NamedTuple):
    """What a user may do in a namespace, and the roles that are named by bindings but could not be found."""

    rules: list[Object]
    problems: list[str]


class RulesFor(NamedTuple):
    """The same as a SelfSubjectRulesReview shows it."""

    resource: list[Object]
    non_resource: list[Object]
    problems: list[str]


class Authorizer:
    """Decides by the roles and bindings of the committed state; ``revision`` changes whenever one of them does."""

    def __init__(self, state: Reader, revision: Callable[[], int]) -> None:
        self._state = state
        self._revision = revision
        self._seen = -1
        self._decisions: dict[tuple[object, ...], bool | frozenset[str]] = {}
        self._cluster = _Bindings()
        self._namespaces: dict[str, _Bindings] = {}
        self._roles: dict[tuple[str, str, str], list[Rule] | None] = {}

    def allowed(self, query: Query) -> bool:
        """Whether the user may."""
        user = query.user
        if MASTERS in user.groups:
            return True
        if self._revision() != self._seen:
            self._forget()
        if query.path:
            key: tuple[object, ...] = (user.name, user.groups, query.verb, query.path)
        else:
            key = (
                user.name,
                user.groups,
                query.verb,
                query.namespace,
                query.resource,
                query.subresource,
                query.group,
            )
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decided(query)
            if len(self._decisions) >= _MOST_DECISIONS:
                self._decisions.clear()
            self._decisions[key] = decision
        return decision if isinstance(decision, bool) else query.name in decision

    def decision(self, query: Query) -> Decision:
        """Whether the user may, and by which binding; where not, the roles that were not found."""
        if MASTERS in query.user.groups:
            return Decision(True, "")
        problems: list[str] = []
        for source, rules in self._grants(query.user, query.namespace, problems):
            if any(rule.allows(query) for rule in rules):
                return Decision(True, f"RBAC: allowed by {source()}")
        return Decision(False, f"RBAC: {aggregate(problems)}" if problems else "")

    def refusal(self, query: Query) -> Refused:
        """The answer to a request that is not allowed."""
        return refusal(query, self.decision(query).reason)

    def held(self, user: User, namespace: str) -> Held:
        """Every rule that applies to the user in a namespace ("" for the cluster's own alone)."""
        problems: list[str] = []
        grants = list(self._grants(user, namespace, problems))
        return Held([rule.stated for _, rules in grants for rule in rules], problems)

    def rules_for(self, user: User, namespace: str) -> RulesFor:
        """The user's rules, those about resources and those about paths apart."""
        held = self.held(user, namespace)
        resource = [_only(rule, _RESOURCE_FIELDS) for rule in held.rules if rule.get("resources")]
        paths = [_only(rule, _PATH_FIELDS) for rule in held.rules if rule.get("nonResourceURLs")]
        return RulesFor(resource, paths, held.problems)

    def role(self, kind: str, namespace: str, name: str) -> Object | None:
        """The Role or ClusterRole that a binding of this namespace names."""
        if kind == "ClusterRole":
            return self._state.get(CLUSTER_ROLES, "", name)
        return self._state.get(ROLES, namespace, name) if kind == "Role" else None

    def _decided(self, query: Query) -> bool | frozenset[str]:
        names = _NO_NAMES
        for _, rules in self._grants(query.user, query.namespace, []):
            for rule in rules:
                if rule.allows_some(query):
                    if not rule.names or query.path:
                        return True
                    names |= rule.names
        return names or False

    def _grants(
        self, user: User, namespace: str, problems: list[str]
    ) -> Iterable[tuple[Callable[[], str], list[Rule]]]:
        """What each binding that applies gives, and which one that is; roles that are missing become problems."""
        if self._revision() != self._seen:
            self._forget()
        for binding in self._cluster.of(user):
            rules = self._rules(binding.role_kind, "", binding.role, problems)
            if rules is not None:
                yield binding.described, rules
        if namespace:
            bindings = self._namespaces.get(namespace)
            if bindings is None:
                bindings = _Bindings()
                for each in self._state.list(ROLE_BINDINGS, namespace):
                    bindings.add(each, namespace)
                if len(self._namespaces) >= _MOST_NAMESPACES:
                    # Anyone may ask for namespaces that there are none of.
                    self._namespaces.clear()
                self._namespaces[namespace] = bindings
            for binding in bindings.of(user):
                rules = self._rules(binding.role_kind, namespace, binding.role, problems)
                if rules is not None:
                    yield binding.described, rules

    def _rules(self, kind: str, namespace: str, name: str, problems: list[str]) -> list[Rule] | None:
        key = kind, namespace, name
        if key in self._roles:
            rules = self._roles[key]
        else:
            found = self.role(kind, namespace, name)
            rules = None if found is None else [Rule(each) for each in found.get("rules") or ()]
            self._roles[key] = rules
        if rules is None:
            known = kind in ("Role", "ClusterRole")
            said = f"{kind.lower()}.{GROUP} {quoted(name)} not found"
            problems.append(said if known else f"unsupported role reference kind: {quoted(kind)}")
        return rules

    def _forget(self) -> None:
        # The revision is read first: a change that comes in between is then seen by the next request.
        self._seen = self._revision()
        self._decisions.clear()
        self._namespaces.clear()
        self._roles.clear()
        self._cluster = _Bindings()
        for binding in self._state.list(CLUSTER_ROLE_BINDINGS):
            self._cluster.add(binding, "")


def refusal(query: Query, reason: str = "") -> Refused:
    """The answer to a request that is not allowed, with what the authorizer adds."""
    user = quoted(query.user.name)
    if query.path:
        said = f"User {user} cannot {query.verb} path {quoted(query.path)}"
    else:
        resource = f"{query.resource}/{query.subresource}" if query.subresource else query.resource
        where = f"in the namespace {quoted(query.namespace)}" if query.namespace else "at the cluster scope"
        said = f"User {user} cannot {query.verb} resource {quoted(resource)} in API group {quoted(query.group)} {where}"
    # Browsers may show the answer: what a client put into it must not look like markup.
    said = said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return forbidden(query.resource, query.group, query.name, f"{said}: {reason}" if reason else said)


class _Binding(NamedTuple):
    """One subject of one binding."""

    stated: Object
    subject: Object
    namespace: str
    role_kind: str
    role: str

    def described(self) -> str:
        """Which binding it is, as a review tells its reader."""
        kind, name = "ClusterRoleBinding", self.stated["metadata"]["name"]
        if self.namespace:
            kind, name = "RoleBinding", f"{name}/{self.namespace}"
        whom = self.subject.get("name", "")
        if self.subject.get("kind") == "ServiceAccount":
            whom = f"{whom}/{self.subject.get('namespace') or self.namespace}"
        to = f"{self.subject.get('kind', '')} {quoted(whom)}"
        return f"{kind} {quoted(name)} of {self.role_kind} {quoted(self.role)} to {to}"


@dataclass(slots=True)
class _Bindings:
    """The bindings of one scope, by whom they are for."""

    users: dict[str, list[_Binding]] = field(default_factory=dict)
    groups: dict[str, list[_Binding]] = field(default_factory=dict)

    def add(self, binding: Object, namespace: str) -> None:
        reference = binding.get("roleRef") or {}
        for subject in binding.get("subjects") or ():
            name = subject.get("name", "")
            match subject.get("kind"):
                case "User":
                    place = self.users
                case "Group":
                    place = self.groups
                case "ServiceAccount":
                    home = subject.get("namespace") or namespace
                    if not home:
                        continue
                    place, name = self.users, f"system:serviceaccount:{home}:{name}"
                case _:
                    continue
            entry = _Binding(binding, subject, namespace, reference.get("kind", ""), reference.get("name", ""))
            place.setdefault(name, []).append(entry)

    def of(self, user: User) -> Iterable[_Binding]:
        """Those that apply to the user, each once."""
        lists = [self.users.get(user.name), *(self.groups.get(group) for group in user.groups)]
        found: dict[int, _Binding] = {}
        for bindings in lists:
            for binding in bindings or ():
                found.setdefault(id(binding.stated), binding)
        return found.values()


_RESOURCE_FIELDS = ("verbs", "apiGroups", "resources", "resourceNames")
_PATH_FIELDS = ("verbs", "nonResourceURLs")


def _only(rule: Object, fields: tuple[str, ...]) -> Object:
    return {name: list(rule[name]) for name in fields if rule.get(name)}
