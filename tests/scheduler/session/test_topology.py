"""Which sets of nodes are tried for pods that are to be near each other, and in what order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.scheduler.gpu_requests import GpuRequest
from shoal.scheduler.model.cluster import Topology
from shoal.scheduler.model.jobs import TopologyWish
from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.model.resources import Mask
from shoal.scheduler.model.tasks import Request, Task
from shoal.scheduler.session.domains import forget
from shoal.scheduler.session.topology import TopologyProblem, level_scores, node_sets
from tests.scheduler.builders import a_model_node, a_model_task
from tests.scheduler.session.node_builders import NAMES, NIC, a_request, names_in, nodes_of

TOPOLOGY = Topology("tree", ("zone", "rack"))
CPU = a_request(cpu=500)
GPU = a_request(whole=1)


def a_cluster(rows: dict[str, tuple[str, str, float]]) -> Nodes:
    """Nodes by name, with their zone, their rack and how many GPUs (and thousands of CPU) they have."""
    return nodes_of(
        *(
            a_model_node(name, cpu=1000 * free, gpus=free, labels={"zone": zone, "rack": rack})
            for name, (zone, rack, free) in rows.items()
        )
    )


def some_tasks(count: int, request: Request = GPU) -> list[Task]:
    return [a_model_task(f"task-{number}", request=request) for number in range(count)]


def room(nodes: Nodes) -> Callable[[Request], NDArray[np.int64]]:
    """How many tasks of a request each node has room for, the plain way."""

    def fits(request: Request) -> NDArray[np.int64]:
        free = nodes.idle + nodes.releasing
        asked = request.vector > 0
        found: NDArray[np.int64] = np.maximum(0, (free[:, asked] // request.vector[asked]).min(axis=1)).astype(np.int64)
        return found

    return fits


def tried(
    nodes: Nodes,
    tasks: Sequence[Task],
    *,
    required: str = "",
    preferred: str = "",
    allowed: Mask | None = None,
    active: Sequence[str] = (),
    topology: Topology | None = TOPOLOGY,
    name: str = "tree",
) -> list[set[str]] | TopologyProblem:
    sets = node_sets(
        nodes,
        topology,
        TopologyWish(name, required=required, preferred=preferred),
        tasks,
        allowed=np.ones(len(nodes), dtype=np.bool_) if allowed is None else allowed,
        active_rows=[nodes.index[name] for name in active],
        fits=room(nodes),
    )
    return sets if isinstance(sets, TopologyProblem) else [names_in(nodes, mask) for mask in sets]


TWO_ZONES = {
    "a1": ("a", "1", 4.0),
    "a2": ("a", "2", 2.0),
    "b1": ("b", "1", 1.0),
    "b2": ("b", "2", 8.0),
}


@pytest.mark.parametrize(
    ("count", "required", "preferred", "expected"),
    [
        pytest.param(
            2, "rack", "", [{"a2"}, {"a1"}, {"b2"}], id="required: the tightest zone, its tightest rack first"
        ),
        pytest.param(3, "rack", "", [{"a1"}, {"b2"}], id="required: racks without room are left out"),
        pytest.param(2, "rack", "rack", [{"a2"}, {"a1"}, {"b2"}], id="required and preferred alike"),
        pytest.param(5, "zone", "", [{"a1", "a2"}, {"b1", "b2"}], id="required zone"),
        pytest.param(7, "zone", "", [{"b1", "b2"}], id="required zone that one zone alone has room for"),
        pytest.param(
            3, "zone", "rack", [{"a1"}, {"b2"}, {"a1", "a2"}, {"b1", "b2"}], id="racks before the zones around them"
        ),
        pytest.param(
            5,
            "zone",
            "rack",
            [{"b2"}, {"a1", "a2"}, {"b1", "b2"}],
            id="one rack before the zones, even of a later zone",
        ),
        pytest.param(12, "", "rack", [{"a1", "a2", "b1", "b2"}], id="preferred alone falls back to the whole topology"),
        pytest.param(
            9, "", "zone", [{"b1", "b2"}, {"a1", "a2", "b1", "b2"}], id="preferred zone, then the whole topology"
        ),
        pytest.param(2, "rack", "zone", [{"a2"}, {"a1"}, {"b2"}], id="a wider preference adds nothing"),
    ],
)
def test_the_nearest_and_tightest_domains_come_first(
    count: int, required: str, preferred: str, expected: list[set[str]]
) -> None:
    assert tried(a_cluster(TWO_ZONES), some_tasks(count), required=required, preferred=preferred) == expected


def test_equally_tight_domains_come_in_the_order_of_their_names() -> None:
    nodes = a_cluster({"x": ("a", "2", 4), "y": ("a", "1", 4), "z": ("a", "10", 4)})
    assert tried(nodes, some_tasks(1), required="rack") == [{"y"}, {"z"}, {"x"}]


def test_the_resource_that_is_scarcest_says_how_tight_a_domain_is() -> None:
    nodes = nodes_of(
        a_model_node("one", cpu=100_000, gpus=5, labels={"zone": "a", "rack": "1"}),
        a_model_node("two", cpu=2_000, gpus=8, labels={"zone": "a", "rack": "2"}),
    )
    assert tried(nodes, some_tasks(1, a_request(cpu=1000, whole=1)), required="rack") == [{"two"}, {"one"}]


def test_nodes_without_all_labels_of_the_topology_do_not_belong_to_it() -> None:
    nodes = nodes_of(
        a_model_node("in", labels={"zone": "a", "rack": "1"}),
        a_model_node("out", labels={"zone": "a"}),
        a_model_node("bare"),
    )
    assert tried(nodes, some_tasks(1), preferred="zone") == [{"in"}]


def test_equal_values_under_different_domains_are_different_domains() -> None:
    nodes = a_cluster({"one": ("a", "1", 1), "two": ("b", "1", 1)})
    assert tried(nodes, some_tasks(1), required="rack") == [{"one"}, {"two"}]
    assert isinstance(tried(nodes, some_tasks(2), required="rack"), TopologyProblem)


def test_room_is_counted_node_by_node_so_that_scraps_do_not_add_up() -> None:
    nodes = a_cluster({"one": ("a", "1", 3), "two": ("a", "1", 3)})
    pairs = a_request(whole=2)
    assert tried(nodes, some_tasks(2, pairs), required="rack") == [{"one", "two"}]
    assert isinstance(tried(nodes, some_tasks(3, pairs), required="rack"), TopologyProblem)


def test_the_largest_of_several_requests_says_how_many_have_room() -> None:
    nodes = a_cluster({"one": ("a", "1", 8), "two": ("a", "2", 16)})
    tasks = [*some_tasks(2, a_request(whole=1)), *some_tasks(1, a_request(whole=4))]
    assert tried(nodes, tasks, required="rack") == [{"two"}]


def test_tasks_of_different_kinds_are_counted_by_what_they_need_together() -> None:
    nodes = a_cluster({"one": ("a", "1", 3), "two": ("a", "1", 3), "three": ("b", "2", 8)})
    mixed = [*some_tasks(3, a_request(whole=2)), *some_tasks(1, CPU)]
    assert tried(nodes, mixed, required="rack") == [{"one", "two"}, {"three"}]
    with_nic = [*some_tasks(1), *some_tasks(1, a_request(whole=1, nics=1))]
    problem = tried(nodes, with_nic, required="rack")
    assert isinstance(problem, TopologyProblem)
    assert problem.details[0] == "a.1 has room for 0 of 2 pods: not enough example.com/nic"
    shared = nodes_of(
        a_model_node("one", gpus=2, extended={NIC: 1}, resources=NAMES, labels={"zone": "a", "rack": "1"})
    )
    assert tried(shared, with_nic, required="rack") == [{"one"}]


def test_parts_of_gpus_add_up_exactly() -> None:
    nodes = a_cluster({"one": ("a", "1", 2)})
    parts = ((2, 0.01), (7, 0.15), (3, 0.14), (3, 0.17))  # two GPUs, or a little more in the arithmetic of machines
    tasks = [
        task
        for count, portion in parts
        for task in some_tasks(count, a_request(gpu=GpuRequest(portion=portion, devices=1)))
    ]
    assert tried(nodes, [*tasks, *some_tasks(1, CPU)], required="rack") == [{"one"}]


def test_what_is_about_to_be_free_is_room_too() -> None:
    nodes = a_cluster({"one": ("a", "1", 4), "two": ("a", "2", 4)})
    nodes.idle[:] = 0
    nodes.idle[:, 3] = 10
    assert isinstance(tried(nodes, some_tasks(2), required="rack"), TopologyProblem)
    nodes.releasing[1, [0, 2]] = 4000, 2
    assert tried(nodes, some_tasks(2), required="rack") == [{"two"}]
    assert tried(nodes, [*some_tasks(2), *some_tasks(1, CPU)], required="rack") == [{"two"}]


def test_pods_that_run_already_bind_the_others_to_their_domain() -> None:
    nodes = a_cluster(TWO_ZONES)
    assert tried(nodes, some_tasks(1), required="zone", active=["b1"]) == [{"b1", "b2"}]
    assert tried(nodes, some_tasks(1), required="zone", preferred="rack", active=["b1"]) == [
        {"b1"},
        {"b2"},
        {"b1", "b2"},
    ]
    assert isinstance(tried(nodes, some_tasks(2), required="rack", active=["b1"]), TopologyProblem)


def test_pods_that_run_already_bind_nobody_to_what_is_only_preferred() -> None:
    assert tried(a_cluster(TWO_ZONES), some_tasks(3), preferred="zone", active=["b1"]) == [
        {"a1", "a2"},
        {"b1", "b2"},
        {"a1", "a2", "b1", "b2"},
    ]
    outside = nodes_of(a_model_node("in", labels={"zone": "a", "rack": "1"}), a_model_node("out"))
    assert tried(outside, some_tasks(1), preferred="zone", active=["out"]) == [{"in"}]
    assert isinstance(tried(outside, some_tasks(1), required="zone", active=["out"]), TopologyProblem)


def test_a_subgroup_sees_only_the_nodes_of_the_group_around_it() -> None:
    nodes = a_cluster(TWO_ZONES)
    zone_a = np.array([node.labels["zone"] == "a" for node in nodes.nodes])
    assert tried(nodes, some_tasks(2), preferred="rack", allowed=zone_a) == [{"a2"}, {"a1"}, {"a1", "a2"}]
    rack = np.array([node.name == "a1" for node in nodes.nodes])
    assert tried(nodes, some_tasks(2), required="zone", allowed=rack) == [{"a1"}]


def test_the_same_nodes_are_not_tried_twice() -> None:
    nodes = a_cluster({"one": ("a", "1", 4), "two": ("a", "1", 4)})
    assert tried(nodes, some_tasks(2), preferred="rack") == [{"one", "two"}]


def test_nothing_to_place_or_nothing_asked_leaves_all_nodes() -> None:
    nodes = a_cluster(TWO_ZONES)
    everywhere = [set(TWO_ZONES)]
    assert tried(nodes, [], required="rack") == everywhere
    assert tried(nodes, some_tasks(99), name="", topology=None) == everywhere


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        pytest.param(
            {"name": "other", "topology": None, "required": "rack"}, "topology other does not exist", id="topology"
        ),
        pytest.param({"required": "row"}, "topology tree has no level row, which is required", id="required level"),
        pytest.param(
            {"required": "zone", "preferred": "row"},
            "topology tree has no level row, which is preferred",
            id="preferred",
        ),
        pytest.param({}, "topology tree is asked for, but no level of it", id="no level"),
    ],
)
def test_what_does_not_exist_is_said_and_no_eviction_will_help(wish: dict[str, Any], message: str) -> None:
    assert tried(a_cluster(TWO_ZONES), some_tasks(1), **wish) == TopologyProblem(message, is_misconfigured=True)


def test_where_no_domain_has_room_the_best_of_them_are_named() -> None:
    problem = tried(a_cluster(TWO_ZONES), some_tasks(10), required="zone", preferred="rack")
    assert problem == TopologyProblem(
        "topology tree: no domain of level zone has room for 10 pods together",
        (
            "b has room for 9 of 10 pods: not enough GPUs",
            "a has room for 6 of 10 pods: not enough GPUs",
        ),
    )
    whole = tried(a_cluster(TWO_ZONES), some_tasks(20), preferred="rack")
    assert whole == TopologyProblem(
        "topology tree: no part of the cluster has room for 20 pods together",
        ("the cluster has room for 15 of 20 pods: not enough GPUs",),
    )


def scores(nodes: Nodes, tasks: Sequence[Task], preferred: str, allowed: Mask | None = None) -> dict[str, float] | None:
    mask = np.ones(len(nodes), dtype=np.bool_) if allowed is None else allowed
    found = level_scores(nodes, TOPOLOGY, TopologyWish("tree", preferred=preferred), tasks, allowed=mask)
    return None if found is None else dict(zip([node.name for node in nodes.nodes], found.tolist(), strict=True))


def test_the_loosest_domain_of_the_preferred_level_has_the_most_points() -> None:
    nodes = a_cluster(TWO_ZONES)
    assert scores(nodes, some_tasks(1), "zone") == {"a1": 500_000, "a2": 500_000, "b1": 1_000_000, "b2": 1_000_000}
    assert scores(nodes, some_tasks(1), "rack") == {"a2": 200_000, "a1": 500_000, "b1": 700_000, "b2": 1_000_000}


def test_points_are_divided_among_the_domains_that_are_offered() -> None:
    nodes = a_cluster(TWO_ZONES)
    zone_a = np.array([node.labels["zone"] == "a" for node in nodes.nodes])
    assert scores(nodes, some_tasks(1), "rack", zone_a) == {"a2": 500_000, "a1": 1_000_000, "b1": 0, "b2": 0}


def test_a_topology_that_no_node_belongs_to_has_neither_room_nor_points() -> None:
    nodes = nodes_of(a_model_node("bare"))
    problem = tried(nodes, some_tasks(1), required="rack")
    assert problem == TopologyProblem("topology tree: no domain of level rack has room for 1 pod together")
    assert isinstance(tried(nodes, some_tasks(1), preferred="rack"), TopologyProblem)
    assert scores(nodes, some_tasks(1), "rack") == {"bare": 0}


def test_what_is_not_preferred_has_no_points() -> None:
    assert scores(a_cluster(TWO_ZONES), some_tasks(1), "") is None


def test_labels_that_change_are_seen_once_the_old_ones_are_forgotten() -> None:
    nodes = a_cluster({"one": ("a", "1", 1), "two": ("a", "1", 1)})
    assert tried(nodes, some_tasks(1), required="rack") == [{"one", "two"}]
    nodes.nodes[0].labels = {"zone": "a", "rack": "2"}
    forget(nodes)
    assert tried(nodes, some_tasks(1), required="rack") == [{"two"}, {"one"}]


CLUSTERS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", ""]),
        st.sampled_from(["1", "2", "3"]),
        st.integers(0, 4),
        st.booleans(),
        st.booleans(),
    ),
    max_size=8,
)


@given(
    CLUSTERS,
    st.sampled_from([("rack", ""), ("zone", ""), ("zone", "rack"), ("", "rack"), ("", "zone")]),
    st.integers(1, 6),
    st.integers(0, 3),
)
def test_sets_are_exactly_the_domains_with_room_deepest_first(
    found: list[tuple[str, str, int, bool, bool]], levels: tuple[str, str], whole: int, cpu_only: int
) -> None:
    nodes = nodes_of(
        *(
            a_model_node(f"n{number}", free, cpu=8000, labels={"rack": rack} | ({"zone": zone} if zone else {}))
            for number, (zone, rack, free, _, _) in enumerate(found)
        )
    )
    allowed = np.array([is_allowed for *_, is_allowed, _ in found], dtype=np.bool_)
    active = [f"n{number}" for number, (*_, is_active) in enumerate(found) if is_active]
    tasks = [*some_tasks(whole), *some_tasks(cpu_only, CPU)]
    required, preferred = levels
    sets = tried(nodes, tasks, required=required, preferred=preferred, allowed=allowed, active=active)
    expected = domains_with_room(nodes, allowed, levels, whole, cpu_only, active)
    if isinstance(sets, TopologyProblem):
        assert expected == {}
        return
    assert all(names <= names_in(nodes, allowed) for names in sets)
    assert {frozenset(names) for names in sets} == set(expected)
    depths = [expected[frozenset(names)] for names in sets]
    assert depths == sorted(depths, reverse=True)


def domains_with_room(
    nodes: Nodes, allowed: Mask, levels: tuple[str, str], whole: int, cpu_only: int, active: Sequence[str]
) -> dict[frozenset[str], int]:
    """All domains of the levels in question that have room, with their depth, found the plain way."""
    required, preferred = levels
    depth = {"": 0, "zone": 1, "rack": 2}
    members = [node for node in nodes.nodes if "zone" in node.labels]

    def domain(node: Any, level: int) -> tuple[str, ...]:
        return (node.labels["zone"], node.labels["rack"])[:level]

    held = {domain(node, depth[required]) for node in members if node.name in active}
    found: dict[frozenset[str], int] = {}
    for level in range(depth[required], depth[preferred or required] + 1):
        parts: dict[tuple[str, ...], list[Any]] = {}
        for node in members:
            is_bound = required and active and domain(node, depth[required]) not in held
            if allowed[nodes.index[node.name]] and not is_bound:
                parts.setdefault(domain(node, level), []).append(node)
        for part in parts.values():
            gpus = Counter({node.name: int(node.allocatable[2]) for node in part})
            cpus = 8000 * len(part)
            has_room = gpus.total() >= whole and (not cpu_only or cpu_only * 500 <= cpus)
            if has_room:
                found[frozenset(gpus)] = max(level, found.get(frozenset(gpus), 0))
    return found
