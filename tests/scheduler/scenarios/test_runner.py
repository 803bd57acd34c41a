"""Running cases with engines made for the purpose: how often they are asked, with what, and what is printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from shoal.scheduler.scenarios import (
    DivisionCase,
    Outcome,
    Scenario,
    TaskOutcome,
    verdict_of_division,
    verdict_of_scenario,
)
from shoal.scheduler.scenarios.__main__ import main
from shoal.scheduler.scenarios.cases import ACTIONS, ClaimCase, State
from tests.scheduler.scenarios.builders import a_case, a_scenario


class Scripted:
    """An engine that puts the second job into one state after the other, and remembers what it was asked."""

    def __init__(self, *states: State) -> None:
        self.states = list(states)
        self.asked: list[tuple[str, tuple[str, ...], float]] = []

    def __call__(self, scenario: Scenario, actions: Sequence[str], now: float) -> Outcome:
        task = scenario.jobs[1].tasks[0]
        self.asked.append((task.state, tuple(actions), now))
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        node = "n0" if state in {"Binding", "Running", "Pipelined", "Releasing"} else ""
        return Outcome({"run-0": TaskOutcome("Running", "n0"), "wait-0": TaskOutcome(state, node)})


def test_one_action_is_one_session_with_its_states_as_they_are() -> None:
    engine = Scripted("Binding")

    verdict = verdict_of_scenario(a_scenario(actions="reclaim"), engine, now=5.0)

    assert verdict.is_passed
    assert engine.asked == [("Pending", ("reclaim",), 5.0)]


_RUNS = {"jobs": {"wait": {"state": "Running", "node": "n0"}}}


def test_cycles_are_folded_and_must_stay_as_they_are() -> None:
    engine = Scripted("Pipelined", "Binding", "Running")
    scenario = a_scenario(actions="all", rounds=2, stable_rounds=3, expect=_RUNS)

    verdict = verdict_of_scenario(scenario, engine, now=5.0)

    assert verdict.is_passed
    assert [state for state, _, _ in engine.asked] == ["Pending", "Pending", "Running", "Running", "Running"]
    assert {actions for _, actions, _ in engine.asked} == {ACTIONS}


def test_a_loop_of_eviction_and_start_is_found() -> None:
    engine = Scripted("Binding", "Releasing", "Binding")
    scenario = a_scenario(actions="all", rounds=1, stable_rounds=5, expect=_RUNS)

    verdict = verdict_of_scenario(scenario, engine, now=5.0)

    assert verdict.differences[0] == "round 2 (1 after the first match): wait-0 is Pending, expected Running"


def test_what_is_not_reached_in_time_differs() -> None:
    scenario = a_scenario(actions="all", rounds=1, stable_rounds=5, expect=_RUNS)

    verdict = verdict_of_scenario(scenario, Scripted("Pipelined", "Binding", "Running"), now=5.0)

    assert verdict.differences[0] == "round 1: wait-0 is Pending, expected Running"


def test_an_engine_that_fails_has_failed_this_case() -> None:
    def engine(scenario: Scenario, actions: Sequence[str], now: float) -> Outcome:
        raise RuntimeError(f"out of order: {scenario.id} {actions} {now}")

    verdict = verdict_of_scenario(a_scenario(), engine, now=5.0)

    assert not verdict.is_passed
    assert verdict.differences[0].startswith("the engine raised RuntimeError: out of order")
    assert "Traceback" in verdict.trace


def test_a_division_is_compared_to_a_millionth() -> None:
    queues = (ClaimCase(name="a", quota=-1, request=3), ClaimCase(name="b", weight=1, request=9))

    right = DivisionCase(id="right", total=5, queues=queues, expect={"a": 3, "b": 2}, remaining=0)
    wrong = DivisionCase(id="wrong", total=5, queues=queues, expect={"a": 3.00001, "b": 2}, remaining=1)

    assert verdict_of_division(right).is_passed
    assert verdict_of_division(wrong).differences == ("a gets 3, expected 3.00001", "0 remains, expected 1")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A file of three scenarios, one of them unreadable, and a file of one division."""
    scenarios = tmp_path / "scenarios.yaml"
    bound = {"jobs": {"wait": {"state": "Binding"}}}
    cases = [a_case(id="good", expect=bound), a_case(id="bad"), a_case(id="odd", nodes={"n0": {"gpu": 1}})]
    scenarios.write_text(yaml.safe_dump({"scenarios": cases}))
    shares = tmp_path / "shares.yaml"
    shares.write_text("cases: [{id: share, total: 1, queues: [{name: a, quota: 1, request: 1}], expect: {a: 1}}]\n")
    return [str(scenarios), str(shares)]


def _elsewhere(scenario: Scenario, actions: Sequence[str], now: float) -> Outcome:
    """An engine that never puts anything on the node that is expected."""
    made = Scripted("Binding")(scenario, actions, now)
    return Outcome({name: TaskOutcome(task.state, "n9") for name, task in made.tasks.items()})


def test_a_line_per_case_and_the_sum_last(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status = main(files, _elsewhere)

    lines = capsys.readouterr().out.splitlines()
    assert status == 1
    assert lines[0] == "ok   good"
    assert lines[1] == "FAIL bad: run-0 is on n9, expected n0 (and 1 more)"
    assert lines[2].startswith(f"FAIL odd: {files[0]}: case odd: nodes[...]: Object contains unknown field `gpu`")
    assert lines[3:] == ["ok   share", "2 passed, 2 failed"]


def test_every_difference_when_asked_for(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main([*files, "-v", "--only", "bad"], _elsewhere)

    assert capsys.readouterr().out.splitlines() == [
        "FAIL bad:",
        "       run-0 is on n9, expected n0",
        "       wait-0 is on n9, expected n0",
        "0 passed, 1 failed",
    ]


def test_all_passed_is_success(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*files, "--only", "good", "--only", "share"], _elsewhere) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 passed, 0 failed"


def test_a_case_that_is_not_there_is_a_mistake(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*files, "--only", "nobody"], _elsewhere) == 2
    assert "no case nobody" in capsys.readouterr().err


def test_a_file_that_is_none_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.yaml")], _elsewhere) == 2
    assert "none.yaml: No such file or directory" in capsys.readouterr().err
