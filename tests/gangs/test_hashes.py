"""The words for pod templates: what changes them, what does not, and that they are the same in every version."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.gangs.hashes import generation_hash, template_hash
from tests.gangs.builders import a_clique_template, a_pod_spec, a_set, typed


def hash_of(*cliques: dict[str, Any], **more: Any) -> str:
    return generation_hash(typed(a_set("web", *cliques, **more)))


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


def test_an_upgrade_rolls_nobodys_pods() -> None:
    """The very words that the first version wrote."""
    template = a_clique_template("workers", 2, labels={"app": "x"}, annotations={"note": "y"})
    pcs = typed(a_set("web", template, priorityClassName="high"))
    assert generation_hash(pcs) == "b4xpgtcctmkk"
    assert template_hash(pcs.spec.template.cliques[0], "high") == generation_hash(pcs)


BASE = a_clique_template("workers", 2)


@pytest.mark.parametrize(
    ("clique", "more"),
    [
        pytest.param(a_clique_template("workers", 5), {}, id="replicas"),
        pytest.param(a_clique_template("workers", 2, min_available=1), {}, id="minAvailable"),
        pytest.param(a_clique_template("workers", 2, starts_after=["other"]), {}, id="startsAfter"),
        pytest.param(reversed_keys(BASE), {}, id="the order of keys"),
        pytest.param(BASE, {"replicas": 9}, id="the set's replicas"),
        pytest.param(BASE, {"terminationDelay": "1h"}, id="the termination delay"),
        pytest.param(BASE, {"metadata": {"labels": {"a": "b"}}}, id="the set's own labels"),
        pytest.param({**BASE, "spec": {**BASE["spec"], "autoScalingConfig": {"maxReplicas": 7}}}, {}, id="autoscaling"),
        pytest.param({**BASE, "labels": {}}, {}, id="labels of which there are none"),
    ],
)
def test_what_does_not_make_pods_different_does_not_change_the_word(clique: dict[str, Any], more: Any) -> None:
    assert hash_of(clique, **more) == hash_of(BASE)


@pytest.mark.parametrize(
    ("clique", "more"),
    [
        pytest.param(a_clique_template("workers", 2, pod_spec=a_pod_spec(hostNetwork=True)), {}, id="the pod spec"),
        pytest.param(a_clique_template("workers", 2, labels={"a": "b"}), {}, id="labels"),
        pytest.param(a_clique_template("workers", 2, annotations={"a": "b"}), {}, id="annotations"),
        pytest.param(BASE, {"priorityClassName": "high"}, id="the priority"),
        pytest.param(
            a_clique_template("workers", 2, pod_spec=a_pod_spec(priorityClassName="low")),
            {},
            id="a priority of its own",
        ),
    ],
)
def test_what_makes_pods_different_changes_the_word(clique: dict[str, Any], more: Any) -> None:
    assert hash_of(clique, **more) != hash_of(BASE)


def test_a_priority_of_the_set_hides_that_of_a_pod() -> None:
    own = a_clique_template("workers", 2, pod_spec=a_pod_spec(priorityClassName="low"))
    assert hash_of(own, priorityClassName="high") == hash_of(BASE, priorityClassName="high")


def test_the_order_of_cliques_matters_to_the_set_and_not_to_a_clique() -> None:
    one, other = a_clique_template("a"), a_clique_template("b", pod_spec=a_pod_spec(hostNetwork=True))
    assert hash_of(one, other) != hash_of(other, one)
    there, back = typed(a_set("web", one, other)), typed(a_set("web", other, one))
    assert template_hash(there.spec.template.cliques[0], "") == template_hash(back.spec.template.cliques[1], "")


def test_the_word_can_be_the_value_of_a_label() -> None:
    word = hash_of(BASE)
    assert len(word) == 12
    assert set(word) <= set("bcdfghjklmnpqrstvwxz2456789")
