"""A chain whose webhooks are asked over real HTTPS: our own admission server, or one that answers as a test wants."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from shoal.cluster.apiserver.admission import Chain
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.kube.admission import (
    AdmissionRequest,
    AdmissionServer,
    Allowed,
    Patched,
    UrlEndpoint,
    Verdict,
    Webhooks,
)
from shoal.kube.admission.configuration import mutating_configuration, validating_configuration
from shoal.kube.certificates import KeyPair, load_into
from tests.cluster.apiserver.admission.memory import (
    Memory,
    a_kind,
    a_namespace,
    an_account,
    creating,
)
from tests.support.builders.reviews import QUEUES

QUEUE = a_kind("Queue", "queues", "shoal.test", "v2")
MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"


class Serving:
    """A chain over a memory whose configurations call our own admission server."""

    def __init__(self, webhooks: Webhooks, authority: KeyPair, pair: KeyPair) -> None:
        self.state = Memory(a_namespace("default"), a_namespace("team", env="test"), an_account())
        self._webhooks = webhooks
        self._authority = authority
        self._server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
        self._server.use(pair)
        self.chain = Chain(self.state)

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self._server.port}"

    async def __aenter__(self) -> Serving:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.chain.close()
        await self._server.stop()

    async def configure(self, **more: Any) -> None:
        """Serves all webhooks and tells the chain of them; ``more`` changes each entry."""
        await self._server.start()
        endpoint = UrlEndpoint(f"https://{self.place}")
        for storage, make in ((MUTATING, mutating_configuration), (VALIDATING, validating_configuration)):
            made = make("ours", self._webhooks, endpoint, authorities=self._authority.certificate)
            made["webhooks"] = [each | more for each in made["webhooks"]]
            self.state.put(storage, made)

    async def admit(self, value: Object, kind: Kind = QUEUE, **more: Any) -> Any:
        request = creating(kind, value, **more)
        await self.chain.mutate(request)
        await self.chain.validate(request)
        return request


def a_rule(webhooks: Webhooks, kind: Any, function: Any, path: str = "/x", **options: Any) -> list[AdmissionRequest]:
    """Registers a webhook that answers by ``function``; gives the list that its requests come into."""
    seen: list[AdmissionRequest] = []

    @webhooks.reviewing(kind, QUEUES, path=path, name=f"{path.strip('/')}.shoal.test", **options)
    async def review(request: AdmissionRequest) -> Verdict:
        seen.append(request)
        verdict: Verdict = function(request)
        return verdict

    return seen


def raise_weight(request: AdmissionRequest) -> Verdict:
    return Patched([{"op": "add", "path": "/spec/weight", "value": 5}], warnings=("weights will go",))


Handler = Callable[[web.Request], Awaitable[web.Response]]


@asynccontextmanager
async def answering(handler: Handler, pair: KeyPair, authority: KeyPair, kind: str) -> AsyncIterator[Serving]:
    """A chain whose one webhook is a server that answers as the test wants."""
    application = web.Application()
    application.router.add_post("/x", handler)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_into(context, pair)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    port = runner.addresses[0][1]
    webhooks = Webhooks()
    a_rule(webhooks, kind, lambda _: Allowed())
    bundle = base64.b64encode(authority.certificate).decode()
    async with Serving(webhooks, authority, pair) as serving:
        await serving.configure(
            clientConfig={"url": f"https://127.0.0.1:{port}/x", "caBundle": bundle}, timeoutSeconds=1
        )
        yield serving
    await runner.cleanup()
