"""The size of any object that has one: finds where its kind is served, and reads its scale subresource."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from shoal.api.meta import Object, PartialObject, Resource, Wire
from shoal.kube import Client, NotFound


class ScaleSpec(Wire, frozen=True, kw_only=True):
    """How many are wanted."""

    replicas: int = 0


class ScaleStatus(Wire, frozen=True, kw_only=True):
    """How many there are, and which pods they are."""

    replicas: int = 0
    selector: str = ""


class Scale(Object, frozen=True, kw_only=True):
    """The size of an object."""

    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()


class UnknownKind(Exception):
    """The server serves no such kind."""

    def __init__(self, api_version: str, kind: str) -> None:
        self.group = api_version.rpartition("/")[0]
        self.kind = kind
        super().__init__(f'no matches for kind "{kind}" in version "{api_version}"')


@dataclass(frozen=True, kw_only=True)
class Sized:
    """A kind as it is served, and whether its objects have a size."""

    resource: Resource[PartialObject]
    has_scale: bool

    @property
    def group_resource(self) -> str:
        """``plural.group``, as error messages name a kind."""
        return self.resource.full_name


class Scales:
    """Reads sizes; where a kind is served is asked for once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str], Sized] = {}

    async def kind(self, api_version: str, kind: str) -> Sized:
        """Where a kind is served; raises UnknownKind."""
        known = self._known.get((api_version, kind))
        if known is None or not known.has_scale:
            # A kind whose definition has no size yet may get one: only what cannot change is remembered.
            known = self._known[api_version, kind] = await self._ask(api_version, kind)
        return known

    async def read(self, sized: Sized, name: str, namespace: str) -> Scale:
        """The size of an object; raises NotFound where there is none, or it has no size."""
        path = sized.resource.path(namespace, name, "scale")
        return msgspec.json.decode(await self._client.read_path(path), type=Scale)

    async def write(self, sized: Sized, name: str, namespace: str, replicas: int) -> None:
        """Asks for another size."""
        await self._client.scale(sized.resource, name, replicas, namespace)

    async def _ask(self, api_version: str, kind: str) -> Sized:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            served = msgspec.json.decode(await self._client.read_path(root), type=_Resources).resources
        except NotFound:
            raise UnknownKind(api_version, kind) from None
        group, _, version = api_version.rpartition("/")
        for one in served:
            if one.kind == kind and "/" not in one.name:
                resource = Resource(
                    type=PartialObject,
                    group=group,
                    version=version,
                    kind=kind,
                    plural=one.name,
                    namespaced=one.namespaced,
                )
                has_scale = any(other.name == f"{one.name}/scale" and other.kind == "Scale" for other in served)
                return Sized(resource=resource, has_scale=has_scale)
        raise UnknownKind(api_version, kind)


class _Resource(Wire, frozen=True, kw_only=True):
    name: str
    kind: str = ""
    namespaced: bool = False


class _Resources(Wire, frozen=True, kw_only=True):
    resources: list[_Resource] = []
