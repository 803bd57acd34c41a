"""Tokens of pods' accounts: asked for once, given to every volume that wants them, renewed well before their end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import msgspec
import structlog

from shoal.api.core import SERVICE_ACCOUNTS
from shoal.api.core.pod_details import PodDetails, TokenSource
from shoal.api.meta import Wire
from shoal.cluster.node.process.contents.problems import Missing
from shoal.kube import ApiError, Client, ConnectionFault
from shoal.kube.errors import error_from_response
from shoal.kube.transport import Request

log = structlog.get_logger("shoal.cluster.node.process")

_LONGEST = 24 * 3600.0
"""A token that lives longer is renewed every day."""
_SPENT = 0.8
_AGAIN_AFTER = 30.0
"""Between two tries to renew a token that is still good."""
_WITHIN = 30.0


class TokenKey(NamedTuple):
    """What makes two tokens of a pod the same."""

    account: str
    audience: str
    seconds: int


@dataclass(slots=True)
class _Token:
    text: str
    expires: float
    due: float
    """When to ask for the next one."""


class _RequestSpec(Wire, frozen=True, kw_only=True):
    expiration_seconds: int = 3600


class _RequestStatus(Wire, frozen=True, kw_only=True):
    token: str
    expiration_timestamp: datetime


class _TokenRequest(Wire, frozen=True, kw_only=True):
    spec: _RequestSpec = _RequestSpec()
    status: _RequestStatus


class Tokens:
    """The tokens of the pods on this node; times are seconds since 1970."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._clock = clock
        self._held: dict[str, dict[TokenKey, _Token]] = {}

    async def token(self, pod: PodDetails, source: TokenSource) -> str:
        """The token for a source; a new one where there is none or it is due. Missing where none can be had."""
        key = TokenKey(pod.spec.service_account_name, source.audience, source.expiration_seconds)
        held = self._held.get(pod.metadata.uid, {}).get(key)
        now = self._clock()
        if held is not None and now < held.due:
            return held.text
        try:
            fresh = await self._request(pod, key)
        except (ApiError, ConnectionFault) as error:
            why = error.message if isinstance(error, ApiError) else str(error)
            if held is None:
                raise Missing(f"failed to fetch token: {why}") from error
            if now >= held.expires:
                raise Missing(f"token of account {key.account} expired and refresh failed: {why}") from error
            held.due = now + _AGAIN_AFTER
            log.warning("token not renewed: trying again", pod=str(pod.metadata.name), error=why)
            return held.text
        self._held.setdefault(pod.metadata.uid, {})[key] = fresh
        return fresh.text

    def seconds_until_due(self, uid: str) -> float | None:
        """When the next token of a pod is to be renewed; None where it has none."""
        held = self._held.get(uid)
        if not held:
            return None
        return max(0.0, min(token.due for token in held.values()) - self._clock())

    def forget(self, uid: str) -> None:
        """Forgets the tokens of a pod; the server takes them for void once the pod is gone."""
        self._held.pop(uid, None)

    async def _request(self, pod: PodDetails, key: TokenKey) -> _Token:
        metadata = pod.metadata
        bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata.name, "uid": metadata.uid}
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": [key.audience] if key.audience else [],
                "expirationSeconds": key.seconds,
                "boundObjectRef": bound,
            },
        }
        request = Request(
            method="POST",
            path=SERVICE_ACCOUNTS.path(metadata.namespace, key.account or "default", "token"),
            body=msgspec.json.encode(body),
            timeout=_WITHIN,
        )
        response = await self._client.transport.send(request)
        if response.status >= 300:
            raise error_from_response(response.status, response.body, request=str(request))
        try:
            answer = msgspec.json.decode(response.body, type=_TokenRequest)
        except msgspec.DecodeError as error:
            raise ConnectionFault(f"the answer is no TokenRequest: {error} ({request})") from error
        expires = answer.status.expiration_timestamp.timestamp()
        life = float(answer.spec.expiration_seconds)
        return _Token(answer.status.token, expires, expires - life + min(life * _SPENT, _LONGEST))
