"""The merge of patches, against rules written down and against the API server's own merge."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.kinds.kind import Kind
from shoal.cluster.apiserver.kinds.tables import builtin_kinds
from shoal.cluster.apiserver.patches import strategic_merge as servers_merge
from shoal.cluster.apiserver.schema import Schema
from shoal.training.patches import strategic_merge
from shoal.training.patches.strategic import MERGE_KEYS, SETS
from tests.training.patches.pods import directed, template_patches, templates


def env(**variables: str) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in variables.items()]


ORDERS: dict[str, tuple[str, str, str]] = {
    "one changed, one new": ("AB", "AN", "ANB"),
    "nothing in common": ("AB", "MN", "MNAB"),
    "the last one changed": ("AB", "B", "AB"),
    "a new one before the last": ("AB", "NB", "NAB"),
    "a new one after the last": ("AB", "BN", "ABN"),
    "the other way round": ("ABC", "CA", "BCA"),
    "one in the middle": ("ABC", "B", "ABC"),
    "new ones around the middle": ("ABC", "MBN", "MABNC"),
    "nothing there": ("", "AB", "AB"),
    "all changed": ("AB", "AB", "AB"),
}


@pytest.mark.parametrize(("live", "patch", "expected"), ORDERS.values(), ids=ORDERS.keys())
def test_a_merged_list_has_its_order(live: str, patch: str, expected: str) -> None:
    merged = strategic_merge({"env": env(**dict.fromkeys(live, "1"))}, {"env": env(**dict.fromkeys(patch, "2"))})
    assert [(item["name"], item["value"]) for item in merged["env"]] == [
        (name, "2" if name in patch else "1") for name in expected
    ]


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "maps are merged": ({"labels": {"a": "1", "b": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}),
    "a list of words is replaced": ({"args": ["1", "2"]}, {"args": ["3"]}, {"args": ["3"]}),
    "tolerations are replaced": (
        {"tolerations": [{"key": "a"}, {"key": "b"}]},
        {"tolerations": [{"key": "c"}]},
        {"tolerations": [{"key": "c"}]},
    ),
    "mounts are told apart by their path": (
        {"volumeMounts": [{"name": "v", "mountPath": "/a"}]},
        {"volumeMounts": [{"name": "v", "mountPath": "/b"}, {"name": "w", "mountPath": "/a"}]},
        {"volumeMounts": [{"name": "v", "mountPath": "/b"}, {"name": "w", "mountPath": "/a"}]},
    ),
    "a volume keeps what is not named, and so has two sources": (
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"volumes": [{"name": "v", "configMap": {"name": "c"}}]},
        {"volumes": [{"name": "v", "emptyDir": {}, "configMap": {"name": "c"}}]},
    ),
    "a container keeps its image": (
        {"containers": [{"name": "node", "image": "i", "env": env(A="1")}]},
        {"containers": [{"name": "node", "env": env(B="2")}]},
        {"containers": [{"name": "node", "image": "i", "env": env(B="2", A="1")}]},
    ),
    "finalizers are a set": (
        {"finalizers": ["a", "b"]},
        {"finalizers": ["b", "c"]},
        {"finalizers": ["a", "b", "c"]},
    ),
    "a map is replaced": (
        {"nodeSelector": {"a": "1"}},
        {"nodeSelector": {"b": "2", "$patch": "replace"}},
        {"nodeSelector": {"b": "2"}},
    ),
    "a map is emptied": ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"$patch": "delete"}}, {"nodeSelector": {}}),
}


@pytest.mark.parametrize(("original", "patch", "expected"), CASES.values(), ids=CASES.keys())
def test_a_patch_is_merged_by_kubernetes_rules(
    original: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert strategic_merge(original, patch) == expected


@pytest.fixture(scope="module")
def pod_template() -> Schema:
    [kind] = [kind for kind in _kinds() if kind.resource == "podtemplates"]
    return kind.schema.properties["template"]


def _kinds() -> list[Kind]:
    return list(builtin_kinds({}))


@given(original=templates, patch=template_patches, directive=st.sampled_from(["", "replace", "delete"]))
def test_pods_are_merged_as_the_api_server_merges_them(
    pod_template: Schema, original: dict[str, Any], patch: dict[str, Any], directive: str
) -> None:
    change = directed(patch, directive) if directive else patch
    assert strategic_merge(original, change) == servers_merge(original, change, pod_template)


@given(original=templates, patch=template_patches)
def test_a_merge_done_twice_is_done_once_and_changes_neither_side(
    original: dict[str, Any], patch: dict[str, Any]
) -> None:
    before = copy.deepcopy((original, patch))
    once = strategic_merge(original, patch)
    assert strategic_merge(once, patch) == once
    assert (original, patch) == before


def test_the_keys_are_those_of_the_api_servers_own_types(pod_template: Schema) -> None:
    """A Job's template stands for a JobSet's replicated jobs, whose own two lists no built-in kind has."""
    [jobs] = [kind for kind in _kinds() if kind.resource == "cronjobs"]
    found: dict[str, str] = {}
    for schema in (jobs.schema.properties["spec"].properties["jobTemplate"], pod_template):
        _gather(schema, found, depth=0)
    ours = {field: key for field, key in MERGE_KEYS.items() if field not in ("replicatedJobs", "dependsOn")}
    assert {field: key for field, key in found.items() if key} == {**ours, "ownerReferences": "uid"}
    assert {field for field, key in found.items() if not key} == SETS


def _gather(schema: Schema, found: dict[str, str], *, depth: int) -> None:
    """The lists that are merged, anywhere in a template, and by what."""
    for field, place in schema.properties.items():
        if "merge" in place.merge_strategies and place.items is not None:
            assert found.setdefault(field, place.merge_key) == place.merge_key, f"{field} has two meanings"
        for inner in (place, place.items):
            if inner is not None and depth < 12:
                _gather(inner, found, depth=depth + 1)
