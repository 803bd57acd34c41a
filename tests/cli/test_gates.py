"""Feature gates: what they are called, and what they open."""

from __future__ import annotations

import pytest
import typer

from shoal.cli.gates import Gate, job_set_settings, open_gates

SAID: dict[str, tuple[str, set[Gate]]] = {
    "nothing": ("", set()),
    "one": ("TrainJobStatus=true", {Gate.TRAIN_JOB_STATUS}),
    "two, with room between": ("RestartJob=true, InPlaceRestart=True", {Gate.RESTART_JOB, Gate.IN_PLACE_RESTART}),
    "one that is shut": ("RestartJob=false", set()),
}


@pytest.mark.parametrize(("said", "opened"), SAID.values(), ids=SAID)
def test_gates_are_shut_unless_they_are_opened(said: str, opened: set[Gate]) -> None:
    assert open_gates(said) == opened


@pytest.mark.parametrize("said", ["Nope=true", "RestartJob", "RestartJob=maybe"])
def test_a_gate_that_is_none_is_told_with_those_that_are(said: str) -> None:
    with pytest.raises(typer.BadParameter, match=f"{said} is unknown, there is TrainJobStatus=true, RestartJob=true"):
        open_gates(said)


def test_what_they_open_for_job_sets() -> None:
    shut, opened = (job_set_settings(frozenset(gates)) for gates in ((), tuple(Gate)))
    assert (shut.restarts_single_jobs, shut.restarts_in_place) == (False, False)
    assert (opened.restarts_single_jobs, opened.restarts_in_place) == (True, True)
