"""What counts as a difference, and what it is called."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.scheduler.scenarios import Calls, NodeOutcome, Outcome, Scenario, TaskOutcome
from shoal.scheduler.scenarios.cases import MaxCalls
from shoal.scheduler.scenarios.comparing import (
    differences,
    overloaded_devices,
    too_many_calls,
    unmatched_expectations,
)
from tests.scheduler.scenarios.builders import a_scenario, a_task


def test_an_outcome_as_expected_has_no_differences() -> None:
    outcome = Outcome({"run-0": a_task("Running", "n0"), "wait-0": a_task("Binding", "n0")})

    assert differences(a_scenario(), outcome) == []


def test_states_and_nodes_are_compared() -> None:
    outcome = Outcome({"run-0": a_task("Releasing", "n0"), "wait-0": a_task("Binding", "n1")})

    assert differences(a_scenario(), outcome) == [
        "run-0 is Releasing on n0, expected Running",
        "wait-0 is on n1, expected n0",
    ]


def test_a_task_that_nobody_speaks_of_is_a_difference() -> None:
    outcome = Outcome({"run-0": a_task("Running", "n0")})

    assert differences(a_scenario(), outcome) == ["wait-0 is missing in the outcome"]


def test_a_job_speaks_for_all_of_its_tasks() -> None:
    job = {"name": "j", "queue": "a", "tasks": [{"state": "Pending"}] * 2}
    scenario = a_scenario(jobs=[job], expect={"jobs": {"j": {"state": "Binding"}}})

    assert differences(scenario, Outcome({"j-0": a_task("Binding", "n0"), "j-1": a_task("Pending")})) == [
        "j-1 is Pending, expected Binding"
    ]


def test_a_name_that_is_no_task_is_told_and_not_compared() -> None:
    scenario = a_scenario(expect={"tasks": {"run": {"state": "Pending"}, "run-0": {"state": "Running"}}})

    assert unmatched_expectations(scenario) == ["run"]
    assert differences(scenario, Outcome({"run-0": a_task("Running", "n0"), "wait-0": a_task("Pending")})) == []


def test_nodes_are_compared_as_far_as_they_are_given() -> None:
    scenario = a_scenario(expect={"nodes": {"n0": {"idle_gpus": 1}}})
    tasks = {"run-0": a_task("Running", "n0"), "wait-0": a_task("Pending")}

    assert differences(scenario, Outcome(tasks, {"n0": NodeOutcome(1, 7)})) == []
    assert differences(scenario, Outcome(tasks, {"n0": NodeOutcome(2, 0)})) == ["n0 has 2 idle GPUs, expected 1"]
    assert differences(scenario, Outcome(tasks)) == ["node n0 is missing in the outcome"]


def test_calls_are_bounded_from_above_only() -> None:
    allowed = MaxCalls(binds=0, evictions=2)

    assert too_many_calls(allowed, Calls(binds=0, evictions=1, pipelines=9)) == []
    assert too_many_calls(allowed, Calls(binds=1, evictions=3)) == [
        "1 binds, at most 0 allowed",
        "3 evictions, at most 2 allowed",
    ]


@pytest.mark.parametrize(
    ("each", "expected", "is_right"),
    [((0.5, 0.5), 0.5, True), ((0.5, 0.5), 1.0, True), ((0.5, 0.5), 0.8, False), ((0.17, 0.17), 0.17, True)],
)
def test_gpus_received_are_of_each_task_or_of_all_together(each: Any, expected: float, is_right: bool) -> None:
    job = {"name": "j", "queue": "a", "gpu": 0.5, "tasks": [{"state": "Pending"}] * 2}
    scenario = a_scenario(jobs=[job], expect={"jobs": {"j": {"state": "Binding", "gpus_accepted": expected}}})
    outcome = Outcome({f"j-{place}": a_task("Binding", "n0", "g", gpus=gpus) for place, gpus in enumerate(each)})

    assert (differences(scenario, outcome) == []) is is_right


def test_who_waits_has_received_nothing_whatever_the_case_says() -> None:
    scenario = a_scenario(expect={"jobs": {"wait": {"state": "Pending", "gpus_accepted": 0.8}}})

    assert differences(scenario, Outcome({"run-0": a_task("Running", "n0"), "wait-0": a_task("Pending")})) == []


def _sharing(expected: dict[str, list[str]], portion: float = 0.25) -> Scenario:
    jobs = [{"name": name, "queue": "a", "gpu": portion, "tasks": [{"state": "Pending"}]} for name in expected]
    wanted = {
        name: {"state": "Binding", "node": "n0", "gpu_groups": groups} for name, groups in expected.items() if groups
    }
    return a_scenario(jobs=jobs, expect={"jobs": wanted})


def _shared(**groups: tuple[str, ...]) -> Outcome:
    return Outcome({f"{name}-0": a_task("Binding", "n0", *where) for name, where in groups.items()})


@pytest.mark.parametrize(
    ("expected", "actual", "is_same"),
    [
        ({"x": ["0"], "y": ["0"]}, {"x": ("u",), "y": ("u",)}, True),
        ({"x": ["0"], "y": ["0"]}, {"x": ("u",), "y": ("v",)}, False),
        ({"x": ["0"], "y": ["1"]}, {"x": ("u",), "y": ("v",)}, True),
        ({"x": ["0"], "y": ["1"]}, {"x": ("u",), "y": ("u",)}, False),
        ({"x": ["0"], "y": ["1"]}, {"x": ("1",), "y": ("0",)}, True),
        ({"x": ["0", "1"], "y": ["1"]}, {"x": ("u", "v"), "y": ("u",)}, True),
        ({"x": ["0", "1"], "y": ["2"]}, {"x": ("u", "v"), "y": ("u",)}, False),
        ({"x": ["0", "1"]}, {"x": ("u",)}, False),
        ({"x": ["0"], "y": []}, {"x": ("u",), "y": ("u",)}, True),
    ],
)
def test_devices_are_compared_up_to_their_names(
    expected: dict[str, list[str]], actual: dict[str, tuple[str, ...]], is_same: bool
) -> None:
    assert (differences(_sharing(expected), _shared(**actual)) == []) is is_same


def test_equal_names_on_two_nodes_are_two_devices() -> None:
    job = {"name": "j", "queue": "a", "gpu": 0.5, "tasks": [{"state": "Pending"}] * 2}
    nodes = {"n0": {"gpus": 1}, "n1": {"gpus": 1}}
    expect = {"jobs": {"j": {"state": "Binding", "gpu_groups": ["0"]}}}
    scenario = a_scenario(jobs=[job], nodes=nodes, expect=expect)

    assert (
        differences(scenario, Outcome({"j-0": a_task("Binding", "n0", "u"), "j-1": a_task("Binding", "n1", "v")})) == []
    )


def test_devices_of_whole_gpus_are_not_compared() -> None:
    scenario = _sharing({"x": ["0"], "y": ["0"]}, portion=1)

    assert differences(scenario, _shared(x=("u",), y=("v",))) == []


def test_an_expectation_that_overloads_a_device_is_not_held_against_anybody() -> None:
    scenario = _sharing({"x": ["0"], "y": ["0"]}, portion=0.6)

    assert overloaded_devices(scenario, "n0") == ["0"]
    assert differences(scenario, _shared(x=("u",), y=("v",))) == []


def test_what_ends_on_a_device_makes_room_for_what_is_promised() -> None:
    jobs = [
        {"name": "x", "queue": "a", "gpu": 0.6, "tasks": [{"state": "Releasing", "node": "n0", "gpu_groups": ["0"]}]},
        {"name": "y", "queue": "a", "gpu": 0.6, "tasks": [{"state": "Pending"}]},
    ]
    wanted = {
        "x": {"state": "Releasing", "node": "n0", "gpu_groups": ["0"]},
        "y": {"state": "Pipelined", "node": "n0", "gpu_groups": ["0"]},
    }
    scenario = a_scenario(jobs=jobs, expect={"jobs": wanted})
    elsewhere: dict[str, TaskOutcome] = {"x-0": a_task("Releasing", "n0", "0"), "y-0": a_task("Pipelined", "n0", "1")}

    assert overloaded_devices(scenario, "n0") == []
    assert len(differences(scenario, Outcome(elsewhere))) == 1
