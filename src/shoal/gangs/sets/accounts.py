"""The account under which the pods of a set wait for each other: it may look at pods, and has a token in a Secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.api import rbac
from shoal.api.core import SECRETS, SERVICE_ACCOUNTS
from shoal.api.grove import PodCliqueSet, names
from shoal.api.meta import Document, Resource

Body = dict[str, Any]

TOKEN_TYPE = "kubernetes.io/service-account-token"  # noqa: S105 - a type, no secret
ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"


def service_account(pcs: PodCliqueSet) -> Body:
    """The account."""
    name = names.service_account(pcs.metadata.name)
    body = _object(pcs, SERVICE_ACCOUNTS, name, names.SERVICE_ACCOUNT_COMPONENT)
    return {**body, "automountServiceAccountToken": True}


def role(pcs: PodCliqueSet) -> Body:
    """What the account may do."""
    body = _object(pcs, rbac.ROLES, names.role(pcs.metadata.name), names.ROLE_COMPONENT)
    rule = {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}
    return {**body, "rules": [rule]}


def role_binding(pcs: PodCliqueSet) -> Body:
    """Gives the role to the account."""
    metadata = pcs.metadata
    name = names.role(metadata.name)
    account = names.service_account(metadata.name)
    return {
        **_object(pcs, rbac.ROLE_BINDINGS, name, names.ROLE_BINDING_COMPONENT),
        "roleRef": {"apiGroup": rbac.GROUP, "kind": rbac.ROLES.kind, "name": name},
        "subjects": [{"kind": SERVICE_ACCOUNTS.kind, "name": account, "namespace": metadata.namespace}],
    }


def token_secret(pcs: PodCliqueSet) -> Body:
    """The Secret that the cluster puts the account's token in."""
    name = names.token_secret(pcs.metadata.name)
    body = _object(pcs, SECRETS, name, names.TOKEN_SECRET_COMPONENT)
    annotations = {ACCOUNT_ANNOTATION: names.service_account(pcs.metadata.name)}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}, "type": TOKEN_TYPE}


def has_token(secret: Document | None) -> bool:
    """Whether the cluster has put a token in."""
    data: Mapping[str, str] = (secret.content.get("data") or {}) if secret is not None else {}
    return bool(data.get("token"))


def _object(pcs: PodCliqueSet, resource: Resource[Any], name: str, component: str) -> Body:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "namespace": pcs.metadata.namespace,
            "labels": names.component_labels(pcs.metadata.name, name, component),
        },
    }
