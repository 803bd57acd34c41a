"""Where a server's certificate comes from: made here, or laid into a directory by someone else.

A ``CertificateSource`` is asked again and again for what should be served *now*; it is cheap to ask and needs no one to
remember anything. ``SelfMade`` keeps what it makes in a ``Store``: a Secret, so that all replicas serve the same and
clients trust one bundle; or a directory or memory, where there is one process only. ``FromFiles`` reads what
cert-manager (or anyone) put into a mounted Secret, and follows it when the kubelet swaps the mount.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import structlog

from shoal.kube.admission.rotation import Material, Policy, wanted_material
from shoal.kube.admission.stores import (
    AUTHORITIES,
    AUTHORITY_KEY,
    CERTIFICATE,
    KEY,
    ChangedMeanwhile,
    Store,
)
from shoal.kube.certificates import CertificateError, KeyPair, bundle, is_matching, separate

log = structlog.get_logger("shoal.kube.admission.certs")

V = TypeVar("V")


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What to serve, and the bundle by which clients can verify it (empty where that is not known)."""

    pair: KeyPair
    authorities: bytes


class CertificateSource(Protocol):
    """Says what to serve."""

    @property
    def interval(self) -> float:
        """How many seconds an answer may be used before asking again."""
        ...

    async def current(self) -> Serving:
        """What should be served now; raises CertificateError, or a store's own errors, where nothing can be."""
        ...


class SelfMade(Generic[V]):
    """Makes and renews certificates under an authority of its own.

    Where several processes share a store, whoever comes first makes what is due, and the others take it over.
    """

    def __init__(
        self,
        store: Store[V],
        policy: Policy,
        *,
        interval: float = 60.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.interval = interval
        self._store = store
        self._policy = policy
        self._clock = clock

    async def current(self) -> Serving:
        """What the store holds, after making what is missing or due."""
        while True:
            files, version = await self._store.read()
            present = _material(files)
            wanted = wanted_material(present, self._policy, now=self._clock())
            if wanted is not present:
                try:
                    await self._store.write(_files(wanted), version)
                except ChangedMeanwhile:
                    # Another replica took this step: its certificates are as good, and now they are the ones.
                    continue
                log.info("certificates renewed", first=present is None, names=self._policy.names)
            return Serving(pair=wanted.serving, authorities=wanted.authorities)


class FromFiles:
    """Serves ``tls.crt`` and ``tls.key`` of a directory, and trusts its ``ca.crt`` where there is one.

    The kubelet swaps a whole mount by one symbolic link, other tools write one file after the other. Either way a
    certificate and key that do not belong together are a moment's state: an error now, and read again shortly after.
    Injecting the bundle is best left to whoever made the files (cert-manager has an injector).
    """

    def __init__(self, directory: Path, *, interval: float = 10.0) -> None:
        self.interval = interval
        self._directory = directory

    async def current(self) -> Serving:
        """What the directory holds now."""
        try:
            return await asyncio.to_thread(self._read)
        except (OSError, CertificateError) as error:
            raise CertificateError(f"no certificate can be served from {self._directory}: {error}") from error

    def _read(self) -> Serving:
        # Where there is the kubelet's link, its target is read: the files of one moment, whatever happens to the link.
        link = self._directory / "..data"
        directory = link.resolve() if link.is_symlink() else self._directory
        pair = KeyPair((directory / CERTIFICATE).read_bytes(), (directory / KEY).read_bytes())
        if not is_matching(pair):
            raise CertificateError(f"{KEY} is not the key of {CERTIFICATE}")
        try:
            authorities = bundle((directory / AUTHORITIES).read_bytes())
        except FileNotFoundError:
            authorities = b""
        return Serving(pair=pair, authorities=authorities)


def _material(files: Mapping[str, bytes]) -> Material | None:
    if not files.get(CERTIFICATE):
        return None
    if not files.get(AUTHORITY_KEY):
        raise CertificateError(
            f"the store holds a certificate that was not made here (it has {CERTIFICATE} and no {AUTHORITY_KEY}): "
            "name another store, or serve it from files"
        )
    bundled = files.get(AUTHORITIES, b"")
    try:
        newest = separate(bundled)[:1]
    except CertificateError:
        newest = []
    return Material(
        serving=KeyPair(files[CERTIFICATE], files.get(KEY, b"")),
        authority=KeyPair(b"".join(newest), files[AUTHORITY_KEY]),
        authorities=bundled if newest else b"",
    )


def _files(material: Material) -> dict[str, bytes]:
    return {
        AUTHORITIES: material.authorities,
        AUTHORITY_KEY: material.authority.key,
        CERTIFICATE: material.serving.certificate,
        KEY: material.serving.key,
    }
