"""Whose logs are meant, and what is said where there are none."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.core import Pod
from shoal.cli.training.choosing import Choice, nothing_to_show
from shoal.cli.training.steps import Plan, steps_of
from tests.cli.training.examples import a_job, a_pod_of, a_pod_that, a_pod_without_room, is_, last_error

PLAN = Plan(initializers=("dataset-initializer",), ranks=2)
WAITS = {"waiting": {"reason": "CreateContainerConfigError", "message": 'configmap "c" not found'}}


@pytest.mark.parametrize(
    ("choice", "plan", "said"),
    [
        (Choice(name="x"), PLAN, ""),
        (Choice(name="x", rank=1), PLAN, ""),
        (Choice(name="x", rank=2), PLAN, "trainjob x has no rank 2: there are 0 to 1"),
        (Choice(name="x", rank=2), Plan(ranks=1), "trainjob x has no rank 2: there is only 0"),
        (Choice(name="x", rank=2), Plan(), ""),
        (Choice(name="x", step="node-1"), PLAN, ""),
        (
            Choice(name="x", step="nope"),
            PLAN,
            "trainjob x has no step nope: there are dataset-initializer, node-0 to node-1",
        ),
    ],
)
def test_what_can_never_come_is_refused_with_what_there_is(choice: Choice, plan: Plan, said: str) -> None:
    assert choice.refusal(plan) == said


FAILED = {"conditions": [is_("Failed", reason="DeadlineExceeded", message="too late")]}


@pytest.mark.parametrize(
    ("status", "pods", "said"),
    [
        pytest.param({}, [], "no node of trainjob llama has begun: wait for it with --follow", id="no pods yet"),
        pytest.param(
            {}, [a_pod_of("node")], "no node of trainjob llama has begun: wait for it with --follow", id="it starts"
        ),
        pytest.param(
            {"conditions": [is_("Complete")]}, [], "trainjob llama is complete, and its pods are gone", id="complete"
        ),
        pytest.param(
            FAILED, [], "trainjob llama failed (DeadlineExceeded: too late), and its pods are gone", id="failed"
        ),
        pytest.param(
            FAILED,
            [a_pod_of("node")],
            "trainjob llama failed (DeadlineExceeded: too late), and no node has begun",
            id="failed before it began",
        ),
        pytest.param(
            {"conditions": [is_("Suspended")]},
            [],
            "trainjob llama is suspended and has no pods: it begins when its spec.suspend is false",
            id="suspended",
        ),
        pytest.param(
            {"lastError": last_error("exceeded quota")}, [], "trainjob llama has no pods: exceeded quota", id="error"
        ),
        pytest.param(
            {},
            [a_pod_of("node", 0), a_pod_that(index=1, state=WAITS)],
            'node-1 of trainjob llama does not run: CreateContainerConfigError: configmap "c" not found',
            id="one cannot start",
        ),
        pytest.param(
            {},
            [a_pod_that(job="dataset-initializer", state=WAITS)],
            'dataset-initializer of trainjob llama does not run: CreateContainerConfigError: configmap "c" not found',
            id="what comes before cannot start",
        ),
        pytest.param(
            {},
            [a_pod_that(job="dataset-initializer", state={"running": {}})],
            "trainjob llama is being prepared: --step dataset-initializer shows how",
            id="it is prepared",
        ),
        pytest.param(
            {},
            [a_pod_without_room()],
            "node-0 of trainjob llama has no node yet: no GPUs are free (ask shoal explain trainjob/llama -n research)",
            id="no room",
        ),
    ],
)
def test_who_asks_for_logs_is_told_why_there_are_none(status: dict[str, Any], pods: list[Pod], said: str) -> None:
    assert nothing_to_show(a_job(**status), Choice(name="llama"), steps_of(pods, PLAN)) == said


def test_one_that_was_asked_for_is_named() -> None:
    said = nothing_to_show(a_job(), Choice(name="llama", rank=1), steps_of([a_pod_of("node")], PLAN))
    assert said == "rank 1 of trainjob llama has not begun: wait for it with --follow"
