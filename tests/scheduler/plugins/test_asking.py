"""What plugins answer, and what becomes of an answer that is no use: it is told once, and counts for nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from shoal.scheduler.plugins import NodeTable, Plugin, Plugins, Refusal
from tests.scheduler.session.worlds import World


@pytest.fixture
def world() -> World:
    return World({"a": 2, "b": 4}, labels={"a": {"zone": "x"}})


@pytest.fixture
def nodes(world: World) -> NodeTable:
    return NodeTable(world.cluster.nodes)


def answering(**answers: Any) -> Plugin:
    """A plugin whose functions answer this, or fail with it."""

    def answer(value: Any) -> Any:
        def function(*about: object) -> Any:
            if isinstance(value, Exception):
                raise value
            return value

        return function

    return Plugin(name="mine", **{name: answer(value) for name, value in answers.items()})


def test_nodes_are_seen_column_by_column_as_they_are(world: World, nodes: NodeTable) -> None:
    world.job("job", on="b")
    assert list(nodes.names) == ["a", "b"]
    assert list(nodes.allocatable("gpu")) == [2.0, 4.0]
    assert list(nodes.idle("gpu")) == [2.0, 3.0]
    assert list(nodes.releasing("gpu")) == [0.0, 0.0]
    assert list(nodes.idle("example.com/nothing")) == [0.0, 0.0]
    assert list(nodes.label("zone")) == ["x", ""]
    assert list(nodes.is_ready) == [True, True]
    assert len(nodes) == 2


def test_nobody_writes_to_the_nodes_through_a_column(world: World, nodes: NodeTable) -> None:
    for column in (nodes.idle("gpu"), nodes.label("zone")):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = column[1]
    world.job("job", on="a")
    assert list(nodes.idle("gpu")) == [1.0, 4.0]


def test_a_plugin_is_asked_with_the_nodes_the_task_and_its_arguments(world: World, nodes: NodeTable) -> None:
    seen: list[Any] = []

    def score(*about: object) -> Any:
        seen.extend(about)
        return np.zeros(2)

    [task] = world.job("job").tasks.values()
    Plugins([Plugin(name="mine", arguments={"key": "value"}, score=score)]).points(nodes, task)
    assert seen == [nodes, task, {"key": "value"}]


def test_answers_of_several_plugins_add_up(world: World, nodes: NodeTable) -> None:
    [task] = world.job("job").tasks.values()
    plugins = Plugins(
        [
            answering(filter=np.array([True, False]), score=np.array([1, 2])),
            answering(filter=np.array([True, True]), score=np.array([0.5, 0.5])),
        ]
    )
    assert [list(mask) for mask in [plugins.mask(nodes, task)] if mask is not None] == [[True, False]]
    assert [list(points) for points in [plugins.points(nodes, task)] if points is not None] == [[1.5, 2.5]]
    assert [(name, list(mask)) for name, mask in plugins.filters(nodes, task)] == [
        ("mine", [True, False]),
        ("mine", [True, True]),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(RuntimeError("broken"), id="it fails"),
        pytest.param(None, id="nothing"),
        pytest.param([True, False], id="a list"),
        pytest.param(np.array([1.0, 0.0]), id="numbers"),
        pytest.param(np.array([True]), id="too short"),
        pytest.param(np.ones((2, 2), dtype=np.bool_), id="a table"),
    ],
)
def test_a_filter_that_is_no_use_refuses_nothing(world: World, nodes: NodeTable, answer: Any) -> None:
    [task] = world.job("job").tasks.values()
    assert Plugins([answering(filter=answer)]).mask(nodes, task) is None


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(KeyError("broken"), id="it fails"),
        pytest.param(1.0, id="a number"),
        pytest.param(np.array(["a", "b"]), id="words"),
        pytest.param(np.array([np.nan, 1.0]), id="no number"),
        pytest.param(np.array([np.inf, 1.0]), id="infinite"),
        pytest.param(np.array([1.0, 2.0, 3.0]), id="too long"),
    ],
)
def test_a_score_that_is_no_use_has_no_points(world: World, nodes: NodeTable, answer: Any) -> None:
    [task] = world.job("job").tasks.values()
    assert Plugins([answering(score=answer)]).points(nodes, task) is None


@pytest.mark.parametrize("answer", [ValueError("broken"), None, "first", float("nan"), (1, 2)], ids=repr)
def test_an_order_that_is_no_use_puts_all_in_one_place(world: World, answer: Any) -> None:
    job = world.job("job")
    [task] = job.tasks.values()
    plugins = Plugins([answering(job_order=answer, task_order=answer)])
    assert plugins.job_keys()["mine"](job) == 0.0
    assert plugins.task_keys()["mine"](task) == 0.0


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        pytest.param(None, None, id="yes"),
        pytest.param("", None, id="an empty sentence is a yes"),
        pytest.param("no budget is left", Refusal("mine", "no budget is left"), id="no"),
        pytest.param(ValueError("broken"), None, id="it fails"),
        pytest.param(False, None, id="no sentence"),
    ],
)
def test_a_job_is_refused_by_a_sentence(world: World, answer: Any, refusal: Refusal | None) -> None:
    assert Plugins([answering(validate=answer)]).refusal(world.job("job")) == refusal


def test_a_failure_is_told_once_for_each_function(world: World, nodes: NodeTable) -> None:
    [task] = world.job("job").tasks.values()
    plugins = Plugins([answering(filter=RuntimeError("broken"), score=np.zeros(7))])
    with capture_logs() as logs:
        for _ in range(3):
            plugins.mask(nodes, task)
            plugins.points(nodes, task)
    assert [(line["plugin"], line["function"], line["error"]) for line in logs] == [
        ("mine", "filter", "RuntimeError('broken')"),
        (
            "mine",
            "score",
            "it answered an array of shape (7,) and type float64: an array of 2 finite numbers is wanted",
        ),
    ]
