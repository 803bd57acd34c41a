"""Taints and tolerations, as Kubernetes reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal.scheduler.session.taints import Taint, TaintIndex
from tests.scheduler.builders import a_model_node
from tests.scheduler.session.node_builders import nodes_of

TAINT = Taint("team", "a", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param({"key": "team", "value": "a"}, True, id="equal is what is meant by default"),
        pytest.param({"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}, True, id="all said"),
        pytest.param({"key": "team", "operator": "Equal", "value": "b"}, False, id="another value"),
        pytest.param({"key": "team", "operator": "Equal"}, False, id="no value is the empty value"),
        pytest.param({"key": "team", "operator": "Exists"}, True, id="any value"),
        pytest.param({"operator": "Exists"}, True, id="any key"),
        pytest.param({"key": "crew", "operator": "Exists"}, False, id="another key"),
        pytest.param({"operator": "Exists", "effect": "NoExecute"}, False, id="another effect"),
        pytest.param({"operator": "Exists", "effect": ""}, True, id="any effect"),
        pytest.param({"key": "team", "operator": "Like", "value": "a"}, False, id="an unknown operator"),
    ],
)
def test_a_toleration_means_what_kubernetes_says(toleration: dict[str, Any], expected: bool) -> None:
    assert TAINT.is_tolerated_by(toleration) is expected


def test_a_taint_without_value_is_tolerated_by_equal_without_value() -> None:
    assert Taint("dedicated", "", "NoExecute").is_tolerated_by({"key": "dedicated", "operator": "Equal"})


def test_the_first_taint_that_nothing_tolerates_is_named() -> None:
    team = {"key": "team", "value": "a", "effect": "NoSchedule"}
    down = {"key": "down", "effect": "NoExecute"}
    soft = {"key": "slow", "effect": "PreferNoSchedule"}
    nodes = nodes_of(
        a_model_node("a"),
        a_model_node("b", taints=(team, down)),
        a_model_node("c", taints=(down,)),
        a_model_node("d", taints=(soft,)),
    )
    index = TaintIndex(nodes)

    def refused(*tolerations: dict[str, Any]) -> dict[str, list[int]]:
        return {str(t): np.flatnonzero(mask).tolist() for t, mask in index.untolerated(tolerations).items()}

    assert refused() == {"team=a:NoSchedule": [1], "down:NoExecute": [2]}
    assert refused({"key": "team", "operator": "Exists"}) == {"down:NoExecute": [1, 2]}
    assert refused({"operator": "Exists"}) == {}
