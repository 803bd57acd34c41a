"""What annotations say of a simulated pod."""

from __future__ import annotations

import pytest

from shoal.api.core import Pod
from shoal.cluster.node.simulated.rules import DEFAULT_RUN_TIME, Rules, rules_of
from tests.support.builders.pods import a_pod, controller_reference


def a_simulated_pod(policy: str = "Always", *, owner: str = "", **sim: str) -> Pod:
    return a_pod(
        annotations={f"shoal.dev/sim-{key.replace('_', '-')}": value for key, value in sim.items()},
        owner=controller_reference(owner, "o") if owner else None,
        restartPolicy=policy,
    )


@pytest.mark.parametrize(
    ("policy", "owner", "ends"),
    [
        ("Always", "", False),
        ("Never", "", True),
        ("OnFailure", "", True),
        ("Never", "Job", True),
        ("OnFailure", "Job", True),
        ("Never", "PodClique", False),
        ("Always", "ReplicaSet", False),
    ],
)
def test_only_what_is_there_to_end_ends_by_itself(policy: str, owner: str, ends: bool) -> None:
    rules, problems = rules_of(a_simulated_pod(policy, owner=owner))
    assert (rules.run_time, problems) == (DEFAULT_RUN_TIME if ends else None, [])


def test_all_annotations_are_read() -> None:
    rules, problems = rules_of(
        a_simulated_pod(
            start_delay="1m", ready_delay="1.5s", run_time="250ms", stop_time="1s", fail_first="2", log="a\nb"
        )
    )
    assert problems == []
    expected = Rules(start_delay=60, ready_delay=1.5, run_time=0.25, stop_time=1, fail_first=2, log="a\nb")
    assert rules == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("start_delay", "soon"),
        ("run_time", "-1s"),
        ("ready_delay", "5"),
        ("outcome", "went wrong"),
        ("exit_code", "300"),
        ("fail_first", "-1"),
        ("cpu", "much"),
        ("memory", "-1Gi"),
    ],
)
def test_what_does_not_parse_is_named_and_the_default_taken(name: str, value: str) -> None:
    rules, [problem] = rules_of(a_simulated_pod("Never", **{name: value}))
    assert rules == rules_of(a_simulated_pod("Never"))[0]
    assert problem.startswith(f"annotation shoal.dev/sim-{name.replace('_', '-')} is ignored: ")
    assert repr(value) in problem


@pytest.mark.parametrize(
    ("rules", "attempt", "ending"),
    [
        (Rules(), 0, (0, "Completed")),
        (Rules(exit_code=3), 0, (3, "Error")),
        (Rules(outcome="Failed"), 5, (1, "Error")),
        (Rules(outcome="Failed", exit_code=0), 0, (1, "Error")),
        (Rules(outcome="OOMKilled"), 0, (137, "OOMKilled")),
        (Rules(outcome="OOMKilled", exit_code=9), 0, (9, "OOMKilled")),
        (Rules(fail_first=1), 0, (1, "Error")),
        (Rules(fail_first=1), 1, (0, "Completed")),
        (Rules(fail_first=1, exit_code=7), 0, (7, "Error")),
        (Rules(fail_first=1, exit_code=7), 1, (0, "Completed")),
        (Rules(fail_first=2, outcome="OOMKilled"), 1, (137, "OOMKilled")),
        (Rules(fail_first=2, outcome="OOMKilled"), 2, (0, "Completed")),
    ],
)
def test_how_an_attempt_ends(rules: Rules, attempt: int, ending: tuple[int, str]) -> None:
    assert rules.ending(attempt) == ending
