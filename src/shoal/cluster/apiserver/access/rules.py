"""One rule of a role: what it allows, and whether it covers another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from shoal.cluster.apiserver.kinds.kind import Object

if TYPE_CHECKING:
    from shoal.cluster.apiserver.access.authorization import Query

ALL = "*"

_MOST_COMPARISONS = 100_000
_TRIED_WHOLE = 50


class Rule:
    """A PolicyRule, ready to be put to many queries and never to be changed."""

    __slots__ = ("groups", "names", "resources", "stated", "urls", "verbs")

    def __init__(self, stated: Object) -> None:
        self.stated = stated
        self.verbs = frozenset(stated.get("verbs") or ())
        self.groups = frozenset(stated.get("apiGroups") or ())
        self.resources = frozenset(stated.get("resources") or ())
        self.names = frozenset(stated.get("resourceNames") or ())
        self.urls = tuple(stated.get("nonResourceURLs") or ())

    def allows(self, query: Query) -> bool:
        """Whether it allows exactly this."""
        return self.allows_some(query) and (not self.names or bool(query.path) or query.name in self.names)

    def allows_some(self, query: Query) -> bool:
        """Whether it allows this, for one name at least."""
        if query.verb not in self.verbs and ALL not in self.verbs:
            return False
        if query.path:
            return any(_url_covers(url, query.path) for url in self.urls)
        if query.group not in self.groups and ALL not in self.groups:
            return False
        resources = self.resources
        if ALL in resources:
            return True
        subresource = query.subresource
        if not subresource:
            return query.resource in resources
        return f"{query.resource}/{subresource}" in resources or f"{ALL}/{subresource}" in resources

    def covers(self, part: Rule) -> bool:
        """Whether it allows all that a part does; a part has at most one verb, group, resource, name and path."""
        return (
            (ALL in self.verbs or part.verbs <= self.verbs)
            and (ALL in self.groups or part.groups <= self.groups)
            and (ALL in self.resources or all(self._covers_resource(each) for each in part.resources))
            and (not self.names or (bool(part.names) and part.names <= self.names))
            and all(any(_url_covers(own, url) for own in self.urls) for url in part.urls)
        )

    def _covers_resource(self, resource: str) -> bool:
        if resource in self.resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"{ALL}/{subresource}" in self.resources


class TooManyParts(Exception):
    """Rules combine more verbs, groups, resources and names than can be compared one by one."""


def uncovered(held: Iterable[Object], wanted: Sequence[Object]) -> list[Object]:
    """The parts of the wanted rules that no single rule held covers; raises TooManyParts."""
    own = [Rule(rule) for rule in held]
    # Most rules are covered whole by one that is held; only the others are taken apart.
    apart = [rule for rule in wanted if not _is_covered_whole(rule, own)]
    if sum(map(_count, apart)) * max(1, len(own)) > _MOST_COMPARISONS:
        raise TooManyParts
    missing = []
    for stated in apart:
        for part in parts(stated):
            wanted_part = Rule(part)
            if not any(candidate.covers(wanted_part) for candidate in own):
                missing.append(part)
    return missing


def _is_covered_whole(stated: Object, own: Sequence[Rule]) -> bool:
    """Whether one rule covers all parts of another at once."""
    wanted = Rule(stated)
    if wanted.urls and (wanted.groups or wanted.resources):
        return False
    return any(candidate.covers(wanted) for candidate in own[:_TRIED_WHOLE])


def _count(rule: Object) -> int:
    """How many parts a rule has."""
    lengths = {name: len(rule.get(name) or ()) for name in ("verbs", "apiGroups", "resources", "resourceNames")}
    resources = lengths["apiGroups"] * lengths["resources"] * lengths["verbs"] * max(1, lengths["resourceNames"])
    return resources + lengths["verbs"] * len(rule.get("nonResourceURLs") or ())


def parts(rule: Object) -> list[Object]:
    """A rule taken apart, so that each part is either covered whole by another rule or not at all."""
    verbs = rule.get("verbs") or ()
    names = rule.get("resourceNames") or ()
    found: list[Object] = []
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                found += [{**part, "resourceNames": [name]} for name in names] or [part]
    found += [
        {"nonResourceURLs": [url], "verbs": [verb]} for url in rule.get("nonResourceURLs") or () for verb in verbs
    ]
    return found


def _url_covers(url: str, path: str) -> bool:
    return url == path or (url.endswith(ALL) and path.startswith(url.rstrip(ALL)))
