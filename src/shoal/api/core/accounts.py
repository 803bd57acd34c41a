"""Service accounts and secrets."""

from __future__ import annotations

from shoal.api.meta import Object, Resource, Wire


class SecretReference(Wire, frozen=True, kw_only=True):
    """A secret of the same namespace."""

    name: str = ""


class ServiceAccount(Object, frozen=True, kw_only=True):
    """An identity for what runs in pods."""

    secrets: list[SecretReference] = []
    image_pull_secrets: list[SecretReference] = []


class Secret(Object, frozen=True, kw_only=True):
    """Something that few may read; the values are in base64."""

    type: str = ""
    data: dict[str, str] = {}


SECRETS = Resource(type=Secret, group="", version="v1", kind="Secret", plural="secrets")
SERVICE_ACCOUNTS = Resource(
    type=ServiceAccount, group="", version="v1", kind="ServiceAccount", plural="serviceaccounts"
)
