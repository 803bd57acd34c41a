from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest

from shoal.kube.certificates import (
    CertificateError,
    KeyPair,
    age,
    bundle,
    certificates_in,
    covers,
    is_issued_by,
    is_matching,
    is_valid_at,
    leaf_of,
    load_into,
    make_authority,
    make_client,
    make_serving,
    names_of,
    needs_rotation,
    separate,
    service_names,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
YEAR = timedelta(days=365)
NAMES = ("hooks.shoal.svc", "localhost", "127.0.0.1", "::1")


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return make_authority("test-ca", now=NOW, lifetime=10 * YEAR)


@pytest.fixture(scope="module")
def serving(authority: KeyPair) -> KeyPair:
    return make_serving(authority, NAMES, now=NOW, lifetime=YEAR)


def test_a_serving_certificate_is_verified_by_openssl_under_each_of_its_names(
    authority: KeyPair, serving: KeyPair
) -> None:
    now = datetime.now(UTC)
    current_authority = make_authority("test-ca", now=now, lifetime=YEAR)
    current = make_serving(current_authority, NAMES, now=now, lifetime=YEAR)
    for name in NAMES:
        assert handshake(server=current, trusted=current_authority.certificate, name=name) is None
    assert "match" in str(handshake(server=current, trusted=current_authority.certificate, name="other.svc"))
    assert "verify failed" in str(handshake(server=current, trusted=authority.certificate, name="localhost"))


def test_a_bundle_of_two_authorities_of_the_same_name_verifies_what_either_signed() -> None:
    now = datetime.now(UTC)
    old, new = (make_authority("test-ca", now=now, lifetime=YEAR) for _ in range(2))
    for trusted in (bundle(old.certificate, new.certificate), bundle(new.certificate, old.certificate)):
        for authority in (old, new):
            current = make_serving(authority, ["localhost"], now=now, lifetime=YEAR)
            assert handshake(server=current, trusted=trusted, name="localhost") is None


@pytest.mark.parametrize(
    ("elapsed", "due"),
    [
        pytest.param(timedelta(0), False, id="new"),
        pytest.param(YEAR * 0.66, False, id="just before two thirds"),
        pytest.param(YEAR * 0.67, True, id="just after two thirds"),
        pytest.param(YEAR * 2, True, id="long over"),
    ],
)
def test_rotation_is_due_after_two_thirds_of_a_certificates_life(
    serving: KeyPair, elapsed: timedelta, due: bool
) -> None:
    assert needs_rotation(serving.certificate, NOW + elapsed) is due


def test_the_share_of_life_after_which_rotation_is_due_can_be_chosen(serving: KeyPair) -> None:
    assert needs_rotation(serving.certificate, NOW + YEAR * 0.5, after=0.4)
    assert not needs_rotation(serving.certificate, NOW + YEAR * 0.5, after=0.6)


def test_a_certificate_is_valid_for_a_clock_that_is_a_little_behind(serving: KeyPair) -> None:
    assert is_valid_at(serving.certificate, NOW - timedelta(minutes=4))
    assert not is_valid_at(serving.certificate, NOW - timedelta(minutes=6))
    assert not is_valid_at(serving.certificate, NOW + YEAR + timedelta(seconds=1))
    assert age(serving.certificate, NOW + timedelta(hours=3)) == timedelta(hours=3)


def test_a_serving_certificate_never_outlives_its_authority(authority: KeyPair) -> None:
    late = make_serving(authority, ["a"], now=NOW + 9.5 * YEAR, lifetime=YEAR)
    assert leaf_of(late.certificate).not_valid_after_utc == leaf_of(authority.certificate).not_valid_after_utc


def test_names_are_read_back_as_they_were_given(serving: KeyPair) -> None:
    assert set(names_of(serving.certificate)) == set(NAMES)
    assert covers(serving.certificate, ["localhost", "127.0.0.1"])
    assert not covers(serving.certificate, ["localhost", "elsewhere"])
    assert service_names("hooks", "shoal")[0] == "hooks.shoal.svc"


def test_who_issued_a_certificate_is_told_by_its_signature_not_by_its_name(
    authority: KeyPair, serving: KeyPair
) -> None:
    namesake = make_authority("test-ca", now=NOW, lifetime=YEAR)
    assert is_issued_by(serving.certificate, authority.certificate)
    assert not is_issued_by(serving.certificate, namesake.certificate)


def test_a_key_belongs_to_one_certificate_alone(authority: KeyPair, serving: KeyPair) -> None:
    assert is_matching(serving)
    assert not is_matching(KeyPair(serving.certificate, authority.key))
    assert not is_matching(KeyPair(b"garbage", serving.key))
    assert not is_matching(KeyPair(serving.certificate, b""))


def test_a_bundle_holds_each_certificate_once_in_the_order_given(authority: KeyPair) -> None:
    other = make_authority("other", now=NOW, lifetime=YEAR).certificate
    assert bundle(authority.certificate, other, authority.certificate, b"") == authority.certificate + other
    assert separate(authority.certificate + other) == [authority.certificate, other]
    assert separate(b"") == []


def test_a_client_certificate_says_who_its_holder_is(authority: KeyPair) -> None:
    client = make_client(authority, "ann", ["team-a", "team-b"], now=NOW, lifetime=YEAR)
    subject = leaf_of(client.certificate).subject.rfc4514_string()
    assert "CN=ann" in subject
    assert "O=team-a" in subject
    assert is_issued_by(client.certificate, authority.certificate)


def test_what_cannot_be_read_is_said_plainly(serving: KeyPair, authority: KeyPair) -> None:
    with pytest.raises(CertificateError, match="no PEM certificate"):
        certificates_in(b"nothing here")
    with pytest.raises(CertificateError, match="cannot be used for TLS"):
        load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), KeyPair(serving.certificate, authority.key))
    with pytest.raises(CertificateError, match="at least one"):
        make_serving(authority, [], now=NOW, lifetime=YEAR)


def test_a_private_key_is_never_shown(serving: KeyPair) -> None:
    assert "PRIVATE" not in repr(serving)


def handshake(*, server: KeyPair, trusted: bytes, name: str) -> ssl.SSLError | None:
    """A TLS handshake in memory: what the client says against it, if anything."""
    accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_into(accepting, server)
    calling = ssl.create_default_context(cadata=trusted.decode())
    # What Python 3.13 demands by default, whichever version runs this.
    calling.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        calling.wrap_bio(to_client, to_server, server_hostname=name),
        accepting.wrap_bio(to_server, to_client, server_side=True),
    ]
    for side in sides * 3:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLError as error:
            return error
    return None
