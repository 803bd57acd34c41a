"""How long a container has to end, and what is done to it meanwhile."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

import pytest

from shoal.api.core.pod_details import PodDetails
from shoal.cluster.node.process.pods.course import LIVENESS, STARTUP
from shoal.cluster.node.process.pods.decisions import Stop
from shoal.cluster.node.process.pods.termination import Grace, grace_period, stop_signal, terminate
from tests.cluster.node.process.builders import a_local_pod

PROBED = {"name": "main", "livenessProbe": {"terminationGracePeriodSeconds": 7}, "startupProbe": {}}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3}


@pytest.mark.parametrize(
    ("pod", "stop", "grace"),
    [
        (a_local_pod(PROBED, terminationGracePeriodSeconds=30), {}, 30),
        (a_local_pod(PROBED, terminationGracePeriodSeconds=30), {"probe": LIVENESS}, 7),
        (a_local_pod(PROBED, terminationGracePeriodSeconds=30), {"probe": STARTUP}, 30),
        (a_local_pod(PROBED, terminationGracePeriodSeconds=30, metadata=DELETED), {"probe": LIVENESS}, 3),
        (a_local_pod(PROBED, terminationGracePeriodSeconds=30), {"at_once": True}, 0),
        (a_local_pod(PROBED), {}, 2),
    ],
    ids=["the pod's", "the probe's", "a probe without one", "what a deletion gave", "at once", "the least"],
)
def test_the_grace_period(pod: PodDetails, stop: dict[str, Any], grace: int) -> None:
    assert grace_period(pod, pod.spec.containers[0], Stop(container="main", message="", **stop)) == grace


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("", signal.SIGTERM),
        ("SIGUSR1", signal.SIGUSR1),
        ("SIGRTMIN", signal.SIGRTMIN),
        ("SIGRTMIN+3", signal.SIGRTMIN + 3),
        ("SIGRTMAX-2", signal.SIGRTMAX - 2),
        ("SIGNONSENSE", signal.SIGTERM),
    ],
)
def test_the_signal(name: str, number: int) -> None:
    pod = a_local_pod({"name": "main", "lifecycle": {"stopSignal": name}})
    assert stop_signal(pod.spec.containers[0]) == number


class Process:
    """Something that ends some seconds after a signal, or by a kill alone."""

    def __init__(self, *, ends_after: float | None) -> None:
        self.ends_after = ends_after
        self.ended = asyncio.Event()
        self.story: list[str] = []

    async def signal(self, container: str, number: int) -> None:
        self.story.append(signal.Signals(number).name)
        if self.ends_after is not None:
            asyncio.get_running_loop().call_later(self.ends_after, self.ended.set)

    async def kill(self, container: str) -> None:
        self.story.append("kill")
        self.ended.set()

    async def terminate(self, grace: Grace, **more: Any) -> None:
        await terminate(self, "c", number=signal.SIGTERM, grace=grace, ended=self.ended, **more)


async def test_who_ends_by_itself_is_not_killed() -> None:
    process = Process(ends_after=0.01)
    await process.terminate(Grace(60))
    assert process.story == ["SIGTERM"]


async def test_who_does_not_is_killed_and_everybody_has_two_seconds() -> None:
    process = Process(ends_after=None)
    began = asyncio.get_running_loop().time()
    await process.terminate(Grace(0))
    assert process.story == ["SIGTERM", "kill"]
    assert asyncio.get_running_loop().time() - began >= 2


async def test_a_grace_period_can_be_shortened_while_it_runs() -> None:
    process, grace = Process(ends_after=None), Grace(600)
    asyncio.get_running_loop().call_later(0.01, grace.shorten, 0.01)
    async with asyncio.timeout(5):
        await process.terminate(grace)
    assert process.story == ["SIGTERM", "kill"]


async def test_the_hook_and_the_turn_come_first_and_are_not_waited_for_past_the_end() -> None:
    process = Process(ends_after=0.01)

    def step(name: str, *, lasts: float) -> Any:
        async def run() -> None:
            process.story.append(name)
            await asyncio.sleep(lasts)

        def begin() -> Coroutine[Any, Any, None]:
            return run()

        return begin

    asyncio.get_running_loop().call_later(0.1, process.ended.set)
    async with asyncio.timeout(5):
        await process.terminate(Grace(60), hook=step("hook", lasts=0.01), turn=step("turn", lasts=600))
    assert process.story == ["hook", "turn"]  # it ended by itself before its turn came
