"""Chooses among kubeconfig files, contexts and the pod's own account, and makes a ``Connection`` of the choice.

One file that is named, or else those of KUBECONFIG, or else ``~/.kube/config``; where none says anything, the account
of the pod. As with kubectl, credentials are never sent over plain HTTP: to a server without TLS the user is nobody.

One thing is ours: a cluster's ``server`` may be ``unix:///path/of/a/socket``.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from shoal.kube.connection import Connection
from shoal.kube.credentials import anonymous
from shoal.kube.http.proxies import ProxyError, parse_proxy
from shoal.kube.in_cluster import SERVICE_ACCOUNT, NotInCluster, in_cluster_connection
from shoal.kube.kubeconfig.files import ClusterEntry, Entry, Kubeconfig, KubeconfigError, Place, merge, read_file
from shoal.kube.kubeconfig.users import user_credentials, user_impersonation
from shoal.kube.tls import Tls, TlsError, check_authorities

V = TypeVar("V")

EXEC_EXTENSION = "client.authentication.k8s.io/exec"


def load_connection(
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """The cluster that a kubeconfig names, or the one this process runs in; raises KubeconfigError.

    A file or a context that is asked for must be there: only where neither is, the pod's account is tried.
    """
    files, missing = kubeconfig_files(kubeconfig, environ)
    merged = merge(read_file(file) for file in files)
    if not merged.is_empty:
        return choose(merged, context)
    tried = missing + [f"{file} says nothing" for file in files]
    if kubeconfig is not None or context:
        wanted = f'context "{context}"' if context else "cluster"
        raise KubeconfigError(f"found no {wanted} ({'; '.join(tried)}): name a kubeconfig that has one")
    try:
        return in_cluster_connection(environ=environ, service_account=service_account)
    except NotInCluster as error:
        tried.append(f"this is no pod with a service account: {error}")
    raise KubeconfigError(
        f"found no cluster ({'; '.join(tried)}): "
        "name a kubeconfig, set KUBECONFIG, or run in a pod with a service account"
    )


def kubeconfig_files(
    kubeconfig: str | os.PathLike[str] | None, environ: Mapping[str, str]
) -> tuple[list[Path], list[str]]:
    """The files there are, in order of precedence, and what was looked for in vain."""
    tried = []
    if kubeconfig is not None:
        named = [Path(kubeconfig)]
    elif listed := environ.get("KUBECONFIG"):
        named = [Path(name) for name in dict.fromkeys(listed.split(os.pathsep)) if name]
    else:
        home = environ.get("HOME")
        named = [(Path(home) if home else Path.home()) / ".kube" / "config"]
        tried = ["KUBECONFIG is not set"]
    found = [file for file in named if file.exists()]
    return found, tried + [f"{file} does not exist" for file in named if file not in found]


def choose(config: Kubeconfig, context: str | None = None) -> Connection:
    """The connection of one context: the one named, or the current one."""
    where = ", ".join(map(str, config.files))
    name = context or config.current_context
    known = ", ".join(sorted(config.contexts)) or "none"
    if not name:
        raise KubeconfigError(
            f"{where}: current-context is not set: name a context (there are: {known}) "
            "or set one with kubectl config use-context"
        )
    if name not in config.contexts:
        raise KubeconfigError(f'{where}: there is no context "{name}" (there are: {known})')
    chosen = config.contexts[name]
    cluster = _referred(chosen.place, "cluster", chosen.value.cluster, config.clusters)
    tls = cluster_tls(cluster)
    server = cluster_server(cluster)
    credentials, impersonation = anonymous(), None
    if chosen.value.user:
        user = _referred(chosen.place, "user", chosen.value.user, config.users)
        credentials = user_credentials(user, lambda: told_of_cluster(cluster.value, server, tls))
        impersonation = user_impersonation(user)
        if server.startswith("http://"):
            credentials = anonymous()
    return Connection(
        server=server,
        tls=tls,
        proxy=cluster_proxy(cluster),
        namespace=chosen.value.namespace or "default",
        credentials=credentials,
        impersonation=impersonation,
        compression=not cluster.value.disable_compression,
        origin=f"context {name} of {chosen.place.file}",
    )


def cluster_server(cluster: Entry[ClusterEntry]) -> str:
    """The server's URL, whole; one without a scheme gets HTTPS where anything is said of TLS, as with kubectl."""
    entry = cluster.value
    if not entry.server:
        raise cluster.place.error("server", "must be given, as https://host:port or unix:///path/of/a/socket")
    server = entry.server
    if "://" not in server:
        says_tls = entry.certificate_authority or entry.certificate_authority_data or entry.insecure_skip_tls_verify
        server = f"{'https' if says_tls else 'http'}://{server}"
    try:
        parts = urlsplit(server)
        valid = (parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0) or (
            parts.scheme == "unix" and not parts.netloc and parts.path.startswith("/")
        )
    except ValueError:
        valid = False
    if not valid:
        raise cluster.place.error(
            "server", f'is "{entry.server}", must be https://host:port, http://host:port or unix:///path/of/a/socket'
        )
    if parts.scheme == "unix":
        return f"unix://{parts.path}"
    return parts._replace(query="", fragment="").geturl().rstrip("/")


def cluster_tls(cluster: Entry[ClusterEntry]) -> Tls:
    """What the cluster's certificate must show."""
    place, entry = cluster.place, cluster.value
    authorities = place.content(
        "certificate-authority", path=entry.certificate_authority, data=entry.certificate_authority_data
    )
    if authorities is not None and entry.insecure_skip_tls_verify:
        raise place.error("insecure-skip-tls-verify", "makes certificate-authority void: keep one of the two")
    try:
        if authorities is not None:
            check_authorities(authorities)
    except TlsError as error:
        raise place.error("certificate-authority", str(error)) from error
    return Tls(
        authorities=authorities,
        insecure=entry.insecure_skip_tls_verify,
        server_name=entry.tls_server_name or None,
    )


def cluster_proxy(cluster: Entry[ClusterEntry]) -> str | None:
    """The URL of the proxy that leads to the cluster, where its entry names one."""
    url = cluster.value.proxy_url
    try:
        if url:
            parse_proxy(url)
    except ProxyError as error:
        raise cluster.place.error("proxy-url", str(error)) from None
    return url or None


def told_of_cluster(entry: ClusterEntry, server: str, tls: Tls) -> dict[str, Any]:
    """The cluster as an exec plugin is told of it."""
    told: dict[str, Any] = {"server": server}
    if tls.server_name:
        told["tls-server-name"] = tls.server_name
    if tls.insecure:
        told["insecure-skip-tls-verify"] = True
    if tls.authorities is not None:
        told["certificate-authority-data"] = b64encode(tls.authorities).decode("ascii")
    if entry.proxy_url:
        told["proxy-url"] = entry.proxy_url
    if entry.disable_compression:
        told["disable-compression"] = True
    told["config"] = next((each.extension for each in entry.extensions if each.name == EXEC_EXTENSION), None)
    return told


def _referred(place: Place, kind: str, name: str, entries: Mapping[str, Entry[V]]) -> Entry[V]:
    if not name:
        raise place.error(kind, "must be given")
    if name not in entries:
        known = ", ".join(sorted(entries)) or "none"
        raise place.error(kind, f'there is no {kind} "{name}" (there are: {known})')
    return entries[name]
