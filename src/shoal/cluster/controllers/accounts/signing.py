"""Tokens that lie in Secrets: who makes them, and how that is done with the keys in a cluster's data dir."""

from __future__ import annotations

from typing import Protocol

from shoal.cluster.apiserver.access.tokens import TokenSigner
from shoal.cluster.keyring import Keyring


class Signer(Protocol):
    """Makes the token of an account that lies in a Secret."""

    def __call__(self, *, namespace: str, account: str, uid: str, secret: str) -> str:
        """The token of the account of this name and uid, for the Secret of this name."""
        ...


def signer_of(keyring: Keyring) -> Signer:
    """Signs with the key that the cluster's API server checks tokens with."""
    return TokenSigner(keyring.signing_key).legacy_token
