"""Keeps going what the server does by itself, whatever befalls it: a full disk passes, and a faulty object too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

PAUSE = 1.0

_log = structlog.get_logger(__name__)


async def lasting(what: str, run: Callable[[], Awaitable[None]]) -> None:
    """Runs something that follows the state for ever; where it fails, the server goes on and it is begun anew."""
    while True:
        try:
            await run()
        except Exception:
            _log.exception("upkeep failed and is begun anew", upkeep=what)
        await asyncio.sleep(PAUSE)
