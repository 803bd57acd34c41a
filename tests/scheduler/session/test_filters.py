"""Where a task may go by what nodes are: single rules as a table, all of them together against a slow check by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.scheduler.gpu_requests import GpuRequest
from shoal.scheduler.model.nodes import Node, Nodes
from shoal.scheduler.model.tasks import ANYWHERE, Constraints, Request
from shoal.scheduler.session import filters as rules
from shoal.scheduler.session.filters import Filters, FilterSettings
from tests.scheduler.builders import a_model_node
from tests.scheduler.session.node_builders import a_request, names_in, nodes_of

PLAIN = a_request(cpu=100)
WHOLE = a_request(whole=1)
PORTION = a_request(gpu=GpuRequest(portion=0.5, devices=1))
MEMORY = a_request(gpu=GpuRequest(memory=2000, devices=1))
MIG = a_request(gpu=GpuRequest(mig=(("1g.5gb", 1),)))
CLAIM = Request(PLAIN.vector, claimed_gpus=1)

KINDS = nodes_of(
    a_model_node("cpu", gpus=0),
    a_model_node("gpu"),
    a_model_node("known", is_gpu_memory_known=True),
    a_model_node("claimed", has_claimed_gpus=True),
    a_model_node("mig", gpus=0, has_mig=True),
    a_model_node("single", has_mig=True, mig_strategy="single"),
    a_model_node("mixed", has_mig=True, mig_strategy="mixed"),
)
EVERY_KIND = {"cpu", "gpu", "known", "claimed", "mig", "single", "mixed"}


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(PLAIN, EVERY_KIND, id="without GPUs: anywhere"),
        pytest.param(WHOLE, EVERY_KIND - {"mixed"}, id="whole GPUs: not where the MIG strategy is mixed"),
        pytest.param(CLAIM, EVERY_KIND - {"mixed"}, id="claimed GPUs: likewise"),
        pytest.param(PORTION, {"cpu", "gpu", "known"}, id="parts: neither MIG nor claimed devices"),
        pytest.param(MEMORY, {"known"}, id="parts by memory: only where the memory is known"),
        pytest.param(MIG, {"mig", "mixed"}, id="MIG: only MIG nodes, not where the strategy is single"),
    ],
)
def test_gpu_requests_go_to_the_kinds_of_nodes_that_serve_them(request_: Request, expected: set[str]) -> None:
    assert names_in(KINDS, Filters(KINDS, FilterSettings()).static_mask(ANYWHERE, request_)) == expected


@pytest.mark.parametrize(
    ("node", "constraints", "request_", "reason"),
    [
        pytest.param(a_model_node("n"), ANYWHERE, PLAIN, "", id="fit"),
        pytest.param(
            a_model_node("n", is_unschedulable=True), ANYWHERE, PLAIN, rules.UNSCHEDULABLE, id="unschedulable"
        ),
        pytest.param(
            a_model_node("n", is_unschedulable=True),
            Constraints(tolerations=({"operator": "Exists"},)),
            PLAIN,
            rules.UNSCHEDULABLE,
            id="unschedulable whatever is tolerated",
        ),
        pytest.param(a_model_node("n", is_ready=False), ANYWHERE, PLAIN, rules.NOT_READY, id="not ready"),
        pytest.param(
            a_model_node("n"), Constraints(missing="needs a ConfigMap"), PLAIN, "needs a ConfigMap", id="missing"
        ),
        pytest.param(
            a_model_node("n"),
            Constraints(allowed_nodes=frozenset({"m", "gone"})),
            PLAIN,
            rules.OUT_OF_REACH,
            id="volumes",
        ),
        pytest.param(a_model_node("n"), Constraints(allowed_nodes=frozenset({"n"})), PLAIN, "", id="volumes in reach"),
        pytest.param(
            a_model_node("n", taints=({"key": "team", "value": "a", "effect": "NoSchedule"},)),
            ANYWHERE,
            PLAIN,
            "has the taint team=a:NoSchedule, which the pod does not tolerate",
            id="taint",
        ),
        pytest.param(
            a_model_node("n"), Constraints(node_selector={"x": "y"}), PLAIN, rules.NOT_SELECTED, id="selector"
        ),
        pytest.param(
            a_model_node("n"),
            Constraints(has_required_node_terms=True),
            PLAIN,
            rules.NO_AFFINITY,
            id="no terms match nothing",
        ),
        pytest.param(a_model_node("n"), ANYWHERE, MIG, rules.NO_MIG, id="mig"),
        pytest.param(a_model_node("n", has_claimed_gpus=True), ANYWHERE, PORTION, rules.CLAIMED_GPUS, id="claimed"),
        pytest.param(
            a_model_node("n", has_mig=True, mig_strategy="single"), ANYWHERE, PORTION, rules.MIG_SINGLE, id="single"
        ),
        pytest.param(
            a_model_node("n", has_mig=True, mig_strategy="mixed"), ANYWHERE, WHOLE, rules.MIG_MIXED, id="mixed"
        ),
        pytest.param(a_model_node("n", has_mig=True), ANYWHERE, PORTION, rules.MIG_NOT_SHARED, id="mig is not shared"),
        pytest.param(a_model_node("n"), ANYWHERE, MEMORY, rules.UNKNOWN_MEMORY, id="memory"),
    ],
)
def test_a_node_is_refused_for_one_reason(node: Node, constraints: Constraints, request_: Request, reason: str) -> None:
    filters = Filters(nodes_of(node), FilterSettings())
    assert filters.why_not(constraints, request_, 0) == reason
    assert filters.static_mask(constraints, request_).tolist() == [not reason]
    assert filters.reasons(constraints, request_) == ({reason: 1} if reason else {})


def test_every_node_is_counted_under_its_first_reason() -> None:
    nodes = nodes_of(
        a_model_node("a"),
        a_model_node("b", is_ready=False),
        a_model_node("c", is_ready=False, is_unschedulable=True),
        a_model_node("d", labels={"zone": "east"}),
    )
    filters = Filters(nodes, FilterSettings())
    constraints = Constraints(node_selector={"zone": "east"})
    assert filters.reasons(constraints, PLAIN) == {rules.UNSCHEDULABLE: 1, rules.NOT_READY: 1, rules.NOT_SELECTED: 1}
    assert filters.reasons(constraints, PLAIN, np.array([True, False, False, True])) == {rules.NOT_SELECTED: 1}


def test_workers_are_kept_apart_when_the_scheduler_is_told_to() -> None:
    nodes = nodes_of(
        a_model_node("cpu", labels={"role/cpu": ""}),
        a_model_node("gpu", labels={"role/gpu": "true"}),
        a_model_node("both", labels={"role/gpu": "", "role/cpu": ""}),
        a_model_node("none"),
    )
    settings = FilterSettings(restrict_node_scheduling=True, cpu_worker_label="role/cpu", gpu_worker_label="role/gpu")
    filters = Filters(nodes, settings)
    assert names_in(nodes, filters.static_mask(ANYWHERE, PLAIN)) == {"cpu", "both"}
    for request in (WHOLE, PORTION, CLAIM):
        assert names_in(nodes, filters.static_mask(ANYWHERE, request)) == {"gpu", "both"}
    assert filters.why_not(ANYWHERE, WHOLE, nodes.index["none"]) == rules.NO_GPU_WORKER
    assert filters.why_not(ANYWHERE, PLAIN, nodes.index["none"]) == rules.NO_CPU_WORKER


def test_preferred_node_affinity_scores_only_when_asked_to() -> None:
    nodes = nodes_of(a_model_node("a", labels={"disk": "ssd"}), a_model_node("b"))
    terms = (
        {"weight": 30, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}},
        {"weight": 5, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}},
        {"weight": 7, "preference": {}},
    )
    constraints = Constraints(preferred_node_terms=terms)
    assert Filters(nodes, FilterSettings()).preferred_scores(constraints).tolist() == [0, 0]
    asked = Filters(nodes, FilterSettings(scores_preferred_nodes=True))
    assert asked.preferred_scores(constraints).tolist() == [35, 0]


def test_tasks_that_are_alike_share_one_answer_that_nobody_can_spoil() -> None:
    filters = Filters(KINDS, FilterSettings())
    constraints = Constraints(node_selector={"x": "y"})
    mask = filters.static_mask(constraints, WHOLE)
    assert filters.static_mask(constraints, WHOLE) is mask
    with pytest.raises(ValueError, match="read-only"):
        mask[0] = True


KEYS, VALUES = st.sampled_from(["a", "b"]), st.sampled_from(["", "1", "2", "10", "x"])
EFFECTS = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
EXPRESSIONS = st.fixed_dictionaries(
    {
        "key": KEYS,
        "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Odd"]),
        "values": st.lists(VALUES, max_size=2),
    }
)
FIELDS = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["metadata.name", "metadata.uid"]),
        "operator": st.sampled_from(["In", "NotIn", "Exists"]),
        "values": st.lists(st.sampled_from(["n0", "n1", "n9"]), max_size=2),
    }
)
TERMS = st.fixed_dictionaries(
    {}, optional={"matchExpressions": st.lists(EXPRESSIONS, max_size=2), "matchFields": st.lists(FIELDS, max_size=1)}
)
TAINTS = st.fixed_dictionaries({"key": KEYS, "effect": EFFECTS}, optional={"value": VALUES})
TOLERATIONS = st.fixed_dictionaries(
    {},
    optional={
        "key": KEYS,
        "operator": st.sampled_from(["", "Equal", "Exists"]),
        "value": VALUES,
        "effect": st.sampled_from(["", "NoSchedule", "NoExecute"]),
    },
)
NODES = st.fixed_dictionaries(
    {
        "labels": st.dictionaries(KEYS, VALUES),
        "taints": st.lists(TAINTS, max_size=2).map(tuple),
        "is_ready": st.booleans(),
        "is_unschedulable": st.booleans(),
        "has_mig": st.booleans(),
        "mig_strategy": st.sampled_from(["", "single", "mixed"]),
        "has_claimed_gpus": st.booleans(),
        "is_gpu_memory_known": st.booleans(),
    }
)
CONSTRAINTS = st.builds(
    Constraints,
    node_selector=st.dictionaries(KEYS, VALUES, max_size=1),
    required_node_terms=st.lists(TERMS, max_size=2).map(tuple),
    tolerations=st.lists(TOLERATIONS, max_size=2).map(tuple),
    allowed_nodes=st.none() | st.frozensets(st.sampled_from(["n0", "n1", "n2"])),
)


@given(
    st.lists(NODES, max_size=4),
    CONSTRAINTS,
    st.sampled_from([PLAIN, WHOLE, PORTION, MEMORY, MIG, CLAIM]),
    st.booleans(),
)
def test_all_nodes_at_once_get_the_answers_that_each_gets_alone(
    found: list[dict[str, Any]], constraints: Constraints, request: Request, restricts: bool
) -> None:
    nodes = nodes_of(*(a_model_node(f"n{number}", **node) for number, node in enumerate(found)))
    settings = FilterSettings(restrict_node_scheduling=restricts, cpu_worker_label="a", gpu_worker_label="b")
    filters = Filters(nodes, settings)
    expected = [may_go(node, constraints, request, settings) for node in nodes.nodes]
    assert filters.static_mask(constraints, request).tolist() == expected
    assert [not filters.why_not(constraints, request, row) for row in range(len(nodes))] == expected
    assert sum(filters.reasons(constraints, request).values()) == expected.count(False)


def may_go(node: Node, constraints: Constraints, request: Request, settings: FilterSettings) -> bool:
    """The rules, for one node, in the plainest way."""
    worker = settings.gpu_worker_label if request.wants_gpu else settings.cpu_worker_label
    return (
        node.is_ready
        and not node.is_unschedulable
        and (constraints.allowed_nodes is None or node.name in constraints.allowed_nodes)
        and all(node.labels.get(key) == value for key, value in constraints.node_selector.items())
        and (not constraints.required_node_terms or any(matches(node, t) for t in constraints.required_node_terms))
        and all(is_tolerated(taint, constraints) for taint in node.taints)
        and serves(node, request)
        and (not settings.restrict_node_scheduling or worker in node.labels)
    )


def matches(node: Node, term: Mapping[str, Any]) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    return (
        bool(expressions or fields)
        and all(meets(node.labels, expression) for expression in expressions)
        and all(is_called(node, field) for field in fields)
    )


def meets(labels: Mapping[str, str], expression: dict[str, Any]) -> bool:
    key, operator, values = expression["key"], expression["operator"], expression["values"]
    if operator in ("In", "NotIn"):
        return bool(values) and (labels.get(key) in values) == (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return not values and (key in labels) == (operator == "Exists")
    if operator not in ("Gt", "Lt") or len(values) != 1:
        return False
    if not values[0].isdigit() or not labels.get(key, "").isdigit():
        return False
    own, bound = int(labels[key]), int(values[0])
    return own > bound if operator == "Gt" else own < bound


def is_called(node: Node, field: dict[str, Any]) -> bool:
    if field["key"] != "metadata.name" or len(field["values"]) != 1 or field["operator"] == "Exists":
        return False
    return bool((node.name in field["values"]) == (field["operator"] == "In"))


def is_tolerated(taint: Any, constraints: Constraints) -> bool:
    if taint["effect"] == "PreferNoSchedule":
        return True
    for toleration in constraints.tolerations:
        same_effect = toleration.get("effect", "") in ("", taint["effect"])
        same_key = toleration.get("key", "") in ("", taint["key"])
        same_value = toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")
        if same_effect and same_key and same_value:
            return True
    return False


def serves(node: Node, request: Request) -> bool:
    if request in (PORTION, MEMORY):
        if node.has_mig or node.has_claimed_gpus:
            return False
        return request is PORTION or node.is_gpu_memory_known
    if request is MIG:
        return node.has_mig and node.mig_strategy != "single"
    if request in (WHOLE, CLAIM):
        return not (node.has_mig and node.mig_strategy == "mixed")
    return True


def test_no_nodes_are_an_empty_answer() -> None:
    empty = Nodes([], nodes_of().resources)
    assert Filters(empty, FilterSettings()).static_mask(ANYWHERE, WHOLE).tolist() == []
