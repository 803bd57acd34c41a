"""Secrets of the type kubernetes.io/service-account-token: filled while their account is there, removed with it.

A Secret names its account in an annotation, so the work goes by account: one reconcile looks at all Secrets of one.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Hashable, Iterable
from contextlib import suppress
from typing import Any

from shoal.api.core import SECRETS, SERVICE_ACCOUNTS, Secret, ServiceAccount
from shoal.cluster.controllers.accounts.signing import Signer
from shoal.kube import Change, Controller, Key, Manager, NotFound, Watch

ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
TOKENS = "type=kubernetes.io/service-account-token"
BY_ACCOUNT = "accounts.account"


def by_account(secret: Secret) -> Iterable[Hashable]:
    """Finds token Secrets by their account."""
    return _account_of(secret)


class Tokens:
    """Keeps the token Secrets of accounts."""

    def __init__(self, manager: Manager, *, authority: bytes, signer: Signer) -> None:
        self._client = manager.client
        self._authority = authority
        self._signer = signer
        self._accounts = manager.cache.informer(SERVICE_ACCOUNTS)
        self._secrets = manager.cache.informer(SECRETS, field_selector=TOKENS, indexes={BY_ACCOUNT: by_account})
        self._gone: dict[Key, set[str]] = {}
        self._secrets.subscribe(self._note_gone)
        self.controller = Controller(
            "serviceaccount-token",
            SERVICE_ACCOUNTS,
            self.reconcile,
            watches=[Watch(resource=SECRETS, keys=_account_of, field_selector=TOKENS)],
        )

    async def reconcile(self, key: Key) -> None:
        """Fills an account's Secrets, removes those of another one of its name, and forgets those that are gone."""
        account = self._accounts.store.get(key)
        secrets = [one for one in self._secrets.find(BY_ACCOUNT, key) if not one.metadata.is_deleting]
        if not all(is_of(secret, account) for secret in secrets):
            # Before a Secret is removed the server itself says that its account is not there.
            account = await self._live(key)
        for secret in secrets:
            if account is None or not is_of(secret, account):
                await self._remove(secret)
            elif patch := filled(secret, account, self._authority, self._signer):
                await self._patch(secret, patch)
        gone = frozenset(self._gone.get(key, ()))
        if account is not None:
            await self._forget(account, gone)
        self._settle(key, gone)

    async def _live(self, key: Key) -> ServiceAccount | None:
        try:
            return await self._client.get(SERVICE_ACCOUNTS, key.name, key.namespace)
        except NotFound:
            return None

    async def _remove(self, secret: Secret) -> None:
        metadata = secret.metadata
        with suppress(NotFound):
            await self._client.delete(SECRETS, metadata.name, metadata.namespace, uid=metadata.uid)

    async def _patch(self, secret: Secret, patch: dict[str, Any]) -> None:
        with suppress(NotFound):
            await self._client.merge_patch(SECRETS, secret.metadata.name, patch, secret.metadata.namespace)

    async def _forget(self, account: ServiceAccount, gone: Collection[str]) -> None:
        """Takes the names of Secrets that have gone off their account."""
        name, namespace = account.metadata.name, account.metadata.namespace
        lost = {secret for secret in gone if self._secrets.get(secret, namespace) is None}
        places = [place for place, one in enumerate(account.secrets) if one.name in lost]
        if not places:
            return
        tests = [
            {"op": "test", "path": f"/secrets/{place}/name", "value": account.secrets[place].name} for place in places
        ]
        removals = [{"op": "remove", "path": f"/secrets/{place}"} for place in reversed(places)]
        same = {"op": "test", "path": "/metadata/uid", "value": account.metadata.uid}
        await self._client.json_patch(SERVICE_ACCOUNTS, name, [same, *tests, *removals], namespace)

    def _note_gone(self, change: Change[Secret]) -> None:
        if change.after is None:
            for key in _account_of(change.latest):
                self._gone.setdefault(key, set()).add(change.latest.metadata.name)

    def _settle(self, key: Key, done: Collection[str]) -> None:
        """Drops what was dealt with; what went while that was written is for the next time."""
        left = self._gone.pop(key, set()).difference(done)
        if left:
            self._gone[key] = left


def is_of(secret: Secret, account: ServiceAccount | None) -> bool:
    """Whether a Secret is for this very account; one that says no uid is for whoever has the name."""
    if account is None:
        return False
    return secret.metadata.annotations.get(ACCOUNT_UID, "") in ("", account.metadata.uid)


def filled(secret: Secret, account: ServiceAccount, authority: bytes, signer: Signer) -> dict[str, Any] | None:
    """The merge patch that gives a Secret what it lacks; None where it lacks nothing."""
    identity = account.metadata
    data: dict[str, str] = {}
    if authority and secret.data.get("ca.crt", "") != _text(authority):
        data["ca.crt"] = _text(authority)
    if not secret.data.get("namespace"):
        data["namespace"] = _text(identity.namespace.encode())
    if not secret.data.get("token"):
        token = signer(
            namespace=identity.namespace, account=identity.name, uid=identity.uid, secret=secret.metadata.name
        )
        data["token"] = _text(token.encode())
    if not data:
        return None
    return {
        "metadata": {
            "resourceVersion": secret.metadata.resource_version,
            "annotations": {ACCOUNT_NAME: identity.name, ACCOUNT_UID: identity.uid},
        },
        "data": data,
    }


def _account_of(secret: Secret) -> list[Key]:
    name = secret.metadata.annotations.get(ACCOUNT_NAME, "")
    return [Key(secret.metadata.namespace, name)] if name else []


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
