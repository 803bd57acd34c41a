"""Certificates of our own making: an authority, and what it signs for servers and clients.

Everything here is a function of its arguments: the time comes in as ``now``, certificates and keys are PEM bytes in and
out, so that they can be kept in a Secret, a directory or memory alike. Keys are ECDSA on P-256, which every TLS client
in use accepts and which costs a server least.

Certificates are dated a little back (``BACKDATED``), because the clock of the one who verifies may be behind ours.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATED = timedelta(minutes=5)
TWO_THIRDS = 2 / 3
_LONGEST_COMMON_NAME = 64


class CertificateError(Exception):
    """A certificate or key cannot be used; says which and why."""


@dataclass(frozen=True)
class KeyPair:
    """A certificate (or a chain, the leaf first) and the private key of its leaf, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def make_authority(name: str, *, now: datetime, lifetime: timedelta) -> KeyPair:
    """A new authority that signs itself and may sign servers' certificates, but no further authorities."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name)
    certificate = (
        _unsigned(subject, issuer=subject, key=key.public_key(), now=now, until=now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def make_serving(authority: KeyPair, names: Sequence[str], *, now: datetime, lifetime: timedelta) -> KeyPair:
    """A certificate for a server under these DNS names and IP addresses; it never outlives its authority."""
    if not names:
        raise CertificateError("a serving certificate needs at least one DNS name or IP address")
    names_extension = x509.SubjectAlternativeName([_general_name(name) for name in names])
    purpose = ExtendedKeyUsageOID.SERVER_AUTH
    return _leaf(authority, _subject(names[0]), purpose, now=now, lifetime=lifetime, names=names_extension)


def make_client(
    authority: KeyPair, user: str, groups: Sequence[str] = (), *, now: datetime, lifetime: timedelta
) -> KeyPair:
    """A certificate that a client signs in with: API servers read the user and its groups from the subject."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    return _leaf(authority, subject, ExtendedKeyUsageOID.CLIENT_AUTH, now=now, lifetime=lifetime)


def service_names(service: str, namespace: str, *, cluster_domain: str = "cluster.local") -> tuple[str, ...]:
    """Every name by which a Service is called inside a cluster; API servers use ``name.namespace.svc``."""
    qualified = f"{service}.{namespace}"
    return (f"{qualified}.svc", f"{qualified}.svc.{cluster_domain}", qualified, service)


def needs_rotation(certificate: bytes, now: datetime, *, after: float = TWO_THIRDS) -> bool:
    """Whether this share of the certificate's life is over."""
    leaf = leaf_of(certificate)
    life = leaf.not_valid_after_utc - leaf.not_valid_before_utc
    return now >= leaf.not_valid_before_utc + life * after


def is_valid_at(certificate: bytes, now: datetime) -> bool:
    """Whether the certificate's dates include this moment."""
    leaf = leaf_of(certificate)
    return leaf.not_valid_before_utc <= now <= leaf.not_valid_after_utc


def age(certificate: bytes, now: datetime) -> timedelta:
    """How long ago a certificate of our own was made."""
    return now - (leaf_of(certificate).not_valid_before_utc + BACKDATED)


def covers(certificate: bytes, names: Iterable[str]) -> bool:
    """Whether a server with this certificate may be called by all of these names and addresses."""
    return set(names) <= set(names_of(certificate))


def names_of(certificate: bytes) -> list[str]:
    """The DNS names and IP addresses that a certificate was made for."""
    try:
        names = leaf_of(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return [*names.get_values_for_type(x509.DNSName), *addresses]


def is_issued_by(certificate: bytes, authority: bytes) -> bool:
    """Whether this authority signed the certificate."""
    try:
        leaf_of(certificate).verify_directly_issued_by(leaf_of(authority))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def is_matching(pair: KeyPair) -> bool:
    """Whether the key is the certificate's own, and both can be read."""
    try:
        return leaf_of(pair.certificate).public_key() == _private_key(pair.key).public_key()
    except CertificateError:
        return False


def leaf_of(pem: bytes) -> x509.Certificate:
    """The first certificate of a chain or bundle."""
    return certificates_in(pem)[0]


def certificates_in(pem: bytes) -> list[x509.Certificate]:
    """All certificates of a chain or bundle, at least one."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CertificateError(f"no PEM certificate can be read here: {error}") from error


def bundle(*pems: bytes) -> bytes:
    """One bundle of all these certificates, each once, in the order given."""
    distinct = {certificate: None for pem in pems if pem for certificate in certificates_in(pem)}
    return b"".join(_pem(certificate) for certificate in distinct)


def separate(pem: bytes) -> list[bytes]:
    """The certificates of a bundle, each as a PEM of its own."""
    return [_pem(certificate) for certificate in certificates_in(pem)] if pem else []


def load_into(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Gives a certificate and key to a TLS context, or says why they do not fit.

    The standard library reads them from files alone: they lie in memory where the system has such files (a container's
    disk may be read-only), else for a moment in one that only we may read.
    """
    with _as_file(pair.certificate.rstrip() + b"\n" + pair.key) as path:
        try:
            context.load_cert_chain(path, password=_no_password)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise CertificateError(f"the certificate and its key cannot be used for TLS: {error}") from error


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").exists():
        with os.fdopen(os.memfd_create("certificate"), "wb") as memory:
            memory.write(content)
            memory.flush()
            yield f"/proc/self/fd/{memory.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal.
    raise ValueError("the key is encrypted; store it without a passphrase")


def _leaf(
    authority: KeyPair,
    subject: x509.Name,
    purpose: x509.ObjectIdentifier,
    *,
    now: datetime,
    lifetime: timedelta,
    names: x509.SubjectAlternativeName | None = None,
) -> KeyPair:
    issuer = leaf_of(authority.certificate)
    issuer_key = _private_key(authority.key)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    until = min(now + lifetime, issuer.not_valid_after_utc)
    issuer_identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    unsigned = (
        _unsigned(subject, issuer=issuer.subject, key=key.public_key(), now=now, until=until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(issuer_identifier, critical=False)
    )
    if names is not None:
        unsigned = unsigned.add_extension(names, critical=False)
    return _pair(unsigned.sign(issuer_key, hashes.SHA256()), key)


def _unsigned(
    subject: x509.Name, *, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_LONGEST_COMMON_NAME])])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _private_key(pem: bytes) -> PrivateKeyTypes:
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError("no PEM private key can be read here, or it is encrypted") from error


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(_pem(certificate), private)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
