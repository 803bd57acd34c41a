"""Who may look: anybody, or those who have a token."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection

Accepts = Callable[[str], bool]
"""Says whether a bearer token is a good one."""


def bearer_tokens(tokens: Collection[str]) -> Accepts:
    """Accepts any of some tokens, and tells by the time it takes nothing about them."""
    known = [token.encode() for token in tokens if token]

    def accepts(presented: str) -> bool:
        given = presented.encode(errors="replace")
        return sum(hmac.compare_digest(given, token) for token in known) > 0  # all are compared, whichever it is

    return accepts


def bearer_token(authorization: str) -> str:
    """The token of an Authorization header; nothing where it has none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
