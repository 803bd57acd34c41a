"""The default account and the authority's certificate, which every active namespace has."""

from __future__ import annotations

from typing import Any

from shoal.api.core import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, ConfigMap
from shoal.kube import AlreadyExists, ApiError, Change, Controller, Key, Manager, NotFound, Watch

DEFAULT = "default"
AUTHORITY = "kube-root-ca.crt"
DESCRIPTION_KEY = "kubernetes.io/description"
DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)
_ONLY_AUTHORITY = f"metadata.name={AUTHORITY}"


class Residents:
    """Makes what is missing in namespaces, and mends what was changed."""

    def __init__(self, manager: Manager, *, authority: bytes | None) -> None:
        self._client = manager.client
        self._authority = authority.decode() if authority is not None else None
        self._namespaces = manager.cache.informer(NAMESPACES)
        self._accounts = manager.cache.informer(SERVICE_ACCOUNTS)
        self._maps = manager.cache.informer(CONFIG_MAPS, field_selector=_ONLY_AUTHORITY)
        self.controller = Controller(
            "serviceaccount",
            NAMESPACES,
            self.reconcile,
            watches=[
                Watch(resource=SERVICE_ACCOUNTS, keys=_namespace_of, when=_is_default_gone),
                Watch(resource=CONFIG_MAPS, keys=_namespace_of, field_selector=_ONLY_AUTHORITY),
            ],
        )

    async def reconcile(self, key: Key) -> None:
        """Gives a namespace what it should have."""
        namespace = self._namespaces.store.get(key)
        if namespace is None or namespace.status.phase != "Active":
            return
        if self._accounts.get(DEFAULT, key.name) is None:
            await self._make(SERVICE_ACCOUNTS, {"metadata": {"name": DEFAULT}}, key.name)
        if self._authority is None:
            return
        found = self._maps.get(AUTHORITY, key.name)
        if found is None:
            metadata = {"name": AUTHORITY, "annotations": {DESCRIPTION_KEY: DESCRIPTION}}
            await self._make(CONFIG_MAPS, {"metadata": metadata, "data": {"ca.crt": self._authority}}, key.name)
        elif (patch := mended(found, self._authority)) is not None:
            await self._client.merge_patch(CONFIG_MAPS, AUTHORITY, patch, key.name)

    async def _make(self, resource: Any, body: dict[str, Any], namespace: str) -> None:
        try:
            await self._client.create(resource, body, namespace)
        except (AlreadyExists, NotFound):
            return  # somebody else made it, or the namespace has gone
        except ApiError as error:
            if not error.has_cause("NamespaceTerminating"):
                raise


def mended(found: ConfigMap, authority: str) -> dict[str, Any] | None:
    """The merge patch that makes a ConfigMap say the authority and nothing else; None where it does."""
    if found.data == {"ca.crt": authority} and found.metadata.annotations.get(DESCRIPTION_KEY):
        return None
    foreign = {name: None for name in found.data if name != "ca.crt"}
    return {
        "metadata": {
            "resourceVersion": found.metadata.resource_version,
            "annotations": {DESCRIPTION_KEY: DESCRIPTION},
        },
        "data": {**foreign, "ca.crt": authority},
    }


def _namespace_of(found: Any) -> list[Key]:
    return [Key("", found.metadata.namespace)]


def _is_default_gone(change: Change[Any]) -> bool:
    return change.after is None and change.latest.metadata.name == DEFAULT
