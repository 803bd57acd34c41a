"""Bearer tokens for any user and groups, while the API server runs.

A token here carries its user and groups, signed with a key of the cluster's; whoever holds the key only checks the
signature. So making a token is a calculation, and tokens outlive restarts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass

_PREFIX = "shoal-user-"


@dataclass(frozen=True)
class User:
    """Whom a token stands for."""

    name: str
    groups: tuple[str, ...] = ()


class TokenKey:
    """Signs and reads the tokens of one cluster."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def token(self, name: str, groups: Sequence[str] = ()) -> str:
        """A token for this user; the same one each time."""
        claims = _text(json.dumps({"user": name, "groups": list(groups)}).encode())
        return f"{_PREFIX}{claims}.{self._signature(claims)}"

    def user(self, token: str) -> User | None:
        """Whom the token stands for, or None where it is not ours."""
        claims, dot, signature = token.removeprefix(_PREFIX).partition(".")
        if not token.startswith(_PREFIX) or not dot:
            return None
        if not hmac.compare_digest(signature.encode(), self._signature(claims).encode()):
            return None
        try:
            read = json.loads(base64.urlsafe_b64decode(claims))
        except (binascii.Error, ValueError):
            return None
        return User(read["user"], tuple(read["groups"]))

    def _signature(self, claims: str) -> str:
        return _text(hmac.digest(self._secret, claims.encode(), hashlib.sha256))


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode()
