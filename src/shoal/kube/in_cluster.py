"""The account that Kubernetes gives to a pod: the server by environment variables, the rest in mounted files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from shoal.kube.connection import Connection
from shoal.kube.credentials import token_file
from shoal.kube.tls import Tls, TlsError, check_authorities

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class NotInCluster(Exception):
    """This process does not run in a pod with an account; says what is missing."""


def in_cluster_connection(
    *, environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT
) -> Connection:
    """The connection of the pod that this process runs in; raises NotInCluster.

    The token is read again as it is rotated. The namespace is the pod's own.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise NotInCluster("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    token = service_account / "token"
    if not token.is_file():
        raise NotInCluster(f"{token} does not exist (does the pod set automountServiceAccountToken: false?)")
    return Connection(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        tls=Tls(authorities=_authorities(service_account / "ca.crt")),
        namespace=environ.get("POD_NAMESPACE") or _namespace(service_account / "namespace") or "default",
        credentials=token_file(token),
        origin="the pod's service account",
    )


def _authorities(path: Path) -> bytes | None:
    try:
        authorities = path.read_bytes()
        check_authorities(authorities)
    except FileNotFoundError:
        return None
    except (OSError, TlsError) as error:
        raise NotInCluster(f"{path}: {error}") from error
    return authorities


def _namespace(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
