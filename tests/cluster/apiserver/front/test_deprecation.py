from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.apiserver.builtin import RULES
from shoal.cluster.apiserver.custom import kinds_of
from shoal.cluster.apiserver.front.deprecation import deprecation
from shoal.cluster.apiserver.kinds.tables import builtin_kinds


def warnings(*versions: dict[str, Any]) -> dict[str, str]:
    """What clients of each version of a definition are told."""
    complete = [
        {"served": True, "storage": number == 0, "schema": {"openAPIV3Schema": {"type": "object"}}, **version}
        for number, version in enumerate(versions)
    ]
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": complete}
    definition = {"metadata": {"name": "things.example.com"}, "spec": spec, "status": {"acceptedNames": names}}
    return {kind.version: deprecation(kind) for kind in kinds_of(definition)}


def test_endpoints_are_deprecated_and_pods_are_not() -> None:
    told = {kind.resource: deprecation(kind) for kind in builtin_kinds(RULES)}
    assert told["endpoints"] == "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    assert told["pods"] == ""


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (
            [{"name": "v1"}, {"name": "v1beta1"}, {"name": "v1alpha1", "deprecated": True}],
            "example.com/v1alpha1 Thing is deprecated; use example.com/v1 Thing",
        ),
        ([{"name": "v1alpha1", "deprecated": True}], "example.com/v1alpha1 Thing is deprecated"),
        (
            [{"name": "v1", "served": False}, {"name": "v1alpha1", "deprecated": True}],
            "example.com/v1alpha1 Thing is deprecated",
        ),
        ([{"name": "v1alpha1", "deprecated": True, "deprecationWarning": "go away"}], "go away"),
        ([{"name": "v1alpha1"}], ""),
    ],
    ids=["a better one", "none other", "none other is served", "in its own words", "not deprecated"],
)
def test_a_deprecated_version_says_what_to_use(versions: list[dict[str, Any]], expected: str) -> None:
    assert warnings(*versions)["v1alpha1"] == expected
