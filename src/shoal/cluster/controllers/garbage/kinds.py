"""Keeps the monitors equal to what the server serves, from one change of its kinds to the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import structlog

from shoal.api.apiextensions import DEFINITIONS
from shoal.cluster.controllers.discovery import Discovered, discover
from shoal.cluster.controllers.garbage.definitions import (
    API_SERVICES,
    Place,
    defined_places,
    lags_behind,
)
from shoal.cluster.controllers.garbage.monitors import Monitor, Monitors
from shoal.kube import ApiError, Change, ConnectionFault, Manager
from shoal.kube.backoff import Backoff

log = structlog.get_logger("shoal.cluster.garbage")

SYNC_WITHIN = 5.0
"""Seconds that the first pictures of new kinds have; those that come later are looked at when they come."""
AGAIN = Backoff(initial=0.1, cap=30.0, jitter=0.2)
"""When to ask once more what is served, where the answer did not fit the definitions."""


class Kinds:
    """Asks what is served when a definition says that it may differ; ``known`` is told when that was taken in."""

    def __init__(self, manager: Manager, monitors: Monitors, known: Callable[[], None]) -> None:
        self._client = manager.client
        self._cache = manager.cache
        self._monitors = monitors
        self._known = known
        self._wake = asyncio.Event()
        self._defined: set[Place] = set()
        self._hears_of_services = False

    async def run(self) -> None:
        """Follows the kinds until cancelled."""
        definitions = self._cache.informer(DEFINITIONS, is_vital=False)
        definitions.subscribe(self._may_differ)
        self._wake.set()
        failures = 0
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN.delay(failures) if failures else None):
                    await self._wake.wait()
            self._wake.clear()
            defined = defined_places(definitions.items())
            if await self._take_in(defined):
                failures = 0
                self._defined = defined
            else:
                failures += 1

    def _may_differ(self, change: Change[Any]) -> None:
        self._wake.set()

    async def _take_in(self, defined: set[Place]) -> bool:
        """Follows what is served; False where that is not yet what the definitions say."""
        try:
            discovered = await discover(self._client)
        except (ApiError, ConnectionFault, msgspec.DecodeError) as error:
            log.warning("kinds not discovered", error=str(error))
            return False
        self._hear_of_services(discovered)
        new = self._monitors.sync(discovered)
        await _first_pictures(new)
        for monitor in new:
            self._monitors.listen(monitor)
        self._known()
        return not discovered.failures and not lags_behind(discovered, defined=defined, before=self._defined)

    def _hear_of_services(self, discovered: Discovered) -> None:
        """A server that passes requests on to others says so in a kind of its own."""
        if not self._hears_of_services and any(one.resource == API_SERVICES for one in discovered.kinds):
            self._hears_of_services = True
            self._cache.informer(API_SERVICES, is_vital=False).subscribe(self._may_differ)


async def _first_pictures(monitors: Sequence[Monitor]) -> None:
    """Waits a little until kinds have been read, so that owners are seen before their dependents are looked at."""
    try:
        async with asyncio.timeout(SYNC_WITHIN):
            for monitor in monitors:
                # One that the server refuses to list is not worth the wait.
                while not monitor.informer.has_synced and not monitor.informer.problem:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
    except TimeoutError:
        late = [str(monitor.resource) for monitor in monitors if not monitor.informer.has_synced]
        log.warning("kinds not read yet: going on without them", resources=late)
