"""Certificates and authorities: what is accepted, and how what is not is explained."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest

from shoal.kube.tls import ClientCertificate, Tls, TlsError, check_authorities, check_certificate, client_context
from tests.support.network.tls import Authority, Issued, encrypted

AUTHORITY = Authority()
ADMIN = AUTHORITY.issue("admin")


def certificate(issued: Issued) -> ClientCertificate:
    return ClientCertificate(issued.chain, issued.key)


def test_an_authority_that_is_given_replaces_the_systems() -> None:
    assert len(client_context(Tls(authorities=AUTHORITY.pem)).get_ca_certs()) == 1


def test_several_authorities_are_all_trusted() -> None:
    both = AUTHORITY.pem + Authority("another").pem
    assert len(client_context(Tls(authorities=both)).get_ca_certs()) == 2


def test_names_and_certificates_are_checked_unless_told_otherwise() -> None:
    careful = client_context(Tls())
    assert (careful.verify_mode, careful.check_hostname) == (ssl.CERT_REQUIRED, True)
    careless = client_context(Tls(insecure=True))
    assert (careless.verify_mode, careless.check_hostname) == (ssl.CERT_NONE, False)


@pytest.mark.parametrize(
    "pem", [pytest.param(b"", id="empty"), pytest.param(b"hello", id="text"), pytest.param(b"\xff\x00", id="binary")]
)
def test_an_authority_that_is_none_is_refused(pem: bytes) -> None:
    with pytest.raises(TlsError, match="certificate authority is not PEM"):
        check_authorities(pem)


@pytest.mark.parametrize(
    ("chain", "key", "says"),
    [
        pytest.param(ADMIN.chain, AUTHORITY.issue("other").key, "key values mismatch", id="not-its-key"),
        pytest.param(ADMIN.chain, b"hello", "cannot be used", id="no-key"),
        pytest.param(b"hello", ADMIN.key, "cannot be used", id="no-certificate"),
        pytest.param(ADMIN.chain, encrypted(ADMIN, b"x").key, "the key is encrypted", id="key-with-a-passphrase"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_explained(chain: bytes, key: bytes, says: str) -> None:
    with pytest.raises(TlsError, match=says):
        check_certificate(ClientCertificate(chain, key))


def test_a_certificate_knows_when_it_ends() -> None:
    issued = AUTHORITY.issue("admin", lifetime=timedelta(hours=5))
    remaining = certificate(issued).expires() - datetime.now(UTC)
    assert timedelta(hours=4, minutes=59) < remaining <= timedelta(hours=5)


def test_the_key_does_not_show_in_the_text_of_a_certificate() -> None:
    assert ADMIN.key.decode().split("\n")[1] not in repr(certificate(ADMIN))
