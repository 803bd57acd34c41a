"""Quotas of namespaces."""

from __future__ import annotations

from typing import Any

from shoal.api.meta import Object, Resource, ResourceList, Wire


class ResourceQuotaSpec(Wire, frozen=True, kw_only=True):
    """How much may be used, and of which objects."""

    hard: ResourceList = {}
    scopes: list[str] = []
    scope_selector: dict[str, Any] | None = None


class ResourceQuotaStatus(Wire, frozen=True, kw_only=True):
    """How much is used."""

    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(Object, frozen=True, kw_only=True):
    """A limit to what a namespace holds."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


RESOURCE_QUOTAS = Resource(type=ResourceQuota, group="", version="v1", kind="ResourceQuota", plural="resourcequotas")
