"""Which node is best: a field that follows what changes is one that is made anew, and many at once are one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.scheduler.gpu_requests import NOTHING, GpuRequest
from shoal.scheduler.model.amounts import WITHOUT_LIMIT
from shoal.scheduler.model.cluster import Cluster
from shoal.scheduler.model.jobs import single_pod_set
from shoal.scheduler.model.nodes import Hold, Nodes
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import ANYWHERE, Constraints, Request
from shoal.scheduler.session.allocating import allocate_job
from shoal.scheduler.session.filters import Filters, FilterSettings
from shoal.scheduler.session.placing import Field
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.settings import Settings, Strategy
from tests.scheduler.builders import a_model_job, a_model_node, a_model_queue, a_model_task

SIZE = 1000
STRATEGIES = st.sampled_from((Strategy.BINPACK, Strategy.SPREAD, Strategy.NONE))
STATUSES = st.sampled_from((Status.ALLOCATED, Status.RUNNING, Status.RELEASING, Status.PIPELINED))


def some_nodes(shapes: list[tuple[int, int, int]], names: ResourceNames) -> Nodes:
    """Nodes of so many cores, GPUs and places for pods."""
    return Nodes(
        [
            a_model_node(f"n{place:02d}", gpus, cpu=cores * 1000, memory=1e10, pods=pods, gpu_memory=SIZE)
            for place, (cores, gpus, pods) in enumerate(shapes)
        ],
        names,
    )


def a_request(names: ResourceNames, *, whole: int = 0, portion: float = 0.0, cores: float = 1.0) -> Request:
    vector = names.vector({"cpu": cores * 1000, "memory": 1e8, "gpu": float(whole), "pods": 1.0})
    gpu = GpuRequest(portion=portion, devices=1) if portion else GpuRequest(whole=whole) if whole else NOTHING
    return Request(vector, gpu=gpu)


SHAPES = st.lists(
    st.tuples(st.sampled_from((2, 8, 64)), st.sampled_from((0, 2, 8)), st.sampled_from((2, 20))),
    min_size=1,
    max_size=12,
)
ASKED = st.sampled_from((0.0, 0.3, 0.5, 1.0, 2.0))


@settings(max_examples=150)
@given(
    SHAPES,
    ASKED,
    STRATEGIES,
    st.lists(
        st.lists(st.tuples(st.integers(0, 11), ASKED, st.sampled_from("gh"), STATUSES, st.booleans()), max_size=8),
        max_size=4,
    ),
)
def test_a_field_that_follows_is_the_same_as_one_made_anew(
    shapes: list[tuple[int, int, int]],
    asked: float,
    strategy: Strategy,
    rounds: list[list[tuple[int, float, str, Status, bool]]],
) -> None:
    names = ResourceNames()
    nodes = some_nodes(shapes, names)
    chosen = Settings(cpu_strategy=strategy, gpu_strategy=strategy)
    filters = Filters(nodes, FilterSettings())
    request = a_request(names, whole=int(asked), portion=asked if 0 < asked < 1 else 0.0)
    following = Field(request, ANYWHERE, nodes, filters, chosen)
    following.refresh()
    holds: list[Hold] = []
    for place, changes in enumerate(rounds):
        for number, (row, size, group, status, goes) in enumerate(changes):
            if goes and holds:
                nodes.remove(holds.pop(row % len(holds)))
                continue
            one = a_request(names, whole=int(size), portion=size if 0 < size < 1 else 0.0)
            task = a_model_task("t", one, uid=f"{place}-{number}")
            groups = (group,) if one.is_shared else ()
            holds.append(Hold(task, row % len(nodes), status, groups))
            nodes.add(holds[-1])
        following.refresh()
        fresh = Field(request, ANYWHERE, nodes, filters, chosen)
        fresh.refresh()
        np.testing.assert_array_equal(following.fits, fresh.fits)
        np.testing.assert_array_equal(following.is_free, fresh.is_free)
        np.testing.assert_array_equal(following.score, fresh.score)


def placed(
    shapes: list[tuple[int, int, int]],
    running: list[tuple[int, int, Status]],
    kinds: list[tuple[int, int]],
    chosen: Settings,
    *,
    alike: bool,
    promises_only: bool,
) -> tuple[bool, list[tuple[str, Status, str]]]:
    """Where the tasks of one job go. Not alike: each has wishes of its own, and is placed by itself."""
    names = ResourceNames()
    nodes = some_nodes(shapes, names)
    cluster = Cluster(nodes=nodes, queues={"q": a_model_queue("q", quota=WITHOUT_LIMIT)})
    other = a_model_job("other", root=single_pod_set(0))
    for place, (row, gpus, status) in enumerate(running):
        task = a_model_task(f"r{place}", a_request(names, whole=gpus))
        hold = Hold(task, row % len(nodes), status)
        free = nodes.idle[hold.node] + (nodes.releasing[hold.node] if status is Status.PIPELINED else 0.0)
        if (free < task.request.vector).any():
            continue
        task.status, task.node, task.hold = status, nodes.nodes[hold.node].name, hold
        nodes.add(hold)
        other.add(task)
    requests = {gpus: a_request(names, whole=gpus) for gpus, _ in kinds}
    job = a_model_job("job", created=1, root=single_pod_set(0))
    for gpus, count in kinds:
        for _ in range(count):
            name = f"t{len(job.tasks):03d}"
            constraints = ANYWHERE if alike else Constraints()
            job.add(a_model_task(name, requests[gpus], constraints=constraints))
    job.root.pod_sets[0].min_member = len(job.tasks)
    cluster.jobs = {other.key: other, job.key: job}
    session = Session(cluster, chosen, now=1.0)
    statement = session.statement()
    is_placed = allocate_job(session, statement, job, promises_only=promises_only)
    return is_placed, [(task.name, task.status, task.node) for task in job.tasks.values()]


@settings(max_examples=150)
@given(
    SHAPES,
    st.lists(st.tuples(st.integers(0, 11), st.sampled_from((0, 1, 2)), STATUSES), max_size=10),
    st.lists(st.tuples(st.sampled_from((0, 1, 2)), st.integers(1, 12)), min_size=1, max_size=3),
    STRATEGIES,
    st.booleans(),
)
def test_tasks_that_are_alike_go_where_they_would_go_one_by_one(
    shapes: list[tuple[int, int, int]],
    running: list[tuple[int, int, Status]],
    kinds: list[tuple[int, int]],
    strategy: Strategy,
    promises_only: bool,
) -> None:
    chosen = Settings(cpu_strategy=strategy, gpu_strategy=strategy)
    together = placed(shapes, running, kinds, chosen, alike=True, promises_only=promises_only)
    one_by_one = placed(shapes, running, kinds, chosen, alike=False, promises_only=promises_only)

    assert together == one_by_one


def a_field(shapes: list[tuple[int, int, int]], *, whole: int = 1, strategy: Strategy = Strategy.BINPACK) -> Field:
    names = ResourceNames()
    nodes = some_nodes(shapes, names)
    chosen = Settings(gpu_strategy=strategy)
    field = Field(a_request(names, whole=whole), ANYWHERE, nodes, Filters(nodes, FilterSettings()), chosen)
    field.refresh()
    return field


@pytest.mark.parametrize(
    ("strategy", "best"),
    [(Strategy.BINPACK, 1), (Strategy.SPREAD, 0), (Strategy.NONE, 0)],
    ids=["packed where least is free", "spread where most is free", "the first by name"],
)
def test_the_best_node_is_the_one_that_the_strategy_asks_for(strategy: Strategy, best: int) -> None:
    field = a_field([(64, 8, 20), (64, 2, 20), (64, 2, 20)], strategy=strategy)

    assert field.best(None) == best


def test_no_node_is_the_best_where_none_will_do() -> None:
    assert a_field([(64, 2, 20)], whole=3).best(None) == -1
    assert a_field([(64, 2, 20)]).best(np.array([False])) == -1


def test_how_many_have_room_is_counted_by_what_is_least() -> None:
    field = a_field([(3, 8, 20), (64, 2, 20), (64, 8, 2), (64, 0, 20)])

    assert field.rooms().tolist() == [3, 2, 2, 0]
    assert [field.room_now(row) for row in range(3)] == [3, 2, 2]
