"""One path of the admission server: reads a review, has it judged, answers, and counts.

A rule that raises is that rule's fault alone: the request is refused with 500 and says so, the fault is counted and
logged, and every other webhook goes on. What is no review at all is answered by an HTTP error.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import structlog
from aiohttp import web

from shoal.kube.admission import conversion
from shoal.kube.admission.conversion import Conversions
from shoal.kube.admission.metrics import WebhookMetrics
from shoal.kube.admission.verdicts import Denied, Verdict, response
from shoal.kube.admission.webhooks import Webhook
from shoal.kube.admission.wire import (
    AdmissionRequest,
    BadReview,
    read_admission,
    read_conversion,
    write_admission,
    write_conversion,
)

log = structlog.get_logger("shoal.kube.admission.endpoint")

Answer: TypeAlias = Callable[[bytes, float], Awaitable[bytes]]
"""From a body, and the seconds it may take, to a body."""
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.Response]]

LONGEST_WAIT = 30.0
"""The most that a webhook's configuration can ask for."""


def endpoint(path: str, answer: Answer, metrics: WebhookMetrics, body_limit: int) -> Handler:
    """The handler of one path."""
    metrics.announce(path)
    in_flight, latency = metrics.in_flight.labels(path), metrics.latency.labels(path)

    async def handler(request: web.Request) -> web.Response:
        started = time.perf_counter()
        in_flight.inc()
        status = 500
        try:
            reply = await _replied(request, answer, body_limit)
            status = reply.status
            return reply
        finally:
            in_flight.dec()
            latency.observe(time.perf_counter() - started)
            metrics.requests.labels(path, str(status)).inc()

    return handler


def admission_answer(webhook: Webhook, metrics: WebhookMetrics) -> Answer:
    """Answers an AdmissionReview with a webhook's verdict."""

    async def answer(body: bytes, seconds: float) -> bytes:
        request = read_admission(body)
        verdict = await _judged(webhook, request, seconds, metrics)
        if isinstance(verdict, Denied):
            log.info(
                "change refused",
                webhook=webhook.name,
                operation=str(request.operation),
                resource=request.resource.resource,
                namespace=request.namespace,
                name=request.name,
                user=request.user_info.username,
                why=verdict.message,
            )
        return write_admission(response(verdict, request))

    return answer


def conversion_answer(conversions: Conversions, metrics: WebhookMetrics) -> Answer:
    """Answers a ConversionReview."""

    def on_fault(error: Exception) -> None:
        metrics.conversion_panics.inc()
        log.error("conversion failed", exc_info=error)

    async def answer(body: bytes, seconds: float) -> bytes:
        return write_conversion(conversion.answer(conversions, read_conversion(body), on_fault=on_fault))

    return answer


async def _replied(request: web.Request, answer: Answer, body_limit: int) -> web.Response:
    if request.content_type != "application/json":
        return _refused(415, f"the content type must be application/json, not {request.content_type}")
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > body_limit:
            return _refused(413, f"the body is larger than {body_limit} bytes")
    try:
        reply = await answer(bytes(body), seconds_allowed(request.query.get("timeout", "")))
    except BadReview as error:
        return _refused(400, str(error))
    return web.Response(body=reply, content_type="application/json")


async def _judged(webhook: Webhook, request: AdmissionRequest, seconds: float, metrics: WebhookMetrics) -> Verdict:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await webhook.review(request)
    except Exception as error:
        # Rules are others' code: whatever they raise is the answer to this one request.
        if isinstance(error, TimeoutError) and limit.expired():
            log.warning("no verdict in time", webhook=webhook.name, seconds=seconds)
            return Denied(f"webhook {webhook.name} found no verdict within {seconds:g} s", 504, "Timeout")
        metrics.panics.inc()
        log.exception("rule failed", webhook=webhook.name, path=webhook.path)
        message = f"webhook {webhook.name} failed and refuses to be safe: {type(error).__name__}: {error}"
        return Denied(message, 500, "InternalError")


_TIMEOUT = re.compile(r"(?P<amount>\d+(\.\d+)?)(?P<unit>ms|s)")


def seconds_allowed(timeout: str) -> float:
    """How long the API server will wait, as it says in the query: ``10s``."""
    found = _TIMEOUT.fullmatch(timeout)
    if found is None:
        return LONGEST_WAIT
    return min(float(found["amount"]) * (0.001 if found["unit"] == "ms" else 1.0), LONGEST_WAIT)


def _refused(status: int, message: str) -> web.Response:
    log.warning("request is no review", status=status, problem=message)
    return web.Response(status=status, text=message + "\n")
