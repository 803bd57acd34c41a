"""Who may use an agent on a port: API servers of the cluster, and its administrators.

A socket's folder says who may use it. A port is open to everybody on the machine, so whoever comes there shows a client
certificate of the cluster's authority, as API servers do to kubelets. Nobody else has business with agents: what people
may do in pods is for the API server to decide.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aiohttp import web

from shoal.cluster.keyring import KUBELET_CLIENT, MASTERS, Keyring
from shoal.cluster.node.kubelet.answers import Refused
from shoal.kube.certificates import load_into


@dataclass(frozen=True, kw_only=True)
class SecurePort:
    """A port that is listened on already, and what it is guarded by."""

    listener: socket.socket
    tls: ssl.SSLContext

    @property
    def number(self) -> int:
        """Its number."""
        number: int = self.listener.getsockname()[1]
        return number


def secure(listener: socket.socket, keyring: Keyring, *, now: datetime) -> SecurePort:
    """Guards a port with a new certificate of the cluster's authority for the address that is listened on."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=keyring.authority.decode())
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    # As with kubelets, one who shows nothing is told so in words.
    tls.verify_mode = ssl.CERT_OPTIONAL
    load_into(tls, keyring.new_serving([listener.getsockname()[0]], now=now))
    return SecurePort(listener=listener, tls=tls)


def check_access(request: web.Request) -> None:
    """Raises Refused where a request came on a port, from somebody who may not use it."""
    session = _session(request)
    if session is None:
        return
    certificate = session.getpeercert()
    if not certificate:
        raise Refused(401, "Unauthorized")
    subject = _subject(certificate)
    if KUBELET_CLIENT not in subject.get("commonName", ()) and MASTERS not in subject.get("organizationName", ()):
        user = " ".join(subject.get("commonName", ()))
        raise Refused(403, f'user "{user}" may not use this agent: ask the API server')


def is_by_port(request: web.Request) -> bool:
    """Whether a request came on a port, and so from an API server that takes us for a kubelet."""
    return _session(request) is not None


def _session(request: web.Request) -> ssl.SSLObject | None:
    session: ssl.SSLObject | None = request.get_extra_info("ssl_object")
    return session


def _subject(certificate: Mapping[str, Any]) -> dict[str, list[str]]:
    """What a certificate says of its holder."""
    found: dict[str, list[str]] = {}
    for relative in certificate.get("subject", ()):
        for name, value in relative:
            found.setdefault(name, []).append(value)
    return found
