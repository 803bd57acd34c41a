"""What the parts and users of one cluster prove themselves with, kept in its data dir.

The authority, the admin's token and the signing keys are made once and found again, so that a kubeconfig goes on
working after a restart. Serving certificates are made anew at each start, for the addresses of that start.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from shoal.cluster.kubernetes.private_files import kept, write_private
from shoal.cluster.kubernetes.user_tokens import TokenKey
from shoal.kube.certificates import KeyPair, is_matching, is_valid_at, make_authority, make_client, make_serving

AUTHORITY_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=1095)
MASTERS = "system:masters"


class Credentials:
    """The keys and certificates of one cluster, in a folder of mode 0700."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        self._folder = folder
        self._authority = self._kept_authority()
        self.admin_token = kept(folder / "admin.token", lambda: secrets.token_urlsafe(32).encode()).decode()
        self.user_tokens = TokenKey(kept(folder / "user-tokens.key", lambda: secrets.token_bytes(32)))
        kept(self.service_account_key, _signing_key)
        write_private(self.token_file, f'{self.admin_token},admin,admin,"{MASTERS}"\n')

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
    def token_file(self) -> Path:
        """The static tokens that the API server reads at its start: the admin's alone."""
        return self._folder / "tokens.csv"

    def serving_files(self, names: Sequence[str]) -> tuple[Path, Path]:
        """A new certificate and key for a server of these names and addresses."""
        pair = make_serving(self._authority, names, now=datetime.now(UTC), lifetime=LEAF_LIFETIME)
        certificate, key = self._folder / "server.crt", self._folder / "server.key"
        write_private(certificate, pair.certificate)
        write_private(key, pair.key)
        return certificate, key

    def client(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """A new client certificate that makes its holder this user of these groups."""
        return make_client(self._authority, user, groups, now=datetime.now(UTC), lifetime=LEAF_LIFETIME)

    def _kept_authority(self) -> KeyPair:
        if self.authority_file.exists() and self.authority_key.exists():
            found = KeyPair(self.authority_file.read_bytes(), self.authority_key.read_bytes())
            if is_matching(found) and is_valid_at(found.certificate, datetime.now(UTC) + LEAF_LIFETIME):
                return found
        made = make_authority("shoal", now=datetime.now(UTC), lifetime=AUTHORITY_LIFETIME)
        write_private(self.authority_key, made.key)
        write_private(self.authority_file, made.certificate)
        return made


def _signing_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
