from __future__ import annotations

import asyncio
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shoal.kube.admission import DirectoryStore, FromFiles, MemoryStore, Policy, SecretStore, SelfMade
from shoal.kube.certificates import (
    CertificateError,
    KeyPair,
    is_issued_by,
    make_authority,
    make_serving,
    needs_rotation,
    separate,
)
from shoal.kube.client import Client
from tests.support.builders.reviews import object_server

START = datetime(2026, 5, 1, tzinfo=UTC)
POLICY = Policy(names=("hooks.shoal.svc", "127.0.0.1"))
SECRET = "/api/v1/namespaces/shoal/secrets/shoal-webhook-cert"


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


class TestSelfMadeInASecret:
    async def test_the_first_to_come_makes_a_secret_that_all_others_use(self) -> None:
        server = object_server()
        sources = [SelfMade(secret_store(Client(server)), POLICY) for _ in range(5)]
        first, *others = await asyncio.gather(*(source.current() for source in sources))
        assert all(other == first for other in others)
        assert is_issued_by(first.pair.certificate, first.authorities)
        created = [request for request in server.requests if request.method == "POST"]
        assert len(created) == 5, "the race was not run"

    async def test_at_rest_nothing_is_written(self) -> None:
        server = object_server()
        source = SelfMade(secret_store(Client(server)), POLICY)
        first = await source.current()
        server.requests.clear()
        assert await source.current() == first
        assert {request.method for request in server.requests} == {"GET"}

    async def test_replicas_that_renew_at_once_end_with_the_same(self) -> None:
        server, clock = object_server(), Clock()
        sources = [SelfMade(secret_store(Client(server)), POLICY, clock=clock) for _ in range(3)]
        first = await sources[0].current()
        clock.now += timedelta(days=300)
        renewed, *others = await asyncio.gather(*(source.current() for source in sources))
        assert all(other == renewed for other in others)
        assert renewed.pair != first.pair
        assert renewed.authorities == first.authorities
        assert not needs_rotation(renewed.pair.certificate, clock.now)
        assert len([request for request in server.requests if request.method == "PUT"]) == 3, "the race was not run"

    async def test_an_authority_is_renewed_while_the_old_one_is_still_trusted(self) -> None:
        clock = Clock()
        source = SelfMade(secret_store(Client(object_server())), POLICY, clock=clock)
        await source.current()
        clock.now += timedelta(days=2400)
        first = await source.current()
        clock.now += timedelta(days=40)
        joined = await source.current()
        assert joined.pair == first.pair
        assert len(separate(joined.authorities)) == 2
        assert first.authorities in joined.authorities
        clock.now += timedelta(days=1)
        served = await source.current()
        assert served.pair != joined.pair
        assert served.authorities == joined.authorities
        clock.now += timedelta(days=1)
        assert len(separate((await source.current()).authorities)) == 1

    async def test_a_secret_that_a_chart_made_empty_is_filled_and_keeps_what_else_it_has(self) -> None:
        made = {
            "kind": "Secret",
            "metadata": {"name": "shoal-webhook-cert", "labels": {"by": "helm"}},
            "type": "Opaque",
        }
        client = Client(object_server((SECRET, made)))
        store = secret_store(client)
        await SelfMade(store, POLICY).current()
        files, secret = await store.read()
        assert sorted(files) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]
        assert secret is not None
        assert secret.content["type"] == "Opaque"
        assert secret.metadata.labels == {"by": "helm"}

    async def test_a_certificate_that_someone_else_made_is_not_overwritten(self) -> None:
        authority = make_authority("issuer", now=START, lifetime=timedelta(days=1))
        store = secret_store(Client(object_server()))
        await store.write({"tls.crt": authority.certificate, "tls.key": authority.key}, None)
        with pytest.raises(CertificateError, match=r"not made here .*name another store, or serve it from files"):
            await SelfMade(store, POLICY).current()

    async def test_what_cannot_be_read_is_made_anew(self) -> None:
        store = secret_store(Client(object_server()))
        await store.write(dict.fromkeys(("tls.crt", "tls.key", "ca.crt", "ca.key"), b"garbage"), None)
        serving = await SelfMade(store, POLICY).current()
        assert is_issued_by(serving.pair.certificate, serving.authorities)


class TestSelfMadeForOneProcess:
    async def test_a_directory_serves_the_same_after_a_restart(self, tmp_path: Path) -> None:
        directory = tmp_path / "certificates"
        first = await SelfMade(DirectoryStore(directory), POLICY).current()
        assert await SelfMade(DirectoryStore(directory), POLICY).current() == first
        assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
        assert sorted(path.name for path in directory.iterdir()) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]

    async def test_a_write_that_was_cut_off_is_repaired_under_the_same_authority(self, tmp_path: Path) -> None:
        first = await SelfMade(DirectoryStore(tmp_path), POLICY).current()
        other = await SelfMade(MemoryStore(), POLICY).current()
        (tmp_path / "tls.key").write_bytes(other.pair.key)
        repaired = await SelfMade(DirectoryStore(tmp_path), POLICY).current()
        assert repaired.authorities == first.authorities
        assert is_issued_by(repaired.pair.certificate, first.authorities)

    async def test_memory_keeps_them_as_long_as_the_process_lives(self) -> None:
        source = SelfMade(MemoryStore(), POLICY)
        assert await source.current() == await source.current()


class TestFromFiles:
    async def test_files_are_served_as_they_are(self, tmp_path: Path) -> None:
        authority, pair = a_pair()
        lay(tmp_path, pair, authority.certificate)
        serving = await FromFiles(tmp_path).current()
        assert (serving.pair, serving.authorities) == (pair, authority.certificate)

    async def test_a_directory_without_an_authority_has_none_to_inject(self, tmp_path: Path) -> None:
        lay(tmp_path, a_pair()[1])
        assert (await FromFiles(tmp_path).current()).authorities == b""

    async def test_the_kubelets_swap_of_the_mount_is_followed(self, tmp_path: Path) -> None:
        (old_authority, old), (new_authority, new) = a_pair(), a_pair()
        mount = KubeletMount(tmp_path)
        mount.swap(old, old_authority.certificate)
        source = FromFiles(tmp_path)
        assert (await source.current()).pair == old
        mount.swap(new, new_authority.certificate)
        serving = await source.current()
        assert (serving.pair, serving.authorities) == (new, new_authority.certificate)

    async def test_files_that_do_not_belong_together_are_an_error_until_they_do(self, tmp_path: Path) -> None:
        old, new = a_pair()[1], a_pair()[1]
        lay(tmp_path, old)
        source = FromFiles(tmp_path)
        (tmp_path / "tls.crt").write_bytes(new.certificate)
        with pytest.raises(CertificateError, match=r"tls.key is not the key of tls.crt"):
            await source.current()
        (tmp_path / "tls.key").write_bytes(new.key)
        assert (await source.current()).pair == new

    async def test_a_missing_directory_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(CertificateError, match="nowhere"):
            await FromFiles(tmp_path / "nowhere").current()


class KubeletMount:
    """A Secret's mount as the kubelet keeps it: files are links into ``..data``, which is swapped as a whole."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._count = 0

    def swap(self, pair: KeyPair, authority: bytes) -> None:
        self._count += 1
        fresh = self._directory / f"..2026_{self._count}"
        fresh.mkdir()
        lay(fresh, pair, authority)
        link = self._directory / "..data_tmp"
        link.symlink_to(fresh.name)
        link.rename(self._directory / "..data")
        for name in ("tls.crt", "tls.key", "ca.crt"):
            visible = self._directory / name
            if not visible.is_symlink():
                visible.symlink_to(Path("..data", name))
        old = self._directory / f"..2026_{self._count - 1}"
        if old.exists():
            for path in old.iterdir():
                path.unlink()
            old.rmdir()


def a_pair() -> tuple[KeyPair, KeyPair]:
    now = datetime.now(UTC)
    authority = make_authority("issuer", now=now, lifetime=timedelta(days=2))
    return authority, make_serving(authority, ["localhost", "127.0.0.1"], now=now, lifetime=timedelta(days=1))


def lay(directory: Path, pair: KeyPair, authority: bytes = b"") -> None:
    (directory / "tls.crt").write_bytes(pair.certificate)
    (directory / "tls.key").write_bytes(pair.key)
    if authority:
        (directory / "ca.crt").write_bytes(authority)


def secret_store(client: Client) -> SecretStore:
    return SecretStore(client, namespace="shoal")
