"""Credentials from a program: the exec plugins of kubeconfig (client.authentication.k8s.io).

The program is told what it may need in KUBERNETES_EXEC_INFO and prints an ExecCredential: a token, a client
certificate, or both, and when they end. What it printed is kept until shortly before that moment; a refusal (401)
makes it run again. However many requests wait, it runs once, and they share its success or its failure.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
import structlog

from shoal.kube.credentials import CredentialsError, LoopLock, Signature, bearer
from shoal.kube.tls import ClientCertificate, TlsError, check_certificate

logger = structlog.get_logger(__name__)

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
InteractiveMode = Literal["Never", "IfAvailable", "Always"]

EARLY_SECONDS = 60.0
"""How long before their end credentials are renewed; for short-lived ones, the last tenth of their life."""
PAUSE_SECONDS = 5.0
"""How soon after a refusal, or a failure, another makes the program run again: a server that refuses all must not make
it spin."""


@dataclass(frozen=True, kw_only=True)
class ExecCommand:
    """What to run, as a kubeconfig says it."""

    api_version: str
    command: str
    args: Sequence[str] = ()
    env: Sequence[tuple[str, str]] = ()
    interactive: InteractiveMode = "IfAvailable"
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None
    """What the program is told of the cluster, where it asked for it."""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class ExecPlugin:
    """Credentials that a program prints."""

    def __init__(
        self, command: ExecCommand, *, timeout: float | None = None, now: Callable[[], float] = time.time
    ) -> None:
        """``timeout`` is by default a minute, or five where a person may have to sign in."""
        self._command = command
        self._timeout = timeout
        self._now = now
        self._lock = LoopLock()
        self._runs = 0
        self._signature: Signature | None = None
        self._failure: CredentialsError | None = None
        self._pause_until = 0.0
        self._renew_at: float | None = None
        self._ends_at: float | None = None

    def __repr__(self) -> str:
        return f"<exec plugin {self._command.command}>"

    async def sign(self) -> Signature:
        """What the program printed last, unless it has ended or is about to."""
        signature = self._signature
        now = self._now()
        if signature is not None and (self._renew_at is None or now < self._renew_at):
            return signature
        lock = self._lock.of_this_loop()
        still_good = signature is not None and (self._ends_at is None or now < self._ends_at)
        if signature is not None and still_good and (lock.locked() or now < self._pause_until):
            return signature
        try:
            return await self._renewed(signature)
        except CredentialsError as error:
            if signature is None or not still_good:
                raise
            logger.warning("credentials not renewed; the last ones stay in use", problem=str(error))
            return signature

    async def refresh(self, refused: Signature) -> bool:
        """Runs the program again, unless it has run since this signature was given out, or for a refusal just now."""
        if self._signature is refused and self._now() < self._pause_until:
            return False
        try:
            return await self._renewed(refused) is not refused
        finally:
            self._pause_until = self._now() + PAUSE_SECONDS

    async def _renewed(self, known: Signature | None) -> Signature:
        """Another signature than ``known`` where the program gives one; concurrent callers share one run."""
        runs = self._runs
        async with self._lock.of_this_loop():
            if self._runs != runs:
                if self._failure is not None:
                    raise CredentialsError(str(self._failure))
            elif self._signature is None or self._signature is known:
                await self._run_once()
            assert self._signature is not None
            return self._signature

    async def _run_once(self) -> None:
        try:
            signature, ends_at = await self._run()
        except CredentialsError as error:
            self._runs += 1
            self._failure = error
            self._pause_until = self._now() + PAUSE_SECONDS
            raise
        self._runs += 1
        self._failure = None
        self._ends_at = ends_at
        self._renew_at = None
        if ends_at is not None:
            self._renew_at = ends_at - min(EARLY_SECONDS, max(0.0, ends_at - self._now()) / 10)
        if not signature.equals(self._signature):
            self._signature = signature

    async def _run(self) -> tuple[Signature, float | None]:
        command = self._command
        interactive = self._is_interactive()
        described = f"exec plugin {command.command}"
        timeout = self._timeout if self._timeout is not None else (300.0 if interactive else 60.0)
        try:
            status, output, complaint = await run_plugin(command, interactive=interactive, within=timeout)
        except TimeoutError as error:
            raise CredentialsError(f"{described} did not end within {timeout:g} s") from error
        except OSError as error:
            hint = f"; {command.install_hint.strip()}" if command.install_hint.strip() else ""
            raise CredentialsError(f"{described} cannot be run: {error.strerror or error}{hint}") from error
        if status != 0:
            last_words = f": {complaint}" if complaint else ""
            raise CredentialsError(f"{described} failed with exit code {status}{last_words}")
        try:
            return read_credential(output, api_version=command.api_version)
        except (ValueError, TlsError) as error:
            raise CredentialsError(f"{described} printed no usable ExecCredential: {error}") from error

    def _is_interactive(self) -> bool:
        is_terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
        if self._command.interactive == "Always" and not is_terminal:
            raise CredentialsError(
                f"exec plugin {self._command.command} asks on the terminal (interactiveMode: Always), "
                "and standard input is none: sign in by hand first, or use another user"
            )
        return is_terminal and self._command.interactive != "Never"


async def run_plugin(command: ExecCommand, *, interactive: bool, within: float) -> tuple[int, bytes, str]:
    """Exit code, standard output and the last words on standard error; leaves no process behind."""
    spec: dict[str, Any] = {"interactive": interactive}
    if command.cluster is not None:
        spec["cluster"] = dict(command.cluster)
    told = {"apiVersion": command.api_version, "kind": "ExecCredential", "spec": spec}
    environment = dict(os.environ) | dict(command.env) | {"KUBERNETES_EXEC_INFO": msgspec.json.encode(told).decode()}
    process = await asyncio.create_subprocess_exec(
        command.command,
        *command.args,
        env=environment,
        stdin=None if interactive else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        # A person must see what an interactive program says; a controller wants it in the error.
        stderr=None if interactive else asyncio.subprocess.PIPE,
        # In a session of its own all its children can be ended with it; one that asks needs our terminal.
        start_new_session=not interactive,
    )
    try:
        async with asyncio.timeout(within):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            await _end(process, with_children=not interactive)
    assert process.returncode is not None
    return process.returncode, output, _last_words(errors)


async def _end(process: asyncio.subprocess.Process, *, with_children: bool) -> None:
    with suppress(ProcessLookupError):
        if with_children:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    # Its pipes are closed by reading them to their end, which a child that got away may put off.
    with suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            await process.communicate()
    await process.wait()


def read_credential(output: bytes, *, api_version: str) -> tuple[Signature, float | None]:
    """What an ExecCredential gives, and when it ends; raises ValueError or TlsError, which quote no secret."""
    try:
        credential = msgspec.json.decode(output, type=_ExecCredential)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
    if credential.kind != "ExecCredential" or credential.api_version != api_version:
        raise ValueError(
            f"it is {credential.api_version or 'no version'} {credential.kind or 'of no kind'}, "
            f"where the kubeconfig asks for {api_version} ExecCredential"
        )
    status = credential.status
    if status is None or not (status.token or status.client_certificate_data or status.client_key_data):
        raise ValueError("it holds neither status.token nor a client certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ValueError("of status.clientCertificateData and status.clientKeyData it holds only one")
    ends = [status.expiration_timestamp] if status.expiration_timestamp else []
    certificate = None
    if status.client_certificate_data:
        certificate = ClientCertificate(status.client_certificate_data.encode(), status.client_key_data.encode())
        check_certificate(certificate)
        ends.append(certificate.expires())
    headers = bearer(status.token) if status.token else {}
    return Signature(headers, certificate), min((end.timestamp() for end in ends), default=None)


def _last_words(errors: bytes | None) -> str:
    lines = (errors or b"")[-4096:].decode(errors="replace").split("\n")
    spoken = [line.strip() for line in lines if line.strip()]
    return spoken[-1][:300] if spoken else ""


def resolve_command(command: str, directory: Path) -> str:
    """A command with a slash is a path relative to its kubeconfig; one without is looked up in PATH."""
    return str(directory / command) if os.sep in command else command
