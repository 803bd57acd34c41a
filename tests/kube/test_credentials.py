"""Credentials that change under us: tokens and certificates in files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shoal.kube.credentials import (
    REREAD_SECONDS,
    Both,
    CredentialsError,
    Signature,
    anonymous,
    basic,
    bearer_token,
    certificate_files,
    client_certificate,
    token_file,
)
from shoal.kube.tls import ClientCertificate
from tests.support.network.tls import Authority, Issued


class Clock:
    """Time that a test moves."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def token(signature: Signature) -> str:
    return signature.headers["Authorization"].removeprefix("Bearer ")


async def test_a_token_file_is_read_again_within_a_minute(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "token"
    path.write_text("first\n")
    credentials = token_file(path, now=clock)
    assert token(await credentials.sign()) == "first"
    path.write_text("second\n")
    clock.now = REREAD_SECONDS - 1
    assert token(await credentials.sign()) == "first"
    clock.now = REREAD_SECONDS
    assert token(await credentials.sign()) == "second"


async def test_a_mounted_token_is_followed_through_the_kubelets_swap_of_links(tmp_path: Path) -> None:
    """The kubelet writes a new directory and moves the ..data link to it."""
    for number in (1, 2):
        (tmp_path / f"..{number}").mkdir()
        (tmp_path / f"..{number}" / "token").write_text(f"token-{number}")
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "token").symlink_to("..data/token")
    clock = Clock()
    credentials = token_file(tmp_path / "token", now=clock)
    assert token(await credentials.sign()) == "token-1"
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    clock.now += REREAD_SECONDS
    assert token(await credentials.sign()) == "token-2"


async def test_the_same_signature_is_given_while_the_token_stays(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "token"
    path.write_text("same")
    credentials = token_file(path, now=clock)
    first = await credentials.sign()
    clock.now += REREAD_SECONDS
    assert await credentials.sign() is first


async def test_a_refusal_makes_the_file_be_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    credentials = token_file(path, now=Clock())
    refused = await credentials.sign()
    path.write_text("new")
    assert await credentials.refresh(refused)
    assert token(await credentials.sign()) == "new"


async def test_a_refusal_of_what_the_file_still_holds_has_no_remedy(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    credentials = token_file(path, now=Clock())
    assert not await credentials.refresh(await credentials.sign())


async def test_a_refusal_of_an_older_signature_was_answered_already(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    credentials = token_file(path, now=Clock())
    refused = await credentials.sign()
    path.write_text("new")
    assert await credentials.refresh(refused)
    path.unlink()
    assert await credentials.refresh(refused)
    assert token(await credentials.sign()) == "new"


@pytest.mark.parametrize("content", [pytest.param(None, id="gone"), pytest.param(" \n", id="empty")])
async def test_the_last_token_stays_in_use_while_the_file_is_unusable(tmp_path: Path, content: str | None) -> None:
    clock = Clock()
    path = tmp_path / "token"
    path.write_text("good")
    credentials = token_file(path, now=clock)
    await credentials.sign()
    path.unlink() if content is None else path.write_text(content)
    clock.now += REREAD_SECONDS
    assert token(await credentials.sign()) == "good"
    path.write_text("better")
    clock.now += REREAD_SECONDS
    assert token(await credentials.sign()) == "better"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(None, "cannot use the token file .*/token: No such file", id="gone"),
        pytest.param(b"", "token file .*/token: the token is empty", id="empty"),
        pytest.param(b"one\ntwo", "/token: .*characters that no header can carry", id="two-lines"),
        pytest.param("tökén".encode(), "/token: it is not ASCII", id="not-ascii"),
    ],
)
async def test_a_token_file_that_never_held_a_token_is_an_error(
    tmp_path: Path, content: bytes | None, says: str
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CredentialsError, match=says) as caught:
        await token_file(path).sign()
    assert not caught.value.sent


async def test_a_token_that_was_written_down_serves_until_the_file_can_be_read(tmp_path: Path) -> None:
    clock = Clock()
    credentials = token_file(tmp_path / "token", initial="written", now=clock)
    assert token(await credentials.sign()) == "written"
    (tmp_path / "token").write_text("from file")
    clock.now += REREAD_SECONDS
    assert token(await credentials.sign()) == "from file"


def test_credentials_serve_one_event_loop_after_the_other(tmp_path: Path) -> None:
    """A command line runs loop after loop with the same connection; contention binds locks to loops."""
    (tmp_path / "token").write_text("t")
    clock = Clock()
    credentials = token_file(tmp_path / "token", now=clock)

    async def many() -> None:
        await asyncio.gather(*(credentials.sign() for _ in range(10)))

    for _ in range(3):
        clock.now += REREAD_SECONDS
        asyncio.run(many())


def certificate_of(issued: Issued) -> ClientCertificate:
    return ClientCertificate(issued.chain, issued.key)


async def test_a_certificate_is_replaced_only_when_both_files_fit_again(tmp_path: Path) -> None:
    authority = Authority()
    old, new = authority.issue("old"), authority.issue("new")
    chain, key = old.write(tmp_path, "client")
    clock = Clock()
    credentials = certificate_files(chain, key, now=clock)
    assert (await credentials.sign()).certificate == certificate_of(old)
    chain.write_bytes(new.chain)
    clock.now += REREAD_SECONDS
    assert (await credentials.sign()).certificate == certificate_of(old)
    key.write_bytes(new.key)
    clock.now += REREAD_SECONDS
    assert (await credentials.sign()).certificate == certificate_of(new)


async def test_certificate_files_that_never_fitted_are_an_error(tmp_path: Path) -> None:
    authority = Authority()
    chain, _ = authority.issue("one").write(tmp_path, "one")
    _, key = authority.issue("two").write(tmp_path, "two")
    with pytest.raises(CredentialsError, match=r"one\.crt with .*two\.key: .*key values mismatch"):
        await certificate_files(chain, key).sign()


async def test_both_are_renewed_when_the_server_refuses_and_one_change_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    issued = Authority().issue("admin")
    both = Both(token_file(path, now=Clock()), client_certificate(certificate_of(issued)))
    refused = await both.sign()
    assert (token(refused), refused.certificate) == ("old", certificate_of(issued))
    assert not await both.refresh(refused)
    assert await both.sign() is refused
    path.write_text("new")
    assert await both.refresh(refused)
    fresh = await both.sign()
    assert (token(fresh), fresh.certificate) == ("new", certificate_of(issued))
    assert await both.refresh(refused)


@pytest.mark.parametrize(
    "credentials",
    [
        pytest.param(bearer_token("s3cret"), id="token"),
        pytest.param(basic("ann", "s3cret"), id="password"),
        pytest.param(client_certificate(ClientCertificate(b"chain", b"s3cret")), id="key"),
        pytest.param(Both(bearer_token("s3cret"), anonymous()), id="both"),
        pytest.param(token_file(Path("/no/file"), initial="s3cret"), id="file"),
    ],
)
async def test_no_text_of_credentials_shows_their_secret(credentials: object) -> None:
    assert "s3cret" not in repr(credentials)
    assert "s3cret" not in repr(await credentials.sign())  # type: ignore[attr-defined]
