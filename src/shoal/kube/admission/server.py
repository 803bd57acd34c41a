"""The HTTPS server that an API server calls, and the certificate it shows.

Certificates are changed while it runs. Every handshake asks for the newest TLS context (the server-name callback is
called for clients that send no name, too); a connection that is up keeps the one it began with. A fresh context for
each certificate, rather than loading into the one in use, means that a certificate that cannot be loaded harms nothing,
and that an ECDSA certificate does not linger beside an RSA one that replaces it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import structlog
from aiohttp import web

from shoal.kube.admission.certs import CertificateSource, Serving
from shoal.kube.admission.conversion import CONVERT_PATH
from shoal.kube.admission.endpoint import admission_answer, conversion_answer, endpoint
from shoal.kube.admission.metrics import WebhookMetrics
from shoal.kube.admission.webhooks import Webhooks
from shoal.kube.backoff import Backoff
from shoal.kube.certificates import CertificateError, KeyPair, load_into
from shoal.kube.errors import ApiError, ConnectionFault
from shoal.kube.probes import Probes

log = structlog.get_logger("shoal.kube.admission.server")

Injection: TypeAlias = Callable[[bytes], Awaitable[object]]

BODY_LIMIT = 7 * 1024 * 1024
"""Two objects of the largest size that an API server takes, and something around them."""
CONVERSION_LIMIT = 64 * 1024 * 1024
"""Many objects are converted in one request."""
_CLIENTS_GIVE_UP_FIRST = 120.0


class AdmissionServer:
    """Serves webhooks over HTTPS, and ``/healthz`` and ``/readyz`` beside them.

    With ``client_authorities`` only clients that show a certificate of theirs are let in. A ``listener`` that is open
    already takes the place of host and port: whoever connects while no server runs waits instead of being refused.
    """

    def __init__(
        self,
        webhooks: Webhooks,
        *,
        host: str = "0.0.0.0",  # noqa: S104 - API servers call from other machines
        port: int = 9443,
        listener: socket.socket | None = None,
        metrics: WebhookMetrics | None = None,
        probes: Probes | None = None,
        client_authorities: bytes = b"",
        body_limit: int = BODY_LIMIT,
        shutdown_seconds: float = 5.0,
    ) -> None:
        self.metrics = metrics or WebhookMetrics()
        self._webhooks = webhooks
        self._probes = probes or Probes()
        self._host = host
        self._port = port
        self._listener = listener
        self._client_authorities = client_authorities.decode()
        self._body_limit = body_limit
        self._shutdown_seconds = shutdown_seconds
        self._pair: KeyPair | None = None
        self._context: ssl.SSLContext | None = None
        self._runner: web.AppRunner | None = None
        self._looking = asyncio.Event()

    @property
    def port(self) -> int:
        """The port it listens on, also where any free one was asked for."""
        if self._runner is None:
            return self._port
        return int(self._runner.addresses[0][1])

    def check(self) -> str:
        """Why no review can be answered yet, or nothing where it can: a check for readiness."""
        return "" if self._runner is not None else "the admission server waits for its certificate"

    async def run(
        self,
        certificates: CertificateSource,
        *,
        inject: Injection | None = None,
        backoff: Backoff = Backoff(initial=0.2, cap=10.0, jitter=0.2),
    ) -> None:
        """Serves until cancelled, follows the certificates, and has their bundle injected wherever it is missing.

        The bundle is empty where the source knows none. Injection is tried at every turn, not only after a change,
        since others may undo it; ``look_again`` makes the next turn come at once. Faults are waited out.
        """
        failures = 0
        try:
            while True:
                try:
                    serving = await self._read(certificates)
                    self.use(serving.pair)
                    await self.start()
                    if inject is not None:
                        await inject(serving.authorities)
                    failures = 0
                except (ApiError, ConnectionFault, CertificateError) as error:
                    failures += 1
                    log.warning("certificates are not in order", problem=str(error), failures=failures)
                delay = min(backoff.delay(failures), certificates.interval) if failures else certificates.interval
                await self._rest(delay)
        finally:
            await self.stop()

    def look_again(self) -> None:
        """Looks at certificates and bundles now, instead of when the source's interval has passed."""
        self._looking.set()

    async def _rest(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._looking.wait()
        self._looking.clear()

    def use(self, pair: KeyPair) -> None:
        """Serves this certificate to every connection from now on; raises CertificateError where it does not load."""
        if pair == self._pair:
            return
        context = self._new_context()
        load_into(context, pair)
        self._pair, self._context = pair, context
        log.info("serving certificate loaded")

    async def start(self) -> None:
        """Listens, if it does not yet; a certificate must have been given by ``use``."""
        if self._runner is not None:
            return
        if self._context is None:
            raise CertificateError("a server cannot start without a certificate: call use() first")
        listening = self._new_context()
        listening.sni_callback = self._choose_context
        # API servers close idle connections after 90 seconds. If we were first, a request might just be on its way.
        runner = web.AppRunner(
            self._application(),
            keepalive_timeout=_CLIENTS_GIVE_UP_FIRST,
            access_log=None,
            handle_signals=False,
            handler_cancellation=True,
            shutdown_timeout=self._shutdown_seconds,
        )
        await runner.setup()
        try:
            if self._listener is not None:
                site: web.BaseSite = web.SockSite(runner, self._listener, ssl_context=listening)
            else:
                site = web.TCPSite(runner, self._host, self._port, ssl_context=listening)
            await site.start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        log.info("admission server listens", host=runner.addresses[0][0], port=self.port)

    async def stop(self) -> None:
        """Stops listening, and lets requests that are being answered finish."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def _new_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # No resumption: whoever connects again sees, and verifies, the certificate of the day.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        if self._client_authorities:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self._client_authorities)
        return context

    def _choose_context(self, handshake: ssl.SSLObject, name: str | None, listening: ssl.SSLContext) -> None:
        assert self._context is not None
        handshake.context = self._context

    def _application(self) -> web.Application:
        application = web.Application()
        for webhook in self._webhooks:
            answer = admission_answer(webhook, self.metrics)
            application.router.add_post(webhook.path, endpoint(webhook.path, answer, self.metrics, self._body_limit))
        if self._webhooks.conversions:
            answer = conversion_answer(self._webhooks.conversions, self.metrics)
            application.router.add_post(CONVERT_PATH, endpoint(CONVERT_PATH, answer, self.metrics, CONVERSION_LIMIT))
        application.add_routes(self._probes.routes())
        return application

    async def _read(self, certificates: CertificateSource) -> Serving:
        try:
            serving = await certificates.current()
        except Exception:
            self.metrics.certificate_errors.inc()
            raise
        self.metrics.certificate_reads.inc()
        return serving
