"""How a suspended Job goes on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.training.jobset.resuming import resumed_spec, union
from tests.training.jobset.builders import a_job, a_pod_template, a_replicated_job, a_typed_set

GPU, TPU = ({"key": key, "operator": "Exists"} for key in ("gpu", "tpu"))


@pytest.mark.parametrize(
    ("of_job", "of_template", "expected"),
    [
        pytest.param({}, {}, {}, id="nothing"),
        pytest.param({}, {"nodeSelector": {"a": "b"}}, {"nodeSelector": {"a": "b"}}, id="a selector"),
        pytest.param({"tolerations": [GPU]}, {"tolerations": [TPU]}, {"tolerations": [GPU, TPU]}, id="one more"),
        pytest.param({"tolerations": [GPU, TPU]}, {"tolerations": [TPU]}, {}, id="one that it has"),
        pytest.param({}, {"schedulingGates": [{"name": "g"}]}, {"schedulingGates": [{"name": "g"}]}, id="a gate"),
        pytest.param({}, {"affinity": {}, "priorityClassName": "high"}, {}, id="nothing else"),
    ],
)
def test_what_was_added_to_the_template_reaches_the_job(
    of_job: dict[str, Any], of_template: dict[str, Any], expected: dict[str, Any]
) -> None:
    job = a_job(a_typed_set(a_replicated_job(pods=a_pod_template(**of_job)), suspend=True))
    found = resumed_spec(job, a_pod_template(**of_template))
    assert found == {"suspend": False, **({"template": {"spec": expected}} if expected else {})}


def test_labels_and_annotations_of_the_template_win() -> None:
    job = a_job(a_typed_set(suspend=True))
    template = {**a_pod_template(), "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "name": "odd"}}
    assert resumed_spec(job, template)["template"] == {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
    }


ITEMS = st.lists(st.integers(0, 5), max_size=5, unique=True)


@given(ITEMS, ITEMS)
def test_a_union_has_all_of_both_once_and_the_first_in_its_order(first: list[int], second: list[int]) -> None:
    found = union(first, second)
    assert found[: len(first)] == first
    assert set(found) == {*first, *second}
    assert len(found) == len(set(found))
    assert union(found, second) == found
