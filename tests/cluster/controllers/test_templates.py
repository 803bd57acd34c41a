from __future__ import annotations

import copy
from typing import Any

from shoal.cluster.controllers.templates import pod_from_template

TEMPLATE: dict[str, Any] = {
    "metadata": {
        "name": "ignored",
        "labels": {"app": "web"},
        "annotations": {"note": "x"},
        "finalizers": ["example.com/wait"],
        "ownerReferences": [{"uid": "ignored"}],
    },
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def test_a_pod_has_what_its_template_gives_and_a_prefix_for_its_name() -> None:
    pod = pod_from_template(TEMPLATE, namespace="a", generate_name="web-")
    assert pod == {
        "metadata": {
            "namespace": "a",
            "generateName": "web-",
            "labels": {"app": "web"},
            "annotations": {"note": "x"},
            "finalizers": ["example.com/wait"],
        },
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def test_a_pod_may_have_a_name_of_its_own() -> None:
    pod = pod_from_template({}, namespace="a", name="web-0")
    assert pod == {"metadata": {"namespace": "a", "name": "web-0"}, "spec": {}}


def test_a_prefix_that_would_be_too_long_loses_its_dash() -> None:
    name = "x" * 253
    assert pod_from_template({}, namespace="a", generate_name=f"{name}-")["metadata"]["generateName"] == name


def test_a_pod_shares_nothing_with_its_template() -> None:
    before = copy.deepcopy(TEMPLATE)
    pod = pod_from_template(TEMPLATE, namespace="a", name="p")
    pod["metadata"]["labels"]["more"] = "x"
    pod["spec"]["containers"].append({})
    assert before == TEMPLATE
