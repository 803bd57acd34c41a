"""The JobSet of a TrainJob: what is taken from where, and what is told from it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from shoal.api.meta import Document
from shoal.training.framework import Outcome, Wanted
from shoal.training.plugins import load_framework
from shoal.training.plugins.jobset import JobSets
from tests.training.builders import (
    a_container,
    a_job,
    a_runtime,
    a_train_job,
    a_trainer,
    an_initializer,
    container_of,
    env_of,
    info_of,
    job_set_of,
    replicated_job,
)

ENDED = "2026-01-31T09:30:00Z"


class TestTrainer:
    """What a TrainJob says of its nodes."""

    node = a_container(command=["old"], args=["--old"])

    WORDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "nothing": ({}, {"image": "runtime:1", "command": ["old"], "args": ["--old"]}),
        "an image": ({"image": "mine:2"}, {"image": "mine:2", "command": ["old"], "args": ["--old"]}),
        "a command": ({"command": ["new"]}, {"image": "runtime:1", "command": ["new"], "args": ["--old"]}),
        "arguments": ({"args": ["--new"]}, {"image": "runtime:1", "command": ["old"], "args": ["--new"]}),
        "no arguments": ({"args": []}, {"image": "runtime:1", "command": ["old"]}),
    }

    @pytest.mark.parametrize(("trainer", "expected"), WORDS.values(), ids=WORDS)
    def test_each_word_on_its_own(self, trainer: Any, expected: Any) -> None:
        assert container_of(job_set_of(a_train_job(trainer=trainer), a_runtime(a_trainer(self.node)))) == {
            "name": "node",
            **expected,
        }

    def test_other_containers_and_jobs_are_left_alone(self) -> None:
        job = a_train_job(trainer={"image": "mine:2", "env": [{"name": "A", "value": "1"}]})
        made = job_set_of(job, a_runtime(a_job("other"), a_trainer(a_container(), a_container("side"))))
        assert container_of(made, "other") == a_container()
        assert container_of(made, name="side") == a_container("side")


class TestInitializers:
    """What a TrainJob says of its datasets and models."""

    runtime = a_runtime(
        an_initializer("dataset", replicas=3),
        a_job(
            "model-initializer",
            a_container("model-initializer", env=[{"name": "STORAGE_URI", "value": "hf://old"}]),
            ancestor="model-initializer",
        ),
        a_trainer(),
    )

    def test_the_address_the_variables_and_the_secret(self) -> None:
        source = {
            "storageUri": "hf://new",
            "env": [{"name": "IGNORE_PATTERNS", "value": "*.bin"}],
            "secretRef": {"name": "token"},
        }
        made = job_set_of(a_train_job(initializer={"model": source}), self.runtime)
        container = container_of(made, "model-initializer", "model-initializer")
        assert env_of(container) == [("STORAGE_URI", "hf://new"), ("IGNORE_PATTERNS", "*.bin")]
        assert container["envFrom"] == [{"secretRef": {"name": "token"}}]

    def test_an_empty_address_is_said_and_a_missing_one_is_not(self) -> None:
        said = job_set_of(a_train_job(initializer={"dataset": {"storageUri": ""}}), self.runtime)
        assert env_of(container_of(said, "dataset-initializer", "dataset-initializer")) == [("STORAGE_URI", "")]
        unsaid = job_set_of(a_train_job(initializer={"dataset": {}}), self.runtime)
        assert "env" not in container_of(unsaid, "dataset-initializer", "dataset-initializer")

    def test_one_source_does_not_touch_the_other(self) -> None:
        made = job_set_of(a_train_job(initializer={"dataset": {"storageUri": "hf://x"}}), self.runtime)
        assert env_of(container_of(made, "model-initializer", "model-initializer")) == [("STORAGE_URI", "hf://old")]

    def test_what_has_a_part_in_a_train_job_has_it_once(self) -> None:
        made = job_set_of(a_train_job(), self.runtime)
        assert [one["replicas"] for one in made["spec"]["replicatedJobs"]] == [1, 1, 1]


def test_replicas_of_other_jobs_stay() -> None:
    made = job_set_of(a_train_job(), a_runtime(a_job("other", replicas=3), a_trainer()))
    assert replicated_job(made, "other")["replicas"] == 3


def test_addresses_of_pods() -> None:
    others = a_job("other", replicas=2, job={"parallelism": 2})
    runtime = a_runtime(others, a_trainer(), ml={"numNodes": 2}, network={"subdomain": "mesh"})
    first, nodes = info_of(a_train_job(), runtime).pod_sets
    assert first.endpoints == (
        "demo-other-0-0.mesh", "demo-other-0-1.mesh", "demo-other-1-0.mesh", "demo-other-1-1.mesh",
    )  # fmt: skip
    assert nodes.endpoints == ("demo-node-0-0.mesh", "demo-node-0-1.mesh")


def test_a_port_without_a_name_takes_the_place_of_another() -> None:
    node = a_container(ports=[{"containerPort": 8080}, {"containerPort": 9090, "name": "metrics"}])
    made = job_set_of(a_train_job(trainer={}), a_runtime(a_trainer(node), ml={"torch": {}}))
    assert container_of(made)["ports"] == [{"containerPort": 29500}, {"containerPort": 9090, "name": "metrics"}]


@pytest.mark.parametrize("suspend", [True, False])
def test_the_job_set_waits_as_the_train_job_does(suspend: bool) -> None:
    assert job_set_of(a_train_job(suspend=suspend), a_runtime())["spec"]["suspend"] is suspend


KEPT = {
    "both run": (False, False, True),
    "the TrainJob waits": (True, False, False),
    "the JobSet waits": (False, True, False),
    "both wait": (True, True, False),
}


@pytest.mark.parametrize(("job", "job_set", "expected"), KEPT.values(), ids=KEPT)
def test_a_job_set_that_runs_is_never_touched(job: bool, job_set: bool, expected: bool) -> None:
    wanted: Wanted = load_framework().objects(a_train_job(suspend=job), a_runtime())[-1]
    assert wanted.is_kept(a_job_set(spec={"suspend": job_set})) is expected


def a_job_set(**content: Any) -> Document:
    return Document.of({"metadata": {"name": "demo"}, **content})


def condition(type: str, status: str = "True", reason: str = "R", message: str = "m") -> dict[str, Any]:  # noqa: A002
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": ENDED}


class TestOutcome:
    def told(self, **status: Any) -> Outcome:
        return JobSets().outcome(a_job_set(status=status))

    def test_an_end_keeps_its_reason_its_words_and_its_time(self) -> None:
        end = self.told(conditions=[condition("Completed", reason="AllJobsCompleted", message="done")]).end
        assert end is not None
        assert (end.type, end.status, end.reason, end.message) == ("Complete", "True", "AllJobsCompleted", "done")
        assert end.last_transition_time == datetime(2026, 1, 31, 9, 30, tzinfo=UTC)

    def test_a_failure(self) -> None:
        end = self.told(conditions=[condition("Suspended", "False"), condition("Failed", reason="FailedJobs")]).end
        assert end is not None
        assert (end.type, end.reason) == ("Failed", "FailedJobs")

    @pytest.mark.parametrize("given", [[], [condition("Completed", "False")], [condition("Suspended")]])
    def test_nothing_else_is_an_end(self, given: Any) -> None:
        assert self.told(conditions=given).end is None

    def test_jobs_are_told_one_to_one(self) -> None:
        counters = {"ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
        jobs = self.told(replicatedJobsStatus=[{"name": "node", **counters}, {"name": "data", **counters}]).jobs
        assert list(msgspec.to_builtins(jobs)) == [{"name": "node", **counters}, {"name": "data", **counters}]

    def test_a_job_set_without_a_status_has_no_outcome(self) -> None:
        assert JobSets().outcome(a_job_set(spec={"suspend": True})) == Outcome(is_suspended=True)
