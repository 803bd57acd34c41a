"""The keys and certificates of one cluster, made on first use and found again later."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from shoal.cluster.keyring.private_files import kept, write_private
from shoal.cluster.keyring.user_tokens import TokenKey
from shoal.kube.certificates import (
    CertificateError,
    KeyPair,
    covers,
    is_issued_by,
    is_matching,
    is_valid_at,
    make_authority,
    make_client,
    make_serving,
    needs_rotation,
)

AUTHORITY_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=1095)
MASTERS = "system:masters"
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
"""As whom an API server signs in to kubelets."""


class Keyring:
    """A folder of mode 0700 with files of mode 0600.

    The authority, the admin's token and the signing keys stay, so that a kubeconfig goes on working after a restart.
    """

    def __init__(self, folder: Path, *, now: datetime) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        self._folder = folder
        self._authority = self._kept_authority(now)
        self.admin_token = kept(folder / "admin.token", lambda: secrets.token_urlsafe(32).encode()).decode()
        self.user_tokens = TokenKey(kept(folder / "user-tokens.key", lambda: secrets.token_bytes(32)))
        self.signing_key = kept(self.service_account_key, _signing_key)

    @property
    def authority(self) -> bytes:
        """The certificate that signs all others, PEM."""
        return self._authority.certificate

    @property
    def authority_file(self) -> Path:
        """Where clients find the authority's certificate."""
        return self._folder / "ca.crt"

    @property
    def authority_key(self) -> Path:
        """The authority's private key, for the part that signs certificate requests."""
        return self._folder / "ca.key"

    @property
    def service_account_key(self) -> Path:
        """The key that signs service account tokens."""
        return self._folder / "service-account.key"

    @property
    def serving_files(self) -> tuple[Path, Path]:
        """Where the server's certificate and its key lie."""
        return self._folder / "server.crt", self._folder / "server.key"

    def serving(self, names: Sequence[str], *, now: datetime) -> KeyPair:
        """A server's certificate for these names and addresses: the one kept, or a new one where that will not do."""
        certificate, key = self.serving_files
        found = _found(certificate, key)
        if found is not None and self._fits(found, names, now):
            return found
        made = self.new_serving(names, now=now)
        write_private(key, made.key)
        write_private(certificate, made.certificate)
        return made

    def new_serving(self, names: Sequence[str], *, now: datetime) -> KeyPair:
        """A new certificate for a server of these names and addresses, which is kept nowhere."""
        return make_serving(self._authority, names, now=now, lifetime=LEAF_LIFETIME)

    def client(self, user: str, groups: Sequence[str] = (), *, now: datetime) -> KeyPair:
        """A new client certificate that makes its holder this user of these groups."""
        return make_client(self._authority, user, groups, now=now, lifetime=LEAF_LIFETIME)

    def _fits(self, pair: KeyPair, names: Sequence[str], now: datetime) -> bool:
        return (
            is_issued_by(pair.certificate, self.authority)
            and covers(pair.certificate, names)
            and is_valid_at(pair.certificate, now)
            and not needs_rotation(pair.certificate, now)
        )

    def _kept_authority(self, now: datetime) -> KeyPair:
        found = _found(self.authority_file, self.authority_key)
        if found is not None and is_valid_at(found.certificate, now + LEAF_LIFETIME):
            return found
        made = make_authority("shoal", now=now, lifetime=AUTHORITY_LIFETIME)
        write_private(self.authority_key, made.key)
        write_private(self.authority_file, made.certificate)
        return made


def _found(certificate: Path, key: Path) -> KeyPair | None:
    """What two files hold, where they are there and belong together: a crash may have left one of them."""
    try:
        pair = KeyPair(certificate.read_bytes(), key.read_bytes())
        return pair if is_matching(pair) else None
    except (FileNotFoundError, CertificateError):
        return None


def _signing_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
