"""Clients that leave while nobody listens to them.

Who carries a client's words to a slow place stops reading meanwhile, and whoever does not read does not see that the
other end has gone. So a wait of that kind looks from time to time whether there is still somebody to wait for.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Coroutine
from typing import Any

from aiohttp import web

_LOOKS_EVERY = 1.0
_GONE = select.POLLHUP | select.POLLRDHUP | select.POLLERR


async def while_connected(request: web.Request, waiting: Coroutine[Any, Any, None]) -> None:
    """Waits for something; raises ConnectionResetError where the client leaves meanwhile."""
    task = asyncio.ensure_future(waiting)
    try:
        while not (await asyncio.wait({task}, timeout=_LOOKS_EVERY))[0]:
            if _has_left(request):
                raise ConnectionResetError("the client has left")
        await task
    finally:
        task.cancel()


def _has_left(request: web.Request) -> bool:
    transport = request.transport
    if transport is None or transport.is_closing():
        return True
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), _GONE)
    return any(events & _GONE for _, events in poll.poll(0))
