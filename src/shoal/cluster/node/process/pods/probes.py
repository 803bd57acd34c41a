"""Probing a container for as long as it runs: when it is asked, how often an answer must come, and what follows.

The startup probe comes first and holds back the others. A container is ready by its readiness probe, or as soon as it
has started where it has none; one that fails its liveness or startup probe is ended, and is asked nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

from shoal.api.core.pod_details import ContainerDetails, Probe
from shoal.cluster.node.process.pods.checks import Unaskable, Verdict
from shoal.cluster.node.process.pods.course import LIVENESS, STARTUP

Ask = Callable[[Probe], Awaitable[Verdict]]

READINESS = "readiness"
_TRIES = 3
"""How often a question is put that could not be put, before that is told."""
_FIRST_AGAIN = 1.0
"""Seconds after which a container that was never ready is asked again, then twice as long, up to its period."""


class Patient(Protocol):
    """Who is told what probes find."""

    def started(self) -> None:
        """It has passed its startup probe."""
        ...

    def ready(self, is_ready: bool) -> None:
        """It can serve, or cannot."""
        ...

    def failed(self, probe: str) -> None:
        """It has failed a probe for good."""
        ...

    def unwell(self, message: str) -> None:
        """A question had a bad answer, or none."""
        ...

    def odd(self, message: str) -> None:
        """A question had a good answer that is worth a word."""
        ...


class Tally:
    """Counts answers of the same kind: so many in a row decide."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._last: bool | None = None
        self._count = 0

    def decided(self, is_good: bool) -> bool:
        """Whether this answer, after those before it, decides."""
        self._count = self._count + 1 if is_good == self._last else 1
        self._last = is_good
        return self._count >= (self._probe.success_threshold if is_good else self._probe.failure_threshold)


async def attend(
    container: ContainerDetails,
    ask: Ask,
    patient: Patient,
    *,
    started_at: datetime,
    is_started: bool,
    is_ready: bool,
    now: Callable[[], datetime],
    only_readiness: bool = False,
) -> None:
    """Probes one run of a container until it has failed for good, or until cancelled.

    ``only_readiness`` is for a container that is being ended: whether it still serves is all that matters then.
    """
    if not is_started and container.startup_probe is not None:
        if only_readiness:
            return
        probe = container.startup_probe
        await _delay(probe, started_at, now)
        if not await _decision(probe, STARTUP, ask, patient, Tally(probe)):
            patient.failed(STARTUP)
            return
        patient.started()
    async with asyncio.TaskGroup() as tasks:
        if container.readiness_probe is not None:
            serving = _keep_ready(container.readiness_probe, ask, patient, started_at, now, is_ready)
            tasks.create_task(serving)
        if container.liveness_probe is not None and not only_readiness:
            tasks.create_task(_keep_alive(container.liveness_probe, ask, patient, started_at, now))


async def _keep_ready(
    probe: Probe, ask: Ask, patient: Patient, started_at: datetime, now: Callable[[], datetime], is_ready: bool
) -> None:
    await _delay(probe, started_at, now)
    tally = Tally(probe)
    again = _FIRST_AGAIN
    was_ready = is_ready
    while True:
        good = await _asked(probe, READINESS, ask, patient)
        if good is not None and tally.decided(good) and good != is_ready:
            is_ready = good
            patient.ready(good)
        was_ready = was_ready or is_ready
        # Nobody should have to wait for a whole period because the first question came while the program was loading.
        await asyncio.sleep(probe.period_seconds if was_ready else min(again, probe.period_seconds))
        again *= 2


async def _keep_alive(
    probe: Probe, ask: Ask, patient: Patient, started_at: datetime, now: Callable[[], datetime]
) -> None:
    await _delay(probe, started_at, now)
    tally = Tally(probe)
    is_well = True
    while is_well:
        is_well = await _decision(probe, LIVENESS, ask, patient, tally)
        await asyncio.sleep(probe.period_seconds if is_well else 0)
    patient.failed(LIVENESS)


async def _decision(probe: Probe, kind: str, ask: Ask, patient: Patient, tally: Tally) -> bool:
    """Asks until the answers decide."""
    while True:
        good = await _asked(probe, kind, ask, patient)
        if good is not None and tally.decided(good):
            return good
        await asyncio.sleep(probe.period_seconds)


async def _asked(probe: Probe, kind: str, ask: Ask, patient: Patient) -> bool | None:
    """One answer, told where it is bad; None where the question could not be put."""
    title = kind.capitalize()
    problem = ""
    for _ in range(_TRIES):
        try:
            verdict = await ask(probe)
        except Unaskable as error:
            problem = str(error)
            continue
        if not verdict.is_good:
            patient.unwell(f"{title} probe failed: {verdict.message}")
        elif verdict.message:
            patient.odd(f"{title} probe warning: {verdict.message}")
        return verdict.is_good
    patient.unwell(f"{title} probe errored and resulted in unknown state: {problem}")
    return None


async def _delay(probe: Probe, started_at: datetime, now: Callable[[], datetime]) -> None:
    ran = (now() - started_at).total_seconds()
    if probe.initial_delay_seconds > ran:
        await asyncio.sleep(probe.initial_delay_seconds - ran)
