"""Which pods start together."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.training.framework import gang_of
from shoal.training.framework.resources import written
from tests.training.builders import (
    a_container,
    a_job,
    a_runtime,
    a_train_job,
    a_trainer,
    an_initializer,
    info_of,
)


def waiting_for(name: str, status: str) -> list[dict[str, str]]:
    return [{"name": name, "status": status}]


SHAPES: dict[str, tuple[list[Any], Any, list[str], int, list[str]]] = {
    "nodes alone": ([a_trainer()], {"numNodes": 4}, ["node"], 4, []),
    "initializers go before": (
        [an_initializer("dataset"), an_initializer("model"), a_trainer()],
        {"numNodes": 2},
        ["node"],
        2,
        ["dataset-initializer", "model-initializer"],
    ),
    "what must be complete goes before, whatever it is called": (
        [a_job("prepare"), a_trainer(dependsOn=waiting_for("prepare", "Complete"))],
        {"numNodes": 2},
        ["node"],
        2,
        ["prepare"],
    ),
    "a launcher that waits for its nodes belongs to the gang and is not waited for": (
        [
            a_job("node", job={"parallelism": 3}),
            a_job("launcher", ancestor="trainer", dependsOn=waiting_for("node", "Ready")),
        ],
        {"mpi": {}},
        ["node", "launcher"],
        3,
        [],
    ),
    "a launcher that does not wait is counted": (
        [a_job("node", job={"parallelism": 3}), a_job("launcher", ancestor="trainer")],
        {"mpi": {}},
        ["node", "launcher"],
        4,
        [],
    ),
    "replicas count": ([a_job("extra", replicas=2, job={"parallelism": 2}), a_trainer()], {}, ["extra", "node"], 5, []),
}


@pytest.mark.parametrize(("jobs", "policy", "members", "minimum", "earlier"), SHAPES.values(), ids=SHAPES)
def test_who_is_in_a_gang(jobs: Any, policy: Any, members: list[str], minimum: int, earlier: list[str]) -> None:
    gang = gang_of(info_of(a_train_job(), a_runtime(*jobs, ml=policy)))
    assert [one.name for one in gang.members] == members
    assert gang.minimum == minimum
    assert [one.name for one in gang.earlier] == earlier


def test_a_gang_asks_for_what_its_counted_pods_ask_for() -> None:
    node = a_container(resources={"requests": {"cpu": "500m", "memory": "1Gi"}})
    runtime = a_runtime(an_initializer("dataset"), a_trainer(node), ml={"numNodes": 3})
    assert written(gang_of(info_of(a_train_job(), runtime)).resources) == {"cpu": "1500m", "memory": "3Gi"}
