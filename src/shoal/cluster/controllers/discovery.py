"""Which kinds a server serves, and what can be done with them.

For controllers that work on every kind there is: they cannot name the kinds that somebody defines tomorrow. Two
requests tell all of it, in the form in which the server lists all groups at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from shoal.api.meta import PartialObject, Resource, Wire
from shoal.kube import Client

_ALL_AT_ONCE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True, kw_only=True)
class ServedKind:
    """One kind in one of its versions."""

    resource: Resource[PartialObject]
    verbs: frozenset[str]

    def can(self, *verbs: str) -> bool:
        """Whether all of these can be done with its objects."""
        return self.verbs.issuperset(verbs)


@dataclass(frozen=True, kw_only=True)
class Discovered:
    """What is served: every kind in every version, the version that the server prefers first."""

    kinds: tuple[ServedKind, ...]
    failures: dict[str, str] = field(default_factory=dict)
    """The group versions of which the server could not say what they hold, and why."""

    def preferred(self) -> Iterator[ServedKind]:
        """Each kind once, in the version that the server prefers for it."""
        seen = set()
        for kind in self.kinds:
            place = (kind.resource.group, kind.resource.plural)
            if place not in seen:
                seen.add(place)
                yield kind

    @property
    def problem(self) -> str:
        """What could not be found out, in words; empty where nothing is missing."""
        if not self.failures:
            return ""
        told = ", ".join(sorted(f"{version}: {why}" for version, why in self.failures.items()))
        return f"unable to retrieve the complete list of server APIs: {told}"


async def discover(client: Client) -> Discovered:
    """Asks a server what it serves, as of now."""
    found: list[ServedKind] = []
    failures: dict[str, str] = {}
    for path in ("/api", "/apis"):
        listed = _LISTS.decode(await client.read_path(path, accept=_ALL_AT_ONCE))
        for group in listed.items:
            name = group.metadata.name
            for version in group.versions:
                label = f"{name}/{version.version}" if name else version.version
                if version.freshness == "Stale":
                    # What it lists is what was there when its server last answered.
                    failures[label] = f"stale GroupVersion discovery: {label}"
                else:
                    found += _kinds(name, version.version, version.resources)
    return Discovered(kinds=tuple(found), failures=failures)


class _ResponseKind(Wire, frozen=True, kw_only=True):
    kind: str = ""


class _Resource(Wire, frozen=True, kw_only=True):
    resource: str
    response_kind: _ResponseKind | None = None
    scope: str = "Namespaced"
    verbs: list[str] = []


class _Version(Wire, frozen=True, kw_only=True):
    version: str
    resources: list[_Resource] = []
    freshness: str = "Current"


class _Name(Wire, frozen=True, kw_only=True):
    name: str = ""


class _Group(Wire, frozen=True, kw_only=True):
    metadata: _Name = _Name()
    versions: list[_Version] = []


class _List(Wire, frozen=True, kw_only=True):
    items: list[_Group] = []


_LISTS = msgspec.json.Decoder(_List)


def _kinds(group: str, version: str, resources: Iterable[_Resource]) -> Iterator[ServedKind]:
    for one in resources:
        if one.response_kind is not None and one.response_kind.kind:
            yield ServedKind(
                resource=Resource(
                    type=PartialObject,
                    group=group,
                    version=version,
                    kind=one.response_kind.kind,
                    plural=one.resource,
                    namespaced=one.scope == "Namespaced",
                ),
                verbs=frozenset(one.verbs),
            )
