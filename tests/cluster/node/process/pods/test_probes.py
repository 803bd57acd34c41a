"""When a container is asked, and how many answers decide."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from shoal.api.core.pod_details import ContainerDetails, Probe
from shoal.cluster.node.process.pods.checks import Unaskable, Verdict
from shoal.cluster.node.process.pods.probes import Tally, attend


@pytest.mark.parametrize(
    ("answers", "decided"),
    [
        ("g", [True]),
        ("b", [False]),
        ("bbb", [False, False, True]),
        ("bbgbb", [False, False, True, False, False]),
        ("bbbb", [False, False, True, True]),
    ],
)
def test_so_many_answers_in_a_row_decide(answers: str, decided: list[bool]) -> None:
    tally = Tally(Probe(failure_threshold=3, success_threshold=1))
    assert [tally.decided(answer == "g") for answer in answers] == decided


class Told:
    """A container that notes what its probes find."""

    def __init__(self) -> None:
        self.story: list[str] = []

    def started(self) -> None:
        self.story.append("started")

    def ready(self, is_ready: bool) -> None:
        self.story.append("ready" if is_ready else "unready")

    def failed(self, probe: str) -> None:
        self.story.append(f"failed {probe}")

    def unwell(self, message: str) -> None:
        self.story.append(message)

    def odd(self, message: str) -> None:
        self.story.append(message)


async def attended(answers: dict[str, list[Verdict]], *, seconds: float = 0.3, **more: Any) -> list[str]:
    """What is told of a container whose probes get these answers, the last one again and again."""
    probes = {kind: {"exec": {"command": [kind]}, "periodSeconds": 0, "failureThreshold": 2} for kind in answers}
    container = msgspec.convert({"name": "main", **probes}, ContainerDetails)
    told = Told()

    async def ask(probe: Probe) -> Verdict:
        await asyncio.sleep(0)
        assert probe.exec is not None
        left = answers[probe.exec.command[0]]
        if len(left) == 1:
            await asyncio.sleep(0.01)
        verdict = left.pop(0) if len(left) > 1 else left[0]
        if verdict.message == "unaskable":
            raise Unaskable("no way")
        return verdict

    given = {"started_at": datetime.now(UTC), "is_started": "startupProbe" not in answers, "is_ready": False, **more}
    try:
        async with asyncio.timeout(seconds):
            await attend(container, ask, told, now=lambda: datetime.now(UTC), **given)
    except TimeoutError:
        pass
    return told.story


GOOD, BAD = Verdict(True), Verdict(False, "ill")


async def test_the_startup_probe_comes_first() -> None:
    story = await attended({"startupProbe": [BAD, GOOD], "readinessProbe": [GOOD]})
    assert story == ["Startup probe failed: ill", "started", "ready"]


async def test_who_does_not_start_is_asked_nothing_more() -> None:
    story = await attended({"startupProbe": [BAD], "readinessProbe": [GOOD]}, seconds=5)
    assert story == ["Startup probe failed: ill"] * 2 + ["failed startup"]


async def test_who_is_not_alive_has_failed() -> None:
    story = await attended({"livenessProbe": [GOOD, BAD, GOOD, BAD]}, seconds=5)
    assert story == ["Liveness probe failed: ill"] * 3 + ["failed liveness"]


async def test_readiness_comes_and_goes() -> None:
    story = await attended({"readinessProbe": [GOOD, BAD, BAD, GOOD]})
    assert story == ["ready", *["Readiness probe failed: ill"] * 2, "unready", "ready"]


async def test_a_question_that_cannot_be_put_says_nothing_about_the_container() -> None:
    story = await attended({"livenessProbe": [Verdict(False, "unaskable")] * 3 + [GOOD]})
    assert story == ["Liveness probe errored and resulted in unknown state: no way"]


async def test_a_good_answer_may_be_worth_a_word() -> None:
    story = await attended({"readinessProbe": [Verdict(True, "moved"), GOOD]})
    assert story == ["Readiness probe warning: moved", "ready"]


async def test_while_a_pod_is_being_ended_only_its_readiness_is_asked_for() -> None:
    story = await attended({"readinessProbe": [GOOD], "livenessProbe": [BAD]}, only_readiness=True)
    assert story == ["ready"]
