"""The cluster's keyring as files that kube-apiserver and its companions can be pointed at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from shoal.cluster.keyring import KUBELET_CLIENT, MASTERS, Keyring, TokenKey, write_private
from shoal.kube.certificates import KeyPair


class Credentials:
    """The keys and certificates of one cluster, in a folder of mode 0700."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._keyring = Keyring(folder, now=datetime.now(UTC))
        self.token_file = folder / "tokens.csv"
        """The static tokens that the API server reads at its start: the admin's alone."""
        write_private(self.token_file, f'{self.admin_token},admin,admin,"{MASTERS}"\n')

    @property
    def admin_token(self) -> str:
        """The bearer token of the cluster's administrator."""
        return self._keyring.admin_token

    @property
    def user_tokens(self) -> TokenKey:
        """Makes tokens for any user."""
        return self._keyring.user_tokens

    @property
    def authority(self) -> bytes:
        """The certificate that signs all others, PEM."""
        return self._keyring.authority

    @property
    def authority_file(self) -> Path:
        """Where clients find the authority's certificate."""
        return self._keyring.authority_file

    @property
    def authority_key(self) -> Path:
        """The authority's private key, for the part that signs certificate requests."""
        return self._keyring.authority_key

    @property
    def service_account_key(self) -> Path:
        """The key that signs service account tokens."""
        return self._keyring.service_account_key

    def serving_files(self, names: Sequence[str]) -> tuple[Path, Path]:
        """A certificate and key for a server of these names and addresses."""
        self._keyring.serving(names, now=datetime.now(UTC))
        return self._keyring.serving_files

    def kubelet_client_files(self) -> tuple[Path, Path]:
        """A new certificate and key that the API server signs in to kubelets with."""
        pair = self.client(KUBELET_CLIENT, [MASTERS])
        certificate, key = self._folder / "kubelet-client.crt", self._folder / "kubelet-client.key"
        write_private(certificate, pair.certificate)
        write_private(key, pair.key)
        return certificate, key

    def client(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """A new client certificate that makes its holder this user of these groups."""
        return self._keyring.client(user, groups, now=datetime.now(UTC))
