"""Our rules against a real API server: new objects, changes of objects, and what each kind is like."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from shoal.cluster.kubernetes import RealKubernetes
from tests.cluster.apiserver.builtin import cases_core, cases_others
from tests.cluster.apiserver.builtin.answers import (
    NAMESPACE,
    Answer,
    all_cases,
    at,
    in_namespace,
    kinds,
    kubernetes_answer,
    ours,
    ours_update,
    told,
)
from tests.cluster.apiserver.builtin.asking import Asking
from tests.cluster.apiserver.builtin.cases_updates import UPDATES, Updates
from tests.cluster.apiserver.builtin.kind_cases import KindCases, changed

pytestmark = pytest.mark.slow

# Made for good, these would change which addresses the whole cluster gives out.
CLUSTER_WIDE = ("ServiceCIDR", "IPAddress")
# Shown in the inner shape of Kubernetes, which our messages do not follow this deep.
INNER_VALUE = ("ResourceClaim", "ResourceClaimTemplate")


@pytest.fixture(scope="module")
def asking(kube: RealKubernetes) -> Iterator[Asking]:
    client = Asking(kube.kubeconfig)
    client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    yield client
    client.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    client.close()


def test_new_objects_are_answered_alike(asking: Asking) -> None:
    differing = {}
    for case in all_cases():
        theirs, mine = kubernetes_answer(asking, case), ours(case)
        if mine != theirs:
            differing[case.id] = {"ours": mine, "theirs": theirs}
    assert not differing, json.dumps(differing, indent=1)


@pytest.mark.parametrize(
    ("number", "updates"),
    [
        pytest.param(number, each, id=f"{each.kind.object['kind']}-{each.subresource or 'object'}-{number}")
        for number, each in enumerate(UPDATES)
    ],
)
def test_changes_are_answered_alike(asking: Asking, number: int, updates: Updates) -> None:
    body = in_namespace(updates.object)
    body["metadata"]["name"] = f"update-{number}"
    path = at(updates.kind.path)
    code, answer, _ = asking.ask("POST", path, body)
    assert code == 201, answer
    differing = []
    for change in updates.changes:
        pairs: Any = change if isinstance(change[0], tuple) else (change,)
        mine, theirs = _both(asking, f"{path}/update-{number}", updates.subresource, pairs)
        if mine != theirs:
            differing.append({"change": repr(pairs), "ours": mine, "theirs": theirs})
    asking.ask("DELETE", f"{path}/update-{number}")
    assert not differing, json.dumps(differing, indent=1)


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(each, id=f"{each.object['kind']}-{each.object['apiVersion']}")
        for each in (*cases_core.KINDS, *cases_others.KINDS)
        if each.object["kind"] not in (*CLUSTER_WIDE, "CertificateSigningRequest")
    ],
)
def test_a_kind_is_like_the_real_one(asking: Asking, group: KindCases) -> None:
    body = in_namespace(group.object)
    body["metadata"]["name"] = "facts"
    kind, path = kinds()[body["apiVersion"], body["kind"]], at(group.path)
    created_by_put = asking.ask("PUT", f"{path}/facts?dryRun=All", body)[0] in (200, 201)
    code, answer, _ = asking.ask("POST", path, body)
    assert code == 201, answer
    put = asking.ask("PUT", f"{path}/facts?dryRun=All", body)[0]
    selected = {field: asking.ask("GET", f"{path}?fieldSelector={field}=x")[0] for field in kind.rules.fields}
    asking.ask("DELETE", f"{path}/facts")
    rules = kind.rules
    assert created_by_put == rules.create_on_update
    assert (put == 200) == rules.unconditional_update
    assert set(selected.values()) <= {200}
    # A PriorityClass is born with a generation that never rises.
    assert ("generation" in answer["metadata"]) == (rules.has_generation or body["kind"] == "PriorityClass")


def _both(asking: Asking, path: str, subresource: str, pairs: Any) -> tuple[Answer, Answer]:
    """Our answer to a change and Kubernetes'; tried again where a controller writes in between."""
    place = f"{path}/{subresource}" if subresource else path
    while True:
        live = asking.ask("GET", path)[1]
        new = changed(live, *pairs)
        code, answer, warnings = asking.ask("PUT", f"{place}?dryRun=All", new)
        if code != 409:
            break
    mine, theirs = ours_update(new, live, subresource), told(code, answer, warnings)
    if new["kind"] in INNER_VALUE:
        for each in (mine, theirs):
            for cause in each.get("causes", ()):
                cause[2] = cause[2].partition("{")[0]
    return mine, theirs
