"""All that the API server keeps secret, in its data dir, and what it shows of it to those who connect."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from shoal.cluster.apiserver.access.tokens import TokenSigner
from shoal.cluster.keyring import Keyring, TokenKey, kubeconfig
from shoal.kube.certificates import KeyPair, load_into


class Credentials:
    """The keys of one cluster, and the certificate that its server has today."""

    def __init__(self, keyring: Keyring, serving: KeyPair) -> None:
        self._keyring = keyring
        self._serving = serving
        self.signer = TokenSigner(keyring.signing_key)
        """Signs and reads ServiceAccount tokens."""

    @classmethod
    def at(cls, folder: Path, *, names: Sequence[str], now: datetime) -> Credentials:
        """What the folder holds, made where it is missing; the server's certificate is for these names."""
        keyring = Keyring(folder, now=now)
        return cls(keyring, keyring.serving(names, now=now))

    @property
    def authority(self) -> bytes:
        """The certificate that signs all others, PEM: what clients trust, and what kube-root-ca.crt says."""
        return self._keyring.authority

    @property
    def admin_token(self) -> str:
        """The bearer token that makes its holder an administrator."""
        return self._keyring.admin_token

    @property
    def user_tokens(self) -> TokenKey:
        """Makes and reads tokens for any user."""
        return self._keyring.user_tokens

    def client(self, user: str, groups: Sequence[str] = (), *, now: datetime) -> KeyPair:
        """A new client certificate that makes its holder this user of these groups."""
        return self._keyring.client(user, groups, now=now)

    def server_context(self) -> ssl.SSLContext:
        """TLS for the server: version 1.2 or later; a client may show a certificate, which must be one of ours."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        load_into(context, self._serving)
        context.load_verify_locations(cadata=self.authority.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        return context

    def kubeconfig(self, server: str) -> str:
        """The administrator's kubeconfig for this address, with everything in it."""
        return kubeconfig(server, authority=self.authority, user="admin", sign_in=self.admin_token)
