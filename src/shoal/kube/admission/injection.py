"""Tells API servers whom to trust: writes our authorities into the objects that name our webhooks.

Level-triggered: what is there is read and compared each time, and written only where it differs, so that a second run
does nothing and a bundle that someone removed comes back. Only ``caBundle`` is touched. The patch first tests that the
entry is still the one that was read, since entries of a list are addressed by their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from shoal.api.meta.objects import Document, PartialObject
from shoal.api.meta.resource import Resource
from shoal.kube.admission.configuration import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_CONFIGURATIONS,
    VALIDATING_CONFIGURATIONS,
    Content,
    encoded_bundle,
)
from shoal.kube.admission.jsonpatch import Operation, pointer
from shoal.kube.cache import Cache
from shoal.kube.client import Client
from shoal.kube.errors import Conflict, Invalid, NotFound

log = structlog.get_logger("shoal.kube.admission.injection")

_TRIES = 5


class Injector:
    """Keeps the bundle in the named configurations, and in the conversion section of the named definitions."""

    def __init__(
        self,
        client: Client,
        *,
        mutating: Sequence[str] = (),
        validating: Sequence[str] = (),
        definitions: Sequence[str] = (),
    ) -> None:
        self._client = client
        self._targets = [
            *((MUTATING_CONFIGURATIONS, name) for name in mutating),
            *((VALIDATING_CONFIGURATIONS, name) for name in validating),
            *((CUSTOM_RESOURCE_DEFINITIONS, name) for name in definitions),
        ]

    def follow(self, cache: Cache, look_again: Callable[[], None]) -> None:
        """Calls back when one of the objects appears or changes, so that a bundle that was removed is soon back."""
        for resource, name in self._targets:
            informer = cache.informer(resource.view(PartialObject), field_selector=f"metadata.name={name}")
            informer.subscribe(lambda change: look_again())

    async def inject(self, authorities: bytes) -> int:
        """Writes the bundle wherever it is not; gives how many objects were written. One that is missing is skipped.

        An empty bundle is written nowhere: whoever made the certificates tells of their authority.
        """
        if not authorities:
            return 0
        written = [await self._inject_into(resource, name, authorities) for resource, name in self._targets]
        return sum(written)

    async def _inject_into(self, resource: Resource[Document], name: str, authorities: bytes) -> bool:
        for left in reversed(range(_TRIES)):
            try:
                target = await self._client.get(resource, name)
                operations = injection(target.content, authorities)
                if not operations:
                    return False
                await self._client.json_patch(resource, name, operations)
            except NotFound:
                log.warning("no such object to put our authorities into", resource=str(resource), name=name)
                return False
            except (Invalid, Conflict):
                # The test failed: someone else changed the object. What to do is decided on its new state.
                if not left:
                    raise
            else:
                log.info("authorities injected", resource=str(resource), name=name)
                return True
        return False


def injection(content: Content, authorities: bytes) -> list[Operation]:
    """The operations that put the bundle into a webhook configuration or a definition; none where it is there."""
    wanted = encoded_bundle(authorities)
    operations: list[Operation] = []
    for place, webhook in enumerate(content.get("webhooks") or []):
        if (webhook.get("clientConfig") or {}).get("caBundle") != wanted:
            entry = pointer("webhooks", place)
            operations += [
                {"op": "test", "path": entry + "/name", "value": webhook.get("name")},
                {"op": "add", "path": entry + "/clientConfig/caBundle", "value": wanted},
            ]
    conversion = (content.get("spec") or {}).get("conversion") or {}
    config = (conversion.get("webhook") or {}).get("clientConfig")
    if conversion.get("strategy") == "Webhook" and config is not None and config.get("caBundle") != wanted:
        operations += [
            {"op": "test", "path": "/spec/conversion/strategy", "value": "Webhook"},
            {"op": "add", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": wanted},
        ]
    return operations
