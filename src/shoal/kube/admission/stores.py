"""Where certificates that we made are kept, and how those who share a place never overwrite each other."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from shoal.api.meta.objects import Document, PartialObject
from shoal.api.meta.resource import Resource
from shoal.kube.cache import Cache
from shoal.kube.client import Client
from shoal.kube.errors import Conflict, NotFound

V = TypeVar("V")

SECRETS = Resource(type=Document, group="", version="v1", kind="Secret", plural="secrets")

AUTHORITIES = "ca.crt"
AUTHORITY_KEY = "ca.key"
CERTIFICATE = "tls.crt"
KEY = "tls.key"
_FILES = (AUTHORITY_KEY, AUTHORITIES, KEY, CERTIFICATE)


class ChangedMeanwhile(Exception):
    """Someone else wrote to a store since it was read."""


class Store(Protocol[V]):
    """Keeps certificates for all who share it; a version of type V says what was read."""

    async def read(self) -> tuple[Mapping[str, bytes], V]:
        """The files kept, none at first, and their version."""
        ...

    async def write(self, files: Mapping[str, bytes], version: V) -> None:
        """Writes over exactly the version that was read; raises ChangedMeanwhile where there is a newer one."""
        ...


class SecretStore:
    """A Secret, shared by all replicas; the API server refuses a write that rests on an old reading.

    A Secret that is there already (a chart may create it empty) keeps its type, labels and other keys.
    """

    def __init__(self, client: Client, *, namespace: str, name: str = "shoal-webhook-cert") -> None:
        self._client = client
        self._namespace = namespace
        self._name = name

    def follow(self, cache: Cache, look_again: Callable[[], None]) -> None:
        """Calls back when the Secret changes: what one replica renewed, the others serve at once."""
        chosen = f"metadata.name={self._name}"
        secrets = cache.informer(SECRETS.view(PartialObject), namespace=self._namespace, field_selector=chosen)
        secrets.subscribe(lambda change: look_again())

    async def read(self) -> tuple[Mapping[str, bytes], Document | None]:
        """The Secret's keys, and the Secret as it was read."""
        try:
            secret = await self._client.get(SECRETS, self._name, self._namespace)
        except NotFound:
            return {}, None
        present = secret.content.get("data") or {}
        return {key: base64.b64decode(value) for key, value in present.items()}, secret

    async def write(self, files: Mapping[str, bytes], version: Document | None) -> None:
        """Creates the Secret, or replaces exactly the one that was read."""
        encoded = {key: base64.b64encode(value).decode() for key, value in files.items()}
        try:
            if version is None:
                # NotFound is no race here: the namespace is missing, and whoever set us up must hear of it.
                await self._client.create(SECRETS, self._new(encoded), self._namespace)
                return
        except Conflict as error:
            raise ChangedMeanwhile(f"Secret {self._namespace}/{self._name}") from error
        try:
            changed = version.content | {"data": (version.content.get("data") or {}) | encoded}
            await self._client.update(SECRETS, changed, self._namespace, name=self._name)
        except (Conflict, NotFound) as error:
            raise ChangedMeanwhile(f"Secret {self._namespace}/{self._name}") from error

    def _new(self, encoded: Mapping[str, str]) -> dict[str, Any]:
        return {
            "metadata": {"name": self._name, "namespace": self._namespace},
            "type": "kubernetes.io/tls",
            "data": encoded,
        }


class DirectoryStore:
    """A directory of one process's own, so that it serves the same after a restart."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def read(self) -> tuple[Mapping[str, bytes], None]:
        """The files that are there."""
        return await asyncio.to_thread(self._read), None

    async def write(self, files: Mapping[str, bytes], version: None) -> None:
        """Writes each file whole; one that is cut off between two leaves a mismatch, which is made anew."""
        await asyncio.to_thread(self._write, files)

    def _read(self) -> dict[str, bytes]:
        paths = {name: self._directory / name for name in _FILES}
        return {name: path.read_bytes() for name, path in paths.items() if path.exists()}

    def _write(self, files: Mapping[str, bytes]) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in _FILES:
            unfinished = self._directory / f".{name}.new"
            unfinished.unlink(missing_ok=True)
            with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(files[name])
            unfinished.replace(self._directory / name)


class MemoryStore:
    """The memory of one process: new certificates after every start."""

    def __init__(self) -> None:
        self._files: Mapping[str, bytes] = {}

    async def read(self) -> tuple[Mapping[str, bytes], None]:
        """What was written last."""
        return self._files, None

    async def write(self, files: Mapping[str, bytes], version: None) -> None:
        """Keeps the files."""
        self._files = dict(files)
