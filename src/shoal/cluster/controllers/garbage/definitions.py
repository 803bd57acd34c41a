"""When the set of kinds changes: CustomResourceDefinitions, and the services that other servers answer for."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.apiextensions import Definition
from shoal.api.meta import PartialObject, Resource
from shoal.cluster.controllers.discovery import Discovered

API_SERVICES = Resource(
    type=PartialObject,
    group="apiregistration.k8s.io",
    version="v1",
    kind="APIService",
    plural="apiservices",
    namespaced=False,
)

Place = tuple[str, str, str]
"""Group, version and plural of a kind."""


def defined_places(definitions: Iterable[Definition]) -> set[Place]:
    """The kinds that a server with these definitions serves once it has taken them in."""
    return {
        (one.spec.group, version.name, one.spec.names.plural)
        for one in definitions
        if one.is_established
        for version in one.spec.versions
        if version.served
    }


def lags_behind(discovered: Discovered, *, defined: set[Place], before: set[Place]) -> bool:
    """Whether a server does not yet list what is defined, or still lists what was defined before and is no more."""
    listed = {(one.resource.group, one.resource.version, one.resource.plural) for one in discovered.kinds}
    return bool(defined - listed) or bool((before - defined) & listed)
