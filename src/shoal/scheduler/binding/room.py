"""Where reservations live: their namespace, their account, and its right to say which device a pod was given."""

from __future__ import annotations

from typing import Any

from shoal.api.core import NAMESPACES, SERVICE_ACCOUNTS
from shoal.api.meta import Resource
from shoal.api.rbac import ROLE_BINDINGS, ROLES
from shoal.kube import AlreadyExists, Client
from shoal.scheduler.binding.settings import ReservationSettings


def reservation_room(settings: ReservationSettings) -> list[tuple[Resource[Any], dict[str, Any]]]:
    """The objects without which no reservation can be made, in the order in which they are."""
    named = {"name": settings.account, "namespace": settings.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": settings.account}
    account = {"kind": "ServiceAccount", **named}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "patch"]}]
    return [
        (NAMESPACES, {"metadata": {"name": settings.namespace}}),
        (SERVICE_ACCOUNTS, {"metadata": named}),
        (ROLES, {"metadata": named, "rules": rules}),
        (ROLE_BINDINGS, {"metadata": named, "roleRef": role, "subjects": [account]}),
    ]


async def make_room(client: Client, settings: ReservationSettings) -> None:
    """Makes what is missing of it."""
    for resource, body in reservation_room(settings):
        try:
            await client.create(resource.documents(), body, settings.namespace if resource.namespaced else "")
        except AlreadyExists:
            continue
