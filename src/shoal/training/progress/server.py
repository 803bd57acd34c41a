"""The HTTPS server that takes reports, on every replica.

A report is applied as the field manager ``trainer-status``, which owns nothing but ``status.trainerStatus``: what a
report leaves out disappears, and what the controller says of the TrainJob stays.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final

import structlog
from aiohttp import web

from shoal.api.trainer import TRAIN_JOBS, names
from shoal.kube import ApiError, Client, ConnectionFault, Manager, NotFound
from shoal.kube.admission import Webhooks
from shoal.kube.admission.certs import CertificateSource
from shoal.kube.admission.server import AdmissionServer
from shoal.kube.probes import Probes
from shoal.training.framework import Unbuildable
from shoal.training.plugins.train_job_status import StatusServer, audience, report_path
from shoal.training.progress.reports import (
    LIMIT,
    Refusal,
    bearer_token,
    forbidden,
    not_found,
    too_large,
    trainer_status,
)
from shoal.training.progress.tokens import Tokens

log = structlog.get_logger("shoal.training.progress")

PORT: Final = 10443
_PATIENCE: Final = 10.0
"""Seconds that a client has to send its report."""


class Reports:
    """Takes reports, and writes what they say."""

    def __init__(self, client: Client, tokens: Tokens | None = None) -> None:
        self._client = client
        self._tokens = tokens or Tokens(client)

    async def answer(self, request: web.Request) -> web.Response:
        """The answer to one request: what was taken of the report, else a Status that says why nothing was."""
        try:
            taken = await self._take(request)
        except Refusal as refusal:
            return web.json_response(refusal.body, status=refusal.code)
        except (ApiError, ConnectionFault) as error:
            log.warning("report not written", path=request.path, error=str(error))
            failure = Refusal(500, "InternalError", "Internal error")
            return web.json_response(failure.body, status=failure.code)
        return web.json_response(taken)

    async def nothing_here(self, request: web.Request) -> web.Response:
        """The answer to requests for any other place."""
        refusal = not_found("Not found")
        return web.json_response(refusal.body, status=refusal.code)

    async def _take(self, request: web.Request) -> dict[str, Any]:
        """Writes what a report says, and gives what of it was written."""
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        token = bearer_token(request.headers.get("Authorization", ""))
        if await self._tokens.namespace(token, audience(namespace, name)) != namespace:
            raise forbidden()
        status = trainer_status(await _read(request))
        if status is None:
            return {}
        await self._write(namespace, name, status)
        return {"trainerStatus": status}

    async def _write(self, namespace: str, name: str, status: dict[str, Any]) -> None:
        whole = {"metadata": {"name": name, "namespace": namespace}, "status": {"trainerStatus": status}}
        try:
            await self._client.apply(
                TRAIN_JOBS.documents(),
                whole,
                namespace,
                name=name,
                field_manager=names.STATUS_FIELD_MANAGER,
                force=True,
                subresource="status",
            )
        except NotFound as error:
            raise not_found("Train job not found") from error
        except ApiError as error:
            if error.code in (400, 422):
                raise Refusal(422, "Invalid", error.message) from error
            raise


class ProgressServer:
    """Serves reports with a certificate that is renewed while it runs."""

    def __init__(
        self,
        client: Client,
        *,
        host: str = "0.0.0.0",  # noqa: S104 - pods call
        port: int = PORT,
        listener: socket.socket | None = None,
    ) -> None:
        reports = _Routes(Reports(client))
        self._server = AdmissionServer(Webhooks(), host=host, port=port, listener=listener, probes=reports)
        self._authorities = b""

    @property
    def port(self) -> int:
        """The port it listens on, also where any free one was asked for."""
        return self._server.port

    async def run(self, certificates: CertificateSource) -> None:
        """Serves until cancelled."""
        await self._server.run(certificates, inject=self._learn)

    def authority(self) -> str:
        """The certificates by which programs know this server, in PEM. Raises Unbuildable where there are none yet."""
        if not self._authorities:
            raise Unbuildable("the status server has no certificate yet: this passes by itself")
        return self._authorities.decode()

    def known_as(self, host: str, port: int = PORT) -> StatusServer:
        """What plugins tell programs of this server: its name in the cluster, and the port of its Service."""
        return StatusServer(url=f"https://{host}:{port}", authority=self.authority)

    async def _learn(self, authorities: bytes) -> None:
        self._authorities = authorities


def add_progress(
    manager: Manager,
    client: Client,
    certificates: CertificateSource,
    *,
    service: str,
    namespace: str = names.SYSTEM_NAMESPACE,
    listener: socket.socket | None = None,
) -> StatusServer:
    """Adds the server to every process, leading or not; gives what the controllers' settings need to tell of it.

    ``client`` is one of its own, since a manager's writes only while it leads, and is closed in the end. It listens on
    ``PORT`` of all addresses, or by ``listener``.
    """
    server = ProgressServer(client, listener=listener)

    async def run() -> None:
        try:
            await server.run(certificates)
        finally:
            await client.close()

    manager.add_service(run)
    return server.known_as(f"{service}.{namespace}.svc")


class _Routes(Probes):
    """The routes of reports beside those of probes; the server for webhooks has all that serving them takes."""

    def __init__(self, reports: Reports) -> None:
        super().__init__()
        self._reports = reports

    def routes(self) -> list[web.RouteDef]:
        path = report_path("{namespace}", "{name}")
        return [
            *super().routes(),
            web.post(path, self._reports.answer),
            web.route("*", "/{rest:.*}", self._reports.nothing_here),
        ]


async def _read(request: web.Request) -> bytes:
    """The body of a request. Raises Refusal where it is too long, or too long in coming."""
    if request.content_length is not None and request.content_length > LIMIT:
        raise too_large()
    body = bytearray()
    try:
        async with asyncio.timeout(_PATIENCE):
            async for part in request.content.iter_any():
                body += part
                if len(body) > LIMIT:
                    raise too_large()
    except TimeoutError as error:
        raise Refusal(408, "Timeout", "The report did not arrive in time") from error
    return bytes(body)
