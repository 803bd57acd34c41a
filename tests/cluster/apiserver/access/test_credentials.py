from __future__ import annotations

import base64
import ssl
import stat
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from shoal.cluster.apiserver.access.authentication import Authenticator
from shoal.cluster.apiserver.access.credentials import Credentials
from shoal.cluster.apiserver.access.user import User
from shoal.kube.certificates import KeyPair, load_into, make_authority, make_client, names_of
from tests.cluster.apiserver.access.memory import Memory

NOW = datetime.now(UTC).replace(microsecond=0)
NAMES = ("localhost", "127.0.0.1", "::1", "kubernetes.default.svc")


def credentials(folder: Path, names: tuple[str, ...] = NAMES, *, now: datetime = NOW) -> Credentials:
    return Credentials.at(folder, names=names, now=now)


def test_secrets_are_for_their_owner_alone(tmp_path: Path) -> None:
    credentials(tmp_path / "pki")
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700
    files = list((tmp_path / "pki").iterdir())
    assert len(files) == 7
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_folder_that_others_could_read_is_closed(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir(mode=0o755)
    credentials(tmp_path / "pki")
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700


def test_all_is_found_again_at_the_next_start(tmp_path: Path) -> None:
    first, second = credentials(tmp_path), credentials(tmp_path, now=NOW + timedelta(days=30))
    assert first.kubeconfig("https://localhost") == second.kubeconfig("https://localhost")
    assert first.signer.keys() == second.signer.keys()
    assert second.user_tokens.user(first.user_tokens.token("ann", ["devs"])) is not None


def serving(folder: Path) -> bytes:
    return (folder / "server.crt").read_bytes()


RENEWALS = [
    ("the next day", NAMES, timedelta(days=1), False),
    ("with fewer names", NAMES[:2], timedelta(0), False),
    ("with a new name", (*NAMES, "example.org"), timedelta(0), True),
    ("near its end", NAMES, timedelta(days=900), True),
    ("after its end", NAMES, timedelta(days=2000), True),
]


@pytest.mark.parametrize(
    ("names", "later", "renewed"), [case[1:] for case in RENEWALS], ids=[case[0] for case in RENEWALS]
)
def test_the_serving_certificate_is_kept_while_it_fits(
    tmp_path: Path, names: tuple[str, ...], later: timedelta, renewed: bool
) -> None:
    authority = credentials(tmp_path).authority
    before = serving(tmp_path)
    assert credentials(tmp_path, names, now=NOW + later).authority == authority
    assert (serving(tmp_path) != before) is renewed
    assert set(names) <= set(names_of(serving(tmp_path)))


def test_half_a_pair_that_a_crash_left_is_made_anew(tmp_path: Path) -> None:
    credentials(tmp_path)
    (tmp_path / "server.crt").unlink()
    credentials(tmp_path)
    (tmp_path / "server.key").write_text("nonsense")
    credentials(tmp_path).server_context()


def test_a_certificate_of_another_authority_is_not_kept(tmp_path: Path) -> None:
    credentials(tmp_path)
    before = serving(tmp_path)
    (tmp_path / "ca.crt").unlink()
    credentials(tmp_path)
    assert serving(tmp_path) != before


def test_the_kubeconfig_holds_all_that_is_needed(tmp_path: Path) -> None:
    made = credentials(tmp_path)
    config = yaml.safe_load(made.kubeconfig("https://127.0.0.1:7443"))
    cluster = config["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:7443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == made.authority
    token = config["users"][0]["user"]["token"]
    found = Authenticator(made, Memory(), clock=lambda: NOW).authenticate(authorization=f"Bearer {token}")
    assert found == User(name="admin", uid="admin", groups=("system:masters", "system:authenticated"))


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> bytes | None:
    """Connects the two in memory, and gives the certificate that the server saw."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    far = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (near, far, near, far):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return far.getpeercert(True)


def client_context(made: Credentials, pair: KeyPair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=made.authority.decode())
    if pair:
        load_into(context, pair)
    return context


def test_a_client_that_trusts_the_authority_connects_without_a_certificate(tmp_path: Path) -> None:
    made = credentials(tmp_path)
    assert handshake(made.server_context(), client_context(made)) is None


def test_a_client_certificate_makes_its_holder_a_user(tmp_path: Path) -> None:
    made = credentials(tmp_path)
    pair = made.client("ann", ["devs", "ops"], now=NOW)
    seen = handshake(made.server_context(), client_context(made, pair))
    found = Authenticator(made, Memory(), clock=lambda: NOW).authenticate(authorization=None, peer_certificate=seen)
    assert found is not None
    assert (found.name, found.groups) == ("ann", ("devs", "ops", "system:authenticated"))


def test_a_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    made = credentials(tmp_path)
    stranger = make_authority("other", now=NOW, lifetime=timedelta(days=1))
    pair = make_client(stranger, "ann", ["system:masters"], now=NOW, lifetime=timedelta(days=1))
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(made.server_context(), client_context(made, pair))


def test_old_versions_of_tls_are_refused(tmp_path: Path) -> None:
    made = credentials(tmp_path)
    assert made.server_context().minimum_version == ssl.TLSVersion.TLSv1_2
    assert made.server_context().verify_mode == ssl.CERT_OPTIONAL
