"""Which nodes pods may be on: taints and tolerations, node selectors and affinity."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.core import Taint, Toleration
from shoal.cluster.placement import (
    NO_EXECUTE,
    NodeRequirements,
    matches_node_selector,
    tolerates,
    untolerated,
)
from tests.support.builders.nodes import a_node


def is_in(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


GPU = Taint(key="gpu", value="h100", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration(key="gpu", value="h100"), True, id="equal is what no operator means"),
        pytest.param(Toleration(key="gpu", operator="Equal", value="h100", effect="NoSchedule"), True, id="equal"),
        pytest.param(Toleration(key="gpu", operator="Equal", value="a100"), False, id="another value"),
        pytest.param(Toleration(key="gpu", operator="Exists"), True, id="exists takes any value"),
        pytest.param(Toleration(key="gpu", operator="Exists", effect="NoExecute"), False, id="another effect"),
        pytest.param(Toleration(operator="Exists"), True, id="no key takes every taint"),
        pytest.param(Toleration(key="cpu", operator="Exists"), False, id="another key"),
        pytest.param(Toleration(key="gpu", operator="Gt", value="1"), False, id="comparing is off"),
        pytest.param(Toleration(key="gpu", operator="Like", value="h100"), False, id="unknown operator"),
    ],
)
def test_a_toleration_is_for_a_taint(toleration: Toleration, expected: bool) -> None:
    assert tolerates([toleration], GPU) is expected


def test_taints_that_only_discourage_do_not_count() -> None:
    soft = Taint(key="old", effect="PreferNoSchedule")
    hard = Taint(key="broken", effect="NoExecute")
    assert untolerated([GPU, soft, hard], [Toleration(key="gpu", operator="Exists")]) == [hard]
    assert untolerated([GPU, soft], [], effects=[NO_EXECUTE]) == []


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([], False, id="no term selects nothing"),
        pytest.param([{}], False, id="an empty term selects nothing"),
        pytest.param([{"matchExpressions": [is_in("zone", "a", "b")]}], True, id="in"),
        pytest.param([{"matchExpressions": [is_in("zone", "b")]}], False, id="not in"),
        pytest.param([{"matchExpressions": [is_in("zone", "b", operator="NotIn")]}], True, id="NotIn"),
        pytest.param([{"matchExpressions": [is_in("rack", "b", operator="NotIn")]}], True, id="NotIn without label"),
        pytest.param([{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}], True, id="Exists"),
        pytest.param([{"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}], False, id="DoesNotExist"),
        pytest.param([{"matchExpressions": [is_in("cores", "15", operator="Gt")]}], True, id="Gt"),
        pytest.param([{"matchExpressions": [is_in("cores", "16", operator="Gt")]}], False, id="Gt is strict"),
        pytest.param([{"matchExpressions": [is_in("cores", "17", operator="Lt")]}], True, id="Lt"),
        pytest.param([{"matchExpressions": [is_in("zone", "1", operator="Gt")]}], False, id="Gt of no number"),
        pytest.param([{"matchExpressions": [is_in("cores", "x", operator="Gt")]}], False, id="Gt with no number"),
        pytest.param([{"matchExpressions": [is_in("zone", "a", operator="Near")]}], False, id="unknown operator"),
        pytest.param([{"matchExpressions": [is_in("bad key", "a", operator="NotIn")]}], False, id="bad key"),
        pytest.param([{"matchFields": [is_in("metadata.name", "host-1")]}], True, id="the node's name"),
        pytest.param([{"matchFields": [is_in("metadata.name", "host-2")]}], False, id="another name"),
        pytest.param([{"matchFields": [is_in("metadata.name", "host-2", operator="NotIn")]}], True, id="not that name"),
        pytest.param([{"matchFields": [is_in("metadata.name", "host-1", "host-2")]}], False, id="two names are wrong"),
        pytest.param(
            [{"matchExpressions": [is_in("zone", "b")], "matchFields": [is_in("metadata.name", "host-1")]}],
            False,
            id="both of a term must hold",
        ),
        pytest.param(
            [{"matchExpressions": [is_in("zone", "b")]}, {"matchFields": [is_in("metadata.name", "host-1")]}],
            True,
            id="one of the terms must hold",
        ),
        pytest.param(
            [{"matchFields": [is_in("metadata.name", "a", "b")]}, {"matchExpressions": [is_in("zone", "a")]}],
            True,
            id="a wrong term does not spoil a right one",
        ),
    ],
)
def test_a_node_selector_selects(terms: list[dict[str, Any]], expected: bool) -> None:
    node = a_node("host-1", labels={"zone": "a", "cores": "16"})
    selector = {"nodeSelectorTerms": terms}
    assert matches_node_selector(selector, node) is expected
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    assert NodeRequirements.of({}, affinity).matches(node) is expected


def test_what_is_only_preferred_excludes_no_node() -> None:
    preferred = [{"weight": 1, "preference": {"matchExpressions": [is_in("zone", "b")]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    assert NodeRequirements.of({}, affinity).matches(a_node("host-1", labels={"zone": "a"}))
    assert NodeRequirements.of({}, None).matches(a_node())
    assert NodeRequirements.of({}, affinity).is_everything


def test_a_node_selector_of_labels_must_hold_beside_the_affinity() -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [is_in("zone", "a")]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    both = NodeRequirements.of({"gpu": "yes"}, affinity)
    assert both.matches(a_node("host-1", labels={"zone": "a", "gpu": "yes"}))
    assert not both.matches(a_node("host-1", labels={"zone": "a"}))
    assert not both.matches(a_node("host-1", labels={"gpu": "yes"}))
