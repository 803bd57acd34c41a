"""How long other clients wait while one of them sends what takes long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from ssl import SSLContext

import aiohttp
from yarl import URL

from bench.stalling.attacks import NAMESPACE, Attack, Sent, encoded

SMALL = f"/api/v1/namespaces/{NAMESPACE}"
_SERVED_WITHIN = 20.0


class WrongAnswer(Exception):
    """An attack was answered otherwise than it should be."""


@dataclass(frozen=True, kw_only=True)
class Suffered:
    """What came of an attack."""

    status: int
    content: bytes
    took: float
    """Seconds until the heavy request was answered."""
    waits: Sequence[float]
    """Seconds that each small request of the other client took meanwhile."""

    @property
    def worst(self) -> float:
        """The longest of them."""
        return max(self.waits)


@dataclass(kw_only=True)
class Clients:
    """One that attacks, and one that reads a small object again and again."""

    attacker: aiohttp.ClientSession
    reader: aiohttp.ClientSession
    _prepared: set[tuple[str, bytes]] = field(default_factory=set)

    async def suffer(self, attack: Attack) -> Suffered:
        """Prepares an attack, carries it out and measures the small requests from its beginning to its end."""
        for request in attack.prepares:
            await self._prepare(request)
        body = attack.request.body()
        await self._small()
        # A new kind is served a moment after its definition was accepted.
        deadline = time.monotonic() + _SERVED_WITHIN
        while (suffered := await self._attacked(attack.request, body)).status == 404:
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(0.05)
        if suffered.status not in attack.answers:
            raise WrongAnswer(f"{attack.name}: {suffered.status}: {suffered.content[:500].decode(errors='replace')}")
        return suffered

    async def _attacked(self, request: Sent, body: bytes) -> Suffered:
        done = asyncio.Event()
        waits: list[float] = []
        reading = asyncio.create_task(self._measure(waits, done))
        began = time.monotonic()
        try:
            status, content = await self._send(request, body)
        finally:
            took = time.monotonic() - began
            done.set()
            await reading
        return Suffered(status=status, took=took, waits=waits, content=content)

    async def _measure(self, waits: list[float], done: asyncio.Event) -> None:
        while not done.is_set():
            waits.append(await self._small())

    async def _small(self) -> float:
        began = time.monotonic()
        async with self.reader.get(SMALL) as response:
            await response.read()
            response.raise_for_status()
        return time.monotonic() - began

    async def _prepare(self, request: Sent) -> None:
        body = request.body()
        if (request.path, body) in self._prepared:
            return
        deadline = time.monotonic() + _SERVED_WITHIN
        while (await self._send(request, body))[0] == 404 and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        self._prepared.add((request.path, body))

    async def _send(self, request: Sent, body: bytes) -> tuple[int, bytes]:
        headers = {"Accept": request.accept, **({"Content-Type": request.content_type} if body else {})}
        url = URL(request.path, encoded=True)
        async with self.attacker.request(
            request.method, url, data=BytesIO(body) if body else None, headers=headers
        ) as response:
            return response.status, await response.read()


@asynccontextmanager
async def connected(server: str, token: str, tls: SSLContext) -> AsyncIterator[Clients]:
    """Two clients with connections of their own, and the namespace that they use."""

    def session() -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            server,
            headers={"Authorization": f"Bearer {token}"},
            connector=aiohttp.TCPConnector(ssl=tls),
            timeout=aiohttp.ClientTimeout(240),
        )

    async with session() as attacker, session() as reader:
        body = encoded({"metadata": {"name": NAMESPACE}})
        async with attacker.post("/api/v1/namespaces", data=body, headers={"Content-Type": "application/json"}) as made:
            assert made.status in (201, 409), await made.text()
        yield Clients(attacker=attacker, reader=reader)
