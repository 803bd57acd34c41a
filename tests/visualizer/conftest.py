"""The visualizer on a real port, and a client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from shoal.api.visualizer import ClusterView
from shoal.visualizer import PREFIX, Accepts, Publisher, catch_all, routes
from shoal.visualizer.events import Pace, Stream
from shoal.visualizer.library import Library
from shoal.visualizer.moments import Moments
from tests.visualizer.listening import Listener


class Answer:
    """What came back, all of it."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:

        return msgspec.json.decode(self.body)


class Visualizer:
    """A server and everything in it."""

    def __init__(self, *, auth: Accepts | None = None, pace: Pace = Pace(), moments: Moments | None = None) -> None:
        self.publisher = Publisher()
        self.library = Library()
        self.stream = Stream(self.publisher, self.library, pace=pace, moments=moments)
        self.routes = routes(self.publisher, auth, library=self.library, stream=self.stream)
        self.session: aiohttp.ClientSession
        self.base: str

    def publish(self, view: ClusterView) -> None:
        self.publisher.publish(view)

    async def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(method, self.base + path, headers=named) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, name: str, **headers: str) -> Answer:
        return await self.ask(f"{PREFIX}/{name}", **headers)

    async def json(self, name: str) -> Any:
        answer = await self.get(name)
        assert answer.status == 200, answer.text
        return answer.json

    @asynccontextmanager
    async def listening(
        self, query: str = "", *, after: Listener | None = None, **headers: str
    ) -> AsyncIterator[Listener]:
        """Listens; ``after`` goes on where another one has stopped, with what that one knew."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if after is not None:
            named["Last-Event-ID"] = after.last_id
        async with self.session.get(f"{self.base}{PREFIX}/events{query}", headers=named) as response:
            assert response.status == 200, await response.text()
            yield Listener(response, after)


@asynccontextmanager
async def closing(runner: web.AppRunner) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await runner.cleanup()


@asynccontextmanager
async def running(visualizer: Visualizer) -> AsyncIterator[Visualizer]:
    timeout = aiohttp.ClientTimeout(total=60)
    app = web.Application()
    app.add_routes([*visualizer.routes, catch_all()])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)  # those who still listen are not waited for
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    async with (
        closing(runner),
        aiohttp.ClientSession(auto_decompress=False, skip_auto_headers=["Accept-Encoding"], timeout=timeout) as session,
    ):
        visualizer.base, visualizer.session = f"http://127.0.0.1:{port}", session
        yield visualizer


@pytest.fixture
async def visualizer() -> AsyncIterator[Visualizer]:
    async with running(Visualizer()) as one:
        yield one
