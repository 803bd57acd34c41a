"""What secures a connection: whom we trust, who we are, and the SSL context made of both.

Trust follows Go's rules, since clusters are built by Go programs: a CA that is given replaces the system's, any
certificate in it is an anchor (an intermediate too), and the strict checks that newer Pythons switch on are left off,
for many clusters' own CAs lack the extensions they demand.
"""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from datetime import datetime


class TlsError(Exception):
    """A certificate or a key cannot be used."""


@dataclass(frozen=True)
class ClientCertificate:
    """A certificate chain and its private key, both as PEM."""

    chain: bytes
    key: bytes = field(repr=False)

    def expires(self) -> datetime:
        """When the certificate itself (not those above it) ends."""
        from cryptography import x509  # noqa: PLC0415 - costs much to import, and few sign in with a certificate

        try:
            return x509.load_pem_x509_certificate(self.chain).not_valid_after_utc
        except ValueError as error:
            raise TlsError(f"the client certificate is not PEM: {error}") from error


@dataclass(frozen=True, kw_only=True)
class Tls:
    """How a server proves itself."""

    authorities: bytes | None = None
    """PEM of the CAs to trust in place of the system's."""
    insecure: bool = False
    """Trust any certificate."""
    server_name: str | None = None
    """The name that the certificate must carry, where it is not the host of the URL."""


def client_context(tls: Tls, certificate: ClientCertificate | None = None) -> ssl.SSLContext:
    """The context for connections that trust by ``tls`` and present ``certificate``; raises TlsError."""
    context = ssl.create_default_context(cadata=_authorities(tls))
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        load_certificate(context, certificate)
    return context


def check_authorities(authorities: bytes) -> None:
    """Raises TlsError where no CA can be read of this PEM."""
    client_context(Tls(authorities=authorities))


def check_certificate(certificate: ClientCertificate) -> None:
    """Raises TlsError where certificate and key cannot be read or do not belong together."""
    load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)


def load_certificate(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """Gives a context its client certificate.

    OpenSSL's binding reads files only, so the PEM is in one for that moment: readable by its owner alone (as
    ``tempfile`` makes them), and gone before this returns.
    """
    with tempfile.NamedTemporaryFile(prefix="shoal-", suffix=".pem") as file:
        file.write(certificate.chain.rstrip() + b"\n" + certificate.key)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise TlsError(f"the client certificate and its key cannot be used: {_reason(error)}") from error


def _authorities(tls: Tls) -> str | None:
    if tls.insecure or tls.authorities is None:
        return None
    try:
        text = tls.authorities.decode("ascii")
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (UnicodeDecodeError, ssl.SSLError, ValueError) as error:
        raise TlsError(f"the certificate authority is not PEM: {_reason(error)}") from error
    return text


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal.
    raise ValueError("the key is encrypted; store it without a passphrase")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return str(error) or type(error).__name__
