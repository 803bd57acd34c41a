"""How requests are signed: with headers, a client certificate, or both.

A ``Credentials`` gives the current ``Signature`` before each request and is told when the server refused one, so that
a token that was rotated or revoked is replaced without the caller's noticing. The same ``Signature`` object is given
out until something changes: a transport compares by identity and rebuilds nothing while it stays.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import structlog

from shoal.kube.errors import ConnectionFault
from shoal.kube.tls import ClientCertificate, TlsError, check_certificate

logger = structlog.get_logger(__name__)

REREAD_SECONDS = 60.0
"""How old what was read from a file may get: the kubelet rotates tokens minutes before they expire."""


class CredentialsError(ConnectionFault):
    """The request could not be signed, so it was not sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False, lasting=True)


@dataclass(frozen=True, eq=False)
class Signature:
    """What signs a request at this moment."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificate: ClientCertificate | None = None

    def equals(self, other: Signature | None) -> bool:
        """Whether a server would see no difference (identity says whether it is the same one)."""
        return other is not None and (self.headers, self.certificate) == (other.headers, other.certificate)


class Credentials(Protocol):
    """Whoever can sign requests."""

    async def sign(self) -> Signature:
        """The signature of now; raises CredentialsError."""
        ...

    async def refresh(self, refused: Signature) -> bool:
        """Answers a 401: whether ``sign`` now gives another signature than the one refused."""
        ...


class Fixed:
    """Credentials that never change."""

    def __init__(self, signature: Signature, *, name: str) -> None:
        self._signature = signature
        self._name = name

    def __repr__(self) -> str:
        return f"<{self._name}>"

    async def sign(self) -> Signature:
        """Always the same."""
        return self._signature

    async def refresh(self, refused: Signature) -> bool:
        """There is nothing else to try."""
        return False


def anonymous() -> Credentials:
    """No credentials at all."""
    return Fixed(Signature(), name="anonymous")


def bearer_token(token: str) -> Credentials:
    """A token that is known and stays."""
    return Fixed(Signature(bearer(token)), name="a token")


def basic(username: str, password: str) -> Credentials:
    """A user name and a password."""
    encoded = b64encode(f"{username}:{password}".encode()).decode("ascii")
    return Fixed(Signature({"Authorization": f"Basic {encoded}"}), name=f"user {username}")


def client_certificate(certificate: ClientCertificate) -> Credentials:
    """A client certificate that is known and stays."""
    return Fixed(Signature(certificate=certificate), name="a client certificate")


def token_file(path: Path, *, initial: str = "", now: Callable[[], float] = time.monotonic) -> Credentials:
    """A token in a file that others rewrite; ``initial`` serves for as long as the file cannot be read."""

    def read() -> Signature:
        try:
            return Signature(bearer(path.read_text("ascii")))
        except (OSError, ValueError) as error:
            raise CredentialsError(f"cannot use the token file {path}: {_cause(error)}") from None

    first = Signature(bearer(initial)) if initial else None
    return FromFiles(read, name=f"the token in {path}", initial=first, now=now)


def certificate_files(chain: Path, key: Path, *, now: Callable[[], float] = time.monotonic) -> Credentials:
    """A client certificate and its key in files that others rewrite."""

    def read() -> Signature:
        try:
            certificate = ClientCertificate(chain.read_bytes(), key.read_bytes())
            check_certificate(certificate)
        except (OSError, TlsError) as error:
            raise CredentialsError(f"cannot use {chain} with {key}: {_cause(error)}") from error
        return Signature(certificate=certificate)

    return FromFiles(read, name=f"the client certificate in {chain}", now=now)


class FromFiles:
    """Credentials in files that others rewrite: read again once a minute, and at once after a refusal.

    When reading fails (two files are never replaced in the same instant) the last signature stays in use.
    """

    def __init__(
        self, read: Callable[[], Signature], *, name: str, now: Callable[[], float], initial: Signature | None = None
    ) -> None:
        self._read = read
        self._name = name
        self._now = now
        self._signature = initial
        self._read_at: float | None = None
        self._lock = LoopLock()

    def __repr__(self) -> str:
        return f"<{self._name}>"

    async def sign(self) -> Signature:
        """The signature as the files had it within the last minute."""
        if self._signature is None or self._is_stale():
            async with self._lock.of_this_loop():
                if self._signature is None or self._is_stale():
                    await self._renew()
        assert self._signature is not None
        return self._signature

    async def refresh(self, refused: Signature) -> bool:
        """Reads the files, unless someone has since this signature was given out."""
        async with self._lock.of_this_loop():
            if self._signature is refused:
                await self._renew()
            return self._signature is not refused

    def _is_stale(self) -> bool:
        return self._read_at is None or self._now() - self._read_at >= REREAD_SECONDS

    async def _renew(self) -> None:
        try:
            found = await asyncio.to_thread(self._read)
        except CredentialsError as error:
            if self._signature is None:
                raise
            logger.warning("credentials not renewed; the last ones stay in use", problem=str(error))
        else:
            if not found.equals(self._signature):
                self._signature = found
        self._read_at = self._now()


class Both:
    """Two credentials at once: the headers of the one, the client certificate of the other."""

    def __init__(self, header: Credentials, certificate: Credentials) -> None:
        self._parts = (header, certificate)
        self._signed: tuple[Signature, Signature] | None = None
        self._signature = Signature()

    def __repr__(self) -> str:
        return f"<{self._parts[0]!r} and {self._parts[1]!r}>"

    async def sign(self) -> Signature:
        """The two signatures as one."""
        header, certificate = await self._parts[0].sign(), await self._parts[1].sign()
        if self._signed is None or self._signed[0] is not header or self._signed[1] is not certificate:
            self._signed = (header, certificate)
            self._signature = Signature(header.headers, certificate.certificate)
        return self._signature

    async def refresh(self, refused: Signature) -> bool:
        """Renews both, for the server does not say which one it disliked."""
        if self._signed is None or self._signature is not refused:
            return True
        header, certificate = self._signed
        renewed = [await self._parts[0].refresh(header), await self._parts[1].refresh(certificate)]
        return any(renewed)


class LoopLock:
    """A lock for objects that outlive an event loop: asyncio's own belongs to the loop that first contends for it."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()

    def of_this_loop(self) -> asyncio.Lock:
        """The lock that tasks of the running loop share."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._lock = loop, asyncio.Lock()
        return self._lock


def bearer(token: str) -> dict[str, str]:
    """The header that carries a token; raises ValueError for what cannot be one, without quoting it."""
    token = token.strip()
    if not token:
        raise ValueError("the token is empty")
    if not token.isascii() or not token.isprintable():
        raise ValueError("the token holds characters that no header can carry (a line break, perhaps)")
    return {"Authorization": f"Bearer {token}"}


def _cause(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not ASCII"
    return (isinstance(error, OSError) and error.strerror) or str(error)
