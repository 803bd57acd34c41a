"""Pods that want to be near each other or apart, and pods that want the same port: cases, and a slow check by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.model.tasks import Constraints, Task
from shoal.scheduler.session.affinity import NOT_NEAR, TOO_NEAR, UNWANTED
from shoal.scheduler.session.pod_index import PORT_TAKEN, PodIndex
from tests.scheduler.builders import a_model_task
from tests.scheduler.session.node_builders import labelled, names_in

NODES = labelled(
    {
        "e1": {"zone": "east", "host": "e1"},
        "e2": {"zone": "east", "host": "e2"},
        "w1": {"zone": "west", "host": "w1"},
        "bare": {},
    }
)
DATABASE = {"app": "database"}


def a_term(key: str, labels: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    selector = {} if labels is None else {"labelSelector": {"matchLabels": labels}}
    return {"topologyKey": key, **selector, **more}


def index_of(*placed: tuple[Task, str], nodes: Nodes = NODES, **more: Any) -> PodIndex:
    index = PodIndex(nodes, **more)
    for task, node in placed:
        index.add(task, nodes.index[node])
    return index


def near(*terms: dict[str, Any]) -> Constraints:
    return Constraints(pod_affinity=terms)


def apart(*terms: dict[str, Any]) -> Constraints:
    return Constraints(pod_anti_affinity=terms)


def test_pods_that_ask_nothing_cost_nothing() -> None:
    index = index_of((a_model_task("one", labels=DATABASE), "e1"))
    assert index.mask(a_model_task("two", labels=DATABASE)) is None
    assert index.scores(a_model_task("two", labels=DATABASE)) is None
    assert index.why_not(a_model_task("two"), 0) == ""
    assert index.reasons(a_model_task("two")) == {}


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        pytest.param(near(a_term("zone", DATABASE)), {"e1", "e2"}, id="near: the same zone"),
        pytest.param(near(a_term("host", DATABASE)), {"e1"}, id="near: the same host"),
        pytest.param(near(a_term("zone", DATABASE), a_term("host", DATABASE)), {"e1"}, id="near: all terms"),
        pytest.param(near(a_term("zone", {"app": "web"})), set(), id="near: pods that are nowhere"),
        pytest.param(near(a_term("zone")), set(), id="near: no selector means no pods"),
        pytest.param(near(a_term("zone", {})), {"e1", "e2"}, id="near: an empty selector means all pods"),
        pytest.param(apart(a_term("zone", DATABASE)), {"w1", "bare"}, id="apart: another zone, or none"),
        pytest.param(apart(a_term("host", DATABASE)), {"e2", "w1", "bare"}, id="apart: another host"),
        pytest.param(apart(a_term("zone")), {"e1", "e2", "w1", "bare"}, id="apart: no selector means no pods"),
        pytest.param(
            Constraints(pod_affinity=(a_term("zone", DATABASE),), pod_anti_affinity=(a_term("host", DATABASE),)),
            {"e2"},
            id="the same zone but another host",
        ),
        pytest.param(
            apart(a_term("host", DATABASE, namespaces=["other"])), {"e1", "e2", "w1", "bare"}, id="of another namespace"
        ),
        pytest.param(
            apart(a_term("host", DATABASE, namespaces=["other", "default"])), {"e2", "w1", "bare"}, id="of either"
        ),
        pytest.param(
            apart(a_term("host", DATABASE, namespaceSelector={"matchLabels": {"team": "a"}})),
            {"e2", "w1", "bare"},
            id="of namespaces with a label",
        ),
        pytest.param(
            apart(a_term("host", DATABASE, namespaceSelector={"matchLabels": {"team": "b"}})),
            {"e1", "e2", "w1", "bare"},
            id="of namespaces with another label",
        ),
        pytest.param(
            apart(a_term("host", DATABASE, namespaceSelector={})), {"e2", "w1", "bare"}, id="of every namespace"
        ),
        pytest.param(
            apart({"topologyKey": "host", "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In"}]}}),
            {"e1", "e2", "w1", "bare"},
            id="a selector that is not valid means no pods",
        ),
        pytest.param(
            apart(
                {"topologyKey": "host", "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}
            ),
            {"e2", "w1", "bare"},
            id="a selector without values",
        ),
    ],
)
def test_required_terms_of_the_pod_that_is_placed(constraints: Constraints, expected: set[str]) -> None:
    index = index_of((a_model_task("database", labels=DATABASE), "e1"), namespaces={"default": {"team": "a"}})
    assert names_in(NODES, index.mask(a_model_task("new", constraints=constraints))) == expected


def test_both_sides_of_a_zone_are_taken_so_the_pod_waits() -> None:
    constraints = Constraints(pod_affinity=(a_term("zone", DATABASE),), pod_anti_affinity=(a_term("host", DATABASE),))
    index = index_of((a_model_task("one", labels=DATABASE), "e1"), (a_model_task("two", labels=DATABASE), "e2"))
    assert names_in(NODES, index.mask(a_model_task("new", labels=DATABASE, constraints=constraints))) == set()


def test_pods_that_are_placed_keep_others_away_too() -> None:
    lonely = a_model_task("lonely", labels=DATABASE, constraints=apart(a_term("zone", {"app": "web"})))
    index = index_of((lonely, "e1"))
    web = a_model_task("web", labels={"app": "web"})
    assert names_in(NODES, index.mask(web)) == {"w1", "bare"}
    assert index.why_not(web, NODES.index["e2"]) == UNWANTED
    assert names_in(NODES, index.mask(a_model_task("other", labels={"app": "other"}))) == {"e1", "e2", "w1", "bare"}
    assert names_in(NODES, index.mask(a_model_task("web", namespace="elsewhere", labels={"app": "web"}))) == {
        "e1",
        "e2",
        "w1",
        "bare",
    }
    index.remove(lonely, NODES.index["e1"])
    assert index.mask(web) is None


def test_the_first_of_pods_that_want_to_be_together_may_start_anywhere_with_the_label() -> None:
    together = near(a_term("zone", DATABASE))
    first, second = (a_model_task(name, labels=DATABASE, constraints=together) for name in ("first", "second"))
    index = index_of()
    assert names_in(NODES, index.mask(first)) == {"e1", "e2", "w1"}
    index.add(first, NODES.index["w1"])
    assert names_in(NODES, index.mask(second)) == {"w1"}
    index.remove(first, NODES.index["w1"])
    assert names_in(NODES, index.mask(second)) == {"e1", "e2", "w1"}
    stranger = a_model_task("stranger", labels={"app": "web"}, constraints=together)
    assert names_in(NODES, index.mask(stranger)) == set()


def test_affinity_counts_pods_that_all_terms_mean_together() -> None:
    terms = near(a_term("zone", {"app": "database"}), a_term("zone", {"tier": "gold"}))
    index = index_of(
        (a_model_task("one", labels={"app": "database"}), "e1"),
        (a_model_task("two", labels={"tier": "gold"}), "e1"),
        (a_model_task("three", labels={"app": "database", "tier": "gold"}), "w1"),
    )
    assert names_in(NODES, index.mask(a_model_task("new", constraints=terms))) == {"w1"}


def test_nodes_without_the_label_are_not_near_each_other() -> None:
    nodes = labelled({"one": {}, "two": {}, "three": {"zone": "east"}})
    index = index_of((a_model_task("database", labels=DATABASE), "one"), nodes=nodes)
    assert names_in(nodes, index.mask(a_model_task("x", constraints=apart(a_term("zone", DATABASE))))) == {
        "one",
        "two",
        "three",
    }
    assert names_in(nodes, index.mask(a_model_task("y", constraints=near(a_term("zone", DATABASE))))) == set()


def test_pods_that_have_gone_are_not_found_by_their_labels_any_more() -> None:
    gone, stays = a_model_task("gone", labels=DATABASE), a_model_task("stays", labels=DATABASE)
    index = index_of((gone, "e1"), (stays, "w1"))
    assert names_in(NODES, index.mask(a_model_task("x", constraints=apart(a_term("zone", DATABASE))))) == {"bare"}
    index.remove(gone, NODES.index["e1"])
    assert names_in(NODES, index.mask(a_model_task("y", constraints=apart(a_term("host", DATABASE))))) == {
        "e1",
        "e2",
        "bare",
    }


def test_keys_of_labels_narrow_a_term_to_the_pods_own_value() -> None:
    old, new = {"app": "web", "version": "1"}, {"app": "web", "version": "2"}
    index = index_of((a_model_task("one", labels=old), "e1"))
    same = apart(a_term("host", {"app": "web"}, matchLabelKeys=["version", "absent"]))
    other = apart(a_term("host", {"app": "web"}, mismatchLabelKeys=["version"]))
    assert "e1" in names_in(NODES, index.mask(a_model_task("new", labels=new, constraints=same)))
    assert "e1" not in names_in(NODES, index.mask(a_model_task("old", labels=old, constraints=same)))
    assert "e1" not in names_in(NODES, index.mask(a_model_task("new", labels=new, constraints=other)))
    assert "e1" in names_in(NODES, index.mask(a_model_task("old", labels=old, constraints=other)))


def test_a_pod_that_moves_is_not_in_its_own_way() -> None:
    alone = Constraints(pod_anti_affinity=(a_term("zone", DATABASE),), ports=frozenset({("TCP", 80, "")}))
    task = a_model_task("one", labels=DATABASE, constraints=alone)
    index = index_of((task, "e1"))
    assert names_in(NODES, index.mask(task)) == {"e1", "e2", "w1", "bare"}
    twin = a_model_task("two", labels=DATABASE, constraints=alone)
    assert names_in(NODES, index.mask(twin)) == {"w1", "bare"}
    index.add(task, NODES.index["w1"])
    assert names_in(NODES, index.mask(twin)) == {"bare"}
    index.remove(task, NODES.index["e1"])
    assert names_in(NODES, index.mask(twin)) == {"e1", "e2", "bare"}


def test_every_node_is_counted_under_its_first_reason() -> None:
    ports = frozenset({("TCP", 80, "")})
    index = index_of(
        (a_model_task("server", constraints=Constraints(ports=ports)), "bare"),
        (a_model_task("database", labels=DATABASE), "e1"),
        (a_model_task("lonely", constraints=apart(a_term("host", {"app": "web"}))), "w1"),
    )
    constraints = Constraints(ports=ports, pod_anti_affinity=(a_term("zone", DATABASE),))
    web = a_model_task("web", labels={"app": "web"}, constraints=constraints)
    assert index.reasons(web) == {PORT_TAKEN: 1, TOO_NEAR: 2, UNWANTED: 1}
    assert index.why_not(web, NODES.index["bare"]) == PORT_TAKEN
    assert index.why_not(a_model_task("x", constraints=near(a_term("zone", DATABASE))), NODES.index["w1"]) == NOT_NEAR


def preferring(weight: int, term: dict[str, Any]) -> Constraints:
    return Constraints(preferred_pod_affinity=({"weight": weight, "podAffinityTerm": term},))


def test_preferred_terms_count_in_both_directions() -> None:
    liked = preferring(10, a_term("zone", DATABASE))
    index = index_of((a_model_task("one", labels=DATABASE, constraints=liked), "e1"))
    both = index.scores(a_model_task("new", labels=DATABASE, constraints=liked))
    assert both is not None
    assert dict(zip([n.name for n in NODES.nodes], both.tolist(), strict=True)) == {
        "e1": 20,
        "e2": 20,
        "w1": 0,
        "bare": 0,
    }
    meant = index.scores(a_model_task("new", labels=DATABASE))
    assert meant is not None
    assert meant[NODES.index["e2"]] == 10
    stranger = index.scores(a_model_task("new"))
    assert stranger is not None
    assert not stranger.any()


def test_pods_that_would_rather_be_apart_count_against_a_node() -> None:
    index = index_of((a_model_task("one", labels=DATABASE), "e1"), (a_model_task("two", labels=DATABASE), "e2"))
    scores = index.scores(a_model_task("new", constraints=preferring(-5, a_term("zone", DATABASE))))
    assert scores is not None
    assert scores.tolist() == [0, -10, -10, 0]


LABELS = st.dictionaries(st.sampled_from(["p", "q"]), st.sampled_from(["1", "2"]))
SELECTORS = st.one_of(
    st.none(),
    st.fixed_dictionaries({"matchLabels": LABELS}),
    st.builds(
        lambda key, operator: {"matchExpressions": [{"key": key, "operator": operator}]},
        st.sampled_from(["p", "q"]),
        st.sampled_from(["Exists", "DoesNotExist"]),
    ),
    st.builds(
        lambda key, operator, values: {"matchExpressions": [{"key": key, "operator": operator, "values": values}]},
        st.sampled_from(["p", "q"]),
        st.sampled_from(["In", "NotIn"]),
        st.lists(st.sampled_from(["1", "2", "3"]), min_size=1, max_size=2),
    ),
)
TERMS = st.builds(
    lambda key, selector, namespaces, among: {
        "topologyKey": key,
        **({} if selector is None else {"labelSelector": selector}),
        **({} if not namespaces else {"namespaces": namespaces}),
        **({} if among is None else {"namespaceSelector": {"matchLabels": among}}),
    },
    st.sampled_from(["zone", "host"]),
    SELECTORS,
    st.lists(st.sampled_from(["x", "y"]), max_size=2),
    st.none() | st.dictionaries(st.just("team"), st.sampled_from(["a", "b"])),
)
CONSTRAINTS = st.builds(
    Constraints,
    pod_affinity=st.lists(TERMS, max_size=2).map(tuple),
    pod_anti_affinity=st.lists(TERMS, max_size=2).map(tuple),
    preferred_pod_affinity=st.lists(
        st.fixed_dictionaries({"weight": st.sampled_from([-3, 1, 7]), "podAffinityTerm": TERMS}), max_size=2
    ).map(tuple),
    ports=st.frozensets(st.sampled_from([("TCP", 1, ""), ("TCP", 1, "10.0.0.1"), ("UDP", 1, "")]), max_size=1),
)
PODS = st.tuples(st.sampled_from(["x", "y"]), LABELS, CONSTRAINTS)
NAMESPACES = {"x": {"team": "a"}, "y": {"team": "b"}}


@given(
    st.lists(st.tuples(PODS, st.integers(0, 3), st.booleans(), st.booleans()), max_size=5),
    st.lists(PODS, min_size=1, max_size=3),
)
def test_whatever_came_and_went_the_index_says_what_a_fresh_look_at_all_pods_says(
    steps: list[tuple[Any, int, bool, bool]], asking: list[Any]
) -> None:
    index = PodIndex(NODES, NAMESPACES)
    newcomers = [pod(f"new-{number}", found) for number, found in enumerate(asking)]
    placed: list[tuple[Task, int]] = []
    for number, (found, row, leaves, asks) in enumerate(steps):
        if asks:  # the earlier a question is asked, the more the index keeps up to date from then on
            index.mask(newcomers[0])
            index.scores(newcomers[0])
        placed.append((pod(f"pod-{number}", found), row))
        index.add(*placed[-1])
        if leaves:
            index.remove(*placed.pop(0))
    for newcomer in newcomers:
        mask, scores = index.mask(newcomer), index.scores(newcomer)
        expected = [may_go(newcomer, row, placed) for row in range(len(NODES))]
        assert ([True] * len(NODES) if mask is None else mask.tolist()) == expected
        wanted = [points(newcomer, row, placed) for row in range(len(NODES))]
        assert ([0] * len(NODES) if scores is None else scores.tolist()) == wanted


def pod(name: str, found: Any) -> Task:
    namespace, labels, constraints = found
    return a_model_task(name, namespace=namespace, labels=labels, constraints=constraints)


def may_go(task: Task, row: int, placed: list[tuple[Task, int]]) -> bool:
    """The rules of Kubernetes, for one node, in the plainest way."""
    constraints, own = task.constraints, NODES.nodes[row].labels
    for other, place in placed:
        if place == row and any(clash(a, b) for a in constraints.ports for b in other.constraints.ports):
            return False
        if any(means(t, task, other) and share(t, row, place) for t in constraints.pod_anti_affinity):
            return False
        if any(means(t, other, task) and share(t, row, place) for t in other.constraints.pod_anti_affinity):
            return False
    terms = constraints.pod_affinity
    if any(term["topologyKey"] not in own for term in terms):
        return False
    meant = [place for other, place in placed if all(means(term, task, other) for term in terms)]
    if all(any(share(term, row, place) for place in meant) for term in terms):
        return True
    nowhere = not any(t["topologyKey"] in NODES.nodes[place].labels for t in terms for place in meant)
    return nowhere and all(means(term, task, task) for term in terms)


def points(task: Task, row: int, placed: list[tuple[Task, int]]) -> int:
    total = 0
    for other, place in placed:
        for owner, meant in ((task, other), (other, task)):
            for weighted in owner.constraints.preferred_pod_affinity:
                term = weighted["podAffinityTerm"]
                if means(term, owner, meant) and share(term, row, place):
                    total += weighted["weight"]
    return total


def share(term: Any, one: int, other: int) -> bool:
    key = term["topologyKey"]
    value = NODES.nodes[one].labels.get(key)
    return value is not None and value == NODES.nodes[other].labels.get(key)


def means(term: Any, owner: Task, task: Task) -> bool:
    selector, names, among = term.get("labelSelector"), term.get("namespaces"), term.get("namespaceSelector")
    if names is None and among is None:
        names = [owner.namespace]
    in_namespace = task.namespace in (names or []) or (
        among is not None and among["matchLabels"].items() <= NAMESPACES[task.namespace].items()
    )
    if selector is None or not in_namespace:
        return False
    if not selector.get("matchLabels", {}).items() <= task.labels.items():
        return False
    for expression in selector.get("matchExpressions", []):
        key, operator = expression["key"], expression["operator"]
        if operator in ("Exists", "DoesNotExist"):
            if (key in task.labels) != (operator == "Exists"):
                return False
        elif (task.labels.get(key) in expression["values"]) != (operator == "In"):
            return False
    return True


def clash(one: tuple[str, int, str], other: tuple[str, int, str]) -> bool:
    return one[:2] == other[:2] and (one[2] == other[2] or "" in (one[2], other[2]))
