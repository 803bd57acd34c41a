"""Where a cluster is and how to sign in: what every way of finding one (kubeconfig, a pod's account) results in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shoal.kube.credentials import Credentials, anonymous
from shoal.kube.tls import Tls


@dataclass(frozen=True, kw_only=True)
class Impersonation:
    """Whom to act as; the server checks that the one who signed may."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def headers(self) -> list[tuple[str, str]]:
        """The request headers that say so; groups and extras repeat theirs."""
        headers = [("Impersonate-User", self.user)]
        if self.uid:
            headers.append(("Impersonate-Uid", self.uid))
        headers += [("Impersonate-Group", group) for group in self.groups]
        for key, values in self.extra.items():
            headers += [(f"Impersonate-Extra-{_header_name(key)}", value) for value in values]
        return headers


@dataclass(frozen=True, kw_only=True)
class Connection:
    """One API server, and who we are there."""

    server: str
    """``https://host:port``, perhaps with a path before the API's, or ``unix:///path/of/a/socket``."""
    tls: Tls = Tls()
    proxy: str | None = field(default=None, repr=False)
    """The proxy to go through, whatever the environment says; None leaves it to the environment."""
    namespace: str = "default"
    """Where objects are looked for when nothing else is said."""
    credentials: Credentials = field(default_factory=anonymous)
    impersonation: Impersonation | None = None
    compression: bool = True
    """Whether the server may compress its answers."""
    origin: str = ""
    """Where this was found, for messages: ``context dev of /home/ann/.kube/config``."""


def _header_name(key: str) -> str:
    legal = "!#$&'*+-.^_`|~"
    return "".join(char if char.isascii() and (char.isalnum() or char in legal) else _percent(char) for char in key)


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())
