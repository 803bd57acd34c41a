"""The ConfigMaps and Secrets of pods, read when they are needed and again when they have changed.

Informers hold their metadata alone, of the whole cluster; the content of those that pods here use is read by name, and
kept as long as the informer shows no newer version of it.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from shoal.api.core import CONFIG_MAPS, SECRETS
from shoal.api.meta import Object, PartialObject
from shoal.cluster.node.process.contents.references import CONFIG_MAP, SECRET, Content, Reference
from shoal.kube import Client, Informer, NotFound

_KEPT = 256


class _Whole(Object, frozen=True, kw_only=True):
    """A ConfigMap or Secret with all that it holds; either may have no data at all."""

    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None


class _Held(NamedTuple):
    version: str
    content: Content


_RESOURCES = {CONFIG_MAP: CONFIG_MAPS.view(_Whole), SECRET: SECRETS.view(_Whole)}


class Sources:
    """Gives the content of ConfigMaps and Secrets."""

    def __init__(self, client: Client, config_maps: Informer[PartialObject], secrets: Informer[PartialObject]) -> None:
        self._client = client
        self._informers = {CONFIG_MAP: config_maps, SECRET: secrets}
        self._held: OrderedDict[Reference, _Held] = OrderedDict()

    async def contents(self, references: Iterable[Reference]) -> dict[Reference, Content]:
        """The content of those that there are."""
        found: dict[Reference, Content] = {}
        for reference in sorted(set(references)):
            content = await self._content(reference)
            if content is not None:
                found[reference] = content
        return found

    async def _content(self, reference: Reference) -> Content | None:
        held = self._held.get(reference)
        if held is not None and self._is_current(reference, held.version):
            self._held.move_to_end(reference)
            return held.content
        try:
            whole = await self._client.get(_RESOURCES[reference.kind], reference.name, reference.namespace)
        except NotFound:
            self._held.pop(reference, None)
            return None
        content = _content_of(reference.kind, whole)
        self._held[reference] = _Held(whole.metadata.resource_version, content)
        self._held.move_to_end(reference)
        if len(self._held) > _KEPT:
            self._held.popitem(last=False)
        return content

    def _is_current(self, reference: Reference, version: str) -> bool:
        """Whether the informer knows of none newer; one that it does not know at all is asked for."""
        shown = self._informers[reference.kind].get(reference.name, reference.namespace)
        if shown is None:
            return False
        newest = shown.metadata.resource_version
        return newest == version or (newest.isdigit() and version.isdigit() and int(newest) < int(version))


def _content_of(kind: str, whole: _Whole) -> Content:
    data = whole.data or {}
    if kind == SECRET:
        return Content({key: _decoded(value) for key, value in data.items()})
    binary = {key: _decoded(value) for key, value in (whole.binary_data or {}).items()}
    return Content({key: value.encode() for key, value in data.items()}, binary)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:  # the server admits none
        return b""
