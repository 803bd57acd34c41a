"""Whose a token is, asked of the API server, which alone knows whether it is still good.

A program reports every few seconds with the same token: what was found out is good for a little while.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from shoal.api.authentication_k8s_io import TOKEN_REVIEWS
from shoal.kube import Client

_ACCOUNT: Final = "system:serviceaccount:"
_REMEMBERED: Final = 10_000


class Tokens:
    """Finds out in which namespace the account is that a token was given to."""

    def __init__(self, client: Client, *, good_for: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._good_for = good_for
        self._clock = clock
        self._known: OrderedDict[tuple[bytes, str], tuple[float, str]] = OrderedDict()

    async def namespace(self, token: str, audience: str) -> str:
        """The namespace of the account; empty where the token is not good for this audience."""
        key = (hashlib.sha256(token.encode()).digest(), audience)
        known = self._known.get(key)
        if known is not None and self._clock() - known[0] < self._good_for:
            return known[1]
        found = await self._ask(token, audience)
        if found:
            self._known[key] = (self._clock(), found)
            self._known.move_to_end(key)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return found

    async def _ask(self, token: str, audience: str) -> str:
        question = {"spec": {"token": token, "audiences": [audience]}}
        answer = (await self._client.create(TOKEN_REVIEWS, question)).content.get("status") or {}
        name = str((answer.get("user") or {}).get("username", ""))
        # A server that does not know audiences would answer for its own.
        if not answer.get("authenticated") or audience not in (answer.get("audiences") or ()):
            return ""
        return name.removeprefix(_ACCOUNT).partition(":")[0] if name.startswith(_ACCOUNT) else ""
