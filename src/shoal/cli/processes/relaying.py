"""Some paths of one port, answered by another process over its Unix socket: bytes pass as they come, both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from aiohttp import ClientConnectionError, ClientSession, ClientTimeout, UnixConnector, web

_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
        "host",
    }
)
"""Headers that are about one connection, and not about what it carries."""
_ANSWERS_WITHIN: Final = 10.0


class Relay:
    """Passes requests on to a process; close it when nobody asks any more."""

    def __init__(self, socket: Path, *, name: str) -> None:
        self._name = name
        self._session = ClientSession(
            connector=UnixConnector(path=str(socket), limit=0),
            timeout=ClientTimeout(total=None, sock_connect=_ANSWERS_WITHIN),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )

    async def close(self) -> None:
        """Lets go of all connections."""
        await self._session.close()

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        """Asks the process what was asked here, and answers what it answers, also where that never ends."""
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        try:
            answer = await self._session.request(
                request.method,
                f"http://{self._name}{request.raw_path}",
                headers=headers,
                data=await request.read() or None,
                allow_redirects=False,
            )
        except ClientConnectionError:
            message = f"the {self._name} does not answer: shoal status says how it is"
            return web.json_response({"error": message}, status=503, headers={"Retry-After": "1"})
        async with answer:
            shown = web.StreamResponse(status=answer.status, reason=answer.reason)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    shown.headers.add(name, value)
            shown.content_length = answer.content_length
            await shown.prepare(request)
            async for piece in answer.content.iter_any():
                await shown.write(piece)
            await shown.write_eof()
            return shown
