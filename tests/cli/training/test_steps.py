"""Which steps a training run has, and which pod is which."""

from __future__ import annotations

import pytest

from shoal.api.core import Pod
from shoal.api.jobset import JobSet
from shoal.cli.training.steps import Plan, steps_of
from tests.cli.training.examples import a_job, a_job_set, a_pod_of, a_pod_that, jobs

PLAIN, WITH_LAUNCHER = Plan(), Plan(has_launcher=True)


@pytest.mark.parametrize(
    ("pods", "plan", "steps"),
    [
        ([], PLAIN, []),
        ([a_pod_of("node", 10), a_pod_of("node", 2), a_pod_of("node", 0)], PLAIN, ["node-0", "node-2", "node-10"]),
        (
            [a_pod_of("node"), a_pod_of("model-initializer"), a_pod_of("dataset-initializer")],
            PLAIN,
            ["dataset-initializer", "model-initializer", "node-0"],
        ),
        (
            [a_pod_of("node", 0), a_pod_of("launcher"), a_pod_of("node", 1)],
            WITH_LAUNCHER,
            ["node-0", "node-1", "node-2"],
        ),
        ([a_pod_of("node", 0)], WITH_LAUNCHER, ["node-1"]),
        ([a_pod_of("something-else"), a_pod_of("node")], PLAIN, ["node-0"]),
    ],
    ids=[
        "none",
        "by number",
        "initializers first",
        "a launcher is the first",
        "also before it has a pod",
        "others are none",
    ],
)
def test_steps_are_named_as_by_the_sdk_and_in_order(pods: list[Pod], plan: Plan, steps: list[str]) -> None:
    assert [step.name for step in steps_of(pods, plan)] == steps


@pytest.mark.parametrize(
    ("job_set", "plan", "words"),
    [
        (a_job_set(node=1), Plan(ranks=1), "node-0"),
        (a_job_set(node=8), Plan(ranks=8), "node-0 to node-7"),
        (a_job_set(node=3, launcher=1), Plan(ranks=4, has_launcher=True), "node-0 to node-3"),
        (
            a_job_set(model_initializer=1, dataset_initializer=1, node=2),
            Plan(initializers=("dataset-initializer", "model-initializer"), ranks=2),
            "dataset-initializer, model-initializer, node-0 to node-1",
        ),
        (a_job_set(something_else=4), Plan(ranks=0), "none"),
    ],
    ids=["one node", "eight", "a launcher is one", "initializers", "others are none"],
)
def test_the_job_set_says_which_steps_there_are(job_set: JobSet, plan: Plan, words: str) -> None:
    assert Plan.of(job_set) == plan
    assert plan.steps == words


@pytest.mark.parametrize(
    ("step", "is_there"),
    [
        ("node-0", True),
        ("node-1", True),
        ("node-2", False),
        ("node", False),
        ("model-initializer", True),
        ("dataset-initializer", False),
        ("x-0", False),
    ],
)
def test_a_step_is_one_of_those_that_there_are(step: str, is_there: bool) -> None:
    assert Plan(initializers=("model-initializer",), ranks=2).has(step) == is_there
    assert Plan().has(step), "where it is not known, none is refused"


def test_without_the_job_set_a_launcher_is_known_by_the_status_or_by_its_pod() -> None:
    assert Plan.guessed(a_job(jobsStatus=[jobs("launcher")]), []).has_launcher
    assert Plan.guessed(None, [a_pod_of("launcher")]).has_launcher
    assert not Plan.guessed(a_job(), [a_pod_of("node")]).has_launcher


def test_of_several_pods_for_a_step_the_newest_counts() -> None:
    (step,) = steps_of([a_pod_of("node", uid="new", age=1), a_pod_of("node", uid="old", age=9)], PLAIN)
    assert step.pod.metadata.uid == "new"


def test_each_life_of_a_container_has_a_log_of_its_own() -> None:
    def life(state: str, restarts: int) -> tuple[str, int] | None:
        (step,) = steps_of([a_pod_that(uid="u", state={state: {}}, restarts=restarts)], PLAIN)
        return step.life

    assert life("waiting", 0) is None
    assert life("running", 0) == ("u", 0)
    assert life("running", 2) == ("u", 2)
    (unborn,) = steps_of([a_pod_of("node")], PLAIN)
    assert unborn.life is None


def test_a_container_that_waits_to_be_restarted_has_its_last_log() -> None:
    ended = {"terminated": {"exitCode": 1}}
    (step,) = steps_of([a_pod_that(uid="u", state={"waiting": {}}, lastState=ended, restarts=2)], PLAIN)
    assert step.life == ("u", 2)
