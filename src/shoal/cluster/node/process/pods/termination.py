"""How a container is ended: its hook, its signal, the time it has, and what happens when that is over.

The grace period covers all of it: the hook ``preStop`` and the wait for those that end before (sidecars) are taken
from it, and what is left is the time between the signal and the kill, though never less than two seconds. Who asks
again with a shorter period shortens what is under way.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from shoal.api.core.pod_details import ContainerDetails, PodDetails
from shoal.cluster.node.process.pods.course import LIVENESS, STARTUP
from shoal.cluster.node.process.pods.decisions import Stop

LEAST_GRACE = 2
"""Seconds that every program has to end by itself."""


class Signals(Protocol):
    """What ends processes."""

    async def signal(self, container: str, number: int) -> None:
        """Sends a signal to the main program of a container."""
        ...

    async def kill(self, container: str) -> None:
        """Ends all that runs in a container."""
        ...


def grace_period(pod: PodDetails, container: ContainerDetails, stop: Stop) -> int:
    """Seconds that a container has: what a deletion gave it, what the probe that it failed says, or the pod."""
    if stop.at_once:
        return 0
    given = pod.metadata.deletion_grace_period_seconds
    if given is not None:
        return given
    probe = {LIVENESS: container.liveness_probe, STARTUP: container.startup_probe}.get(stop.probe)
    if probe is not None and probe.termination_grace_period_seconds is not None:
        return probe.termination_grace_period_seconds
    own = pod.spec.termination_grace_period_seconds
    return own if own is not None else LEAST_GRACE


def stop_signal(container: ContainerDetails) -> int:
    """The signal that asks a container to end: SIGTERM unless it names another."""
    name = container.lifecycle.stop_signal
    real_time = re.fullmatch(r"SIGRTM(IN|AX)(?:([+-])(\d+))?", name)
    if real_time is not None:
        base = signal.SIGRTMIN if real_time[1] == "IN" else signal.SIGRTMAX
        offset = int(real_time[3] or 0)
        return int(base) + (-offset if real_time[2] == "-" else offset)
    return int(getattr(signal, name, signal.SIGTERM))


class Grace:
    """The time that an ending has left, which may become shorter while it is waited for."""

    def __init__(self, seconds: float) -> None:
        self._clock = asyncio.get_running_loop().time
        self._ends = self._clock() + seconds
        self._changed = asyncio.Event()

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._ends - self._clock())

    def shorten(self, seconds: float) -> None:
        """Leaves no more than this."""
        ends = self._clock() + seconds
        if ends < self._ends:
            self._ends = ends
            self._changed.set()

    def lengthen(self, seconds: float) -> None:
        """Leaves no less than this."""
        self._ends = max(self._ends, self._clock() + seconds)

    async def run_out(self) -> None:
        """Waits until nothing is left."""
        while self.left > 0:
            self._changed.clear()
            try:
                async with asyncio.timeout(self.left):
                    await self._changed.wait()
            except TimeoutError:
                continue


async def terminate(
    signals: Signals,
    container: str,
    *,
    number: int,
    grace: Grace,
    ended: asyncio.Event,
    hook: Callable[[], Coroutine[Any, Any, None]] | None = None,
    turn: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Ends a container (by its id), and returns when it has ended.

    ``hook`` is what is done before; ``turn`` returns when those that are to end before it have.
    """
    for before in (hook, turn):
        if before is not None and grace.left > 0 and not ended.is_set():
            await first_of(before(), ended.wait(), grace.run_out())
    if not ended.is_set():
        grace.lengthen(LEAST_GRACE)
        await signals.signal(container, number)
        await first_of(ended.wait(), grace.run_out())
    if not ended.is_set():
        await signals.kill(container)
    await ended.wait()


async def first_of(*waits: Awaitable[object]) -> None:
    """Returns when one of these is done, and gives up the others; what the first one raises is raised."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
