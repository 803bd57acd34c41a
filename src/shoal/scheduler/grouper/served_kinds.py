"""Where the objects of a kind are found that is known by its API version and name alone."""

from __future__ import annotations

import msgspec

from shoal.api.meta import Document, Resource, Wire
from shoal.kube import Client, NotFound


class _Served(Wire, frozen=True, kw_only=True):
    name: str
    kind: str = ""
    namespaced: bool = True


class _ServedList(Wire, frozen=True, kw_only=True):
    resources: list[_Served] = []


_LISTS = msgspec.json.Decoder(_ServedList)


class ServedKinds:
    """Asks the server once for each API version what it serves, and again where a kind is missing."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str], Resource[Document]] = {}

    async def resource(self, api_version: str, kind: str) -> Resource[Document] | None:
        """The resource of a kind; None where the server does not serve it."""
        if (api_version, kind) not in self._known:
            await self._ask(api_version)
        return self._known.get((api_version, kind))

    async def _ask(self, api_version: str) -> None:
        group, _, version = api_version.rpartition("/")
        root = "/apis" if group else "/api"
        try:
            listed = _LISTS.decode(await self._client.read_path(f"{root}/{api_version}"))
        except NotFound:
            return
        for one in listed.resources:
            if one.kind and "/" not in one.name:
                self._known[api_version, one.kind] = Resource(
                    type=Document,
                    group=group,
                    version=version,
                    kind=one.kind,
                    plural=one.name,
                    namespaced=one.namespaced,
                )
