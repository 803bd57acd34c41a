"""A certificate authority for tests: servers and clients that trust it are real in every other way."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Issued:
    """A certificate and its key, as PEM."""

    chain: bytes
    key: bytes

    def write(self, directory: Path, name: str) -> tuple[Path, Path]:
        chain, key = directory / f"{name}.crt", directory / f"{name}.key"
        chain.write_bytes(self.chain)
        key.write_bytes(self.key)
        return chain, key


class Authority:
    """Issues certificates for names, addresses and users."""

    def __init__(self, name: str = "test authority", *, under: Authority | None = None) -> None:
        """One that signs itself, or is signed by the one it stands ``under``."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        above = under or self
        # As bare as many clusters' own CAs: no key usage, no key identifiers.
        self._certificate = (
            _builder(self._name, above._name, self._key.public_key(), timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(above._key, hashes.SHA256())
        )
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self, common_name: str, *, hosts: tuple[str, ...] = (), lifetime: timedelta = timedelta(hours=1)
    ) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(common_name), self._name, key.public_key(), lifetime)
        if hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Issued(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))

    def server_context(self, directory: Path, *, hosts: tuple[str, ...], clients: bool = False) -> ssl.SSLContext:
        """What a server uses; with ``clients`` it insists on certificates of this authority."""
        chain, key = self.issue("server", hosts=hosts).write(directory, "server")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self.pem.decode())
        return context


def encrypted(issued: Issued, passphrase: bytes) -> Issued:
    """The same with a key that asks for a passphrase."""
    key = serialization.load_pem_private_key(issued.key, None)
    encryption = serialization.BestAvailableEncryption(passphrase)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    return Issued(issued.chain, pem)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + lifetime)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
