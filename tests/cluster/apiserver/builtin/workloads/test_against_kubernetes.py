"""The same objects to a real API server and to our rules: both take them or both refuse them, for the same reasons."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.cluster.kubernetes import RealKubernetes
from tests.cluster.apiserver.builtin.workloads.cases import CASES
from tests.cluster.apiserver.builtin.workloads.objects import Kind, changed, with_changes
from tests.cluster.apiserver.builtin.workloads.server import (
    KINDS,
    Server,
    causes_of,
    created,
    differences,
    settled,
    told_causes,
    updated,
)
from tests.cluster.apiserver.builtin.workloads.update_cases import UPDATES

pytestmark = pytest.mark.slow

_NOT_OURS = frozenset({400, 403})
"""Answers that come before or after the rules: bodies that cannot be read, and admission."""


@pytest.fixture(scope="module")
def server(kube: RealKubernetes) -> Iterator[Server]:
    name = f"workloads-{secrets.token_hex(4)}"
    kube.admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    account = {"metadata": {"name": "default"}}
    if not kube.admin.exists(f"/api/v1/namespaces/{name}/serviceaccounts/default"):
        server = Server(kube.kubeconfig, name)
        server.ask("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
        server.close()
    server = Server(kube.kubeconfig, name)
    yield server
    server.close()
    kube.admin.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.mark.parametrize("kind", sorted(KINDS), ids=lambda kind: kind[1])
def test_a_new_object_gets_the_same_answer(server: Server, kind: Kind) -> None:
    found = [
        f"{name}: {each}"
        for name, of, changes in CASES
        if of == kind
        for each in create_differences(server, kind, changed(kind, changes))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", sorted({case[1] for case in UPDATES}), ids=lambda kind: kind[1])
def test_a_change_gets_the_same_answer(server: Server, kind: Kind) -> None:
    found = [
        f"{name}: {each}"
        for name, of, made, part, changes in UPDATES
        if of == kind
        for each in update_differences(server, kind, made, part, changes)
    ]
    assert not found, "\n".join(found)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(picked=st.lists(st.sampled_from([case for case in CASES if case[1] == ("", "Pod")]), min_size=2, max_size=4))
def test_a_pod_with_several_faults_gets_the_same_answer(server: Server, picked: list[Any]) -> None:
    together: dict[str, Any] = {}
    for _, _, changes in picked:
        together |= changes
    try:
        body = changed(("", "Pod"), together)
    except (KeyError, IndexError, TypeError, AttributeError):
        return  # changes that cannot be made together
    assert not list(create_differences(server, ("", "Pod"), body))


def create_differences(server: Server, key: Kind, body: dict[str, Any]) -> Iterator[str]:
    kind = KINDS[key]
    status, answer, warnings = server.ask("POST", f"{server.path(kind)}?dryRun=All", body)
    if status in _NOT_OURS:
        return
    made, problems, ours = created(kind, body, server.namespace)
    yield from _answer_differences(kind, status, answer, made, problems)
    if status == 201 and sorted(ours) != sorted(warnings):
        yield f"Kubernetes warns {warnings}, we warn {ours}"


def update_differences(
    server: Server, key: Kind, made: dict[str, Any], part: str, changes: dict[str, Any]
) -> Iterator[str]:
    kind = KINDS[key]
    body = changed(key, made)
    body["metadata"] = {"generateName": "it-"}
    status, old, _ = server.ask("POST", server.path(kind), body)
    assert status == 201, old
    new = with_changes(copy.deepcopy(old), changes)
    del new["metadata"]["resourceVersion"]
    path = server.path(kind, old["metadata"]["name"])
    status, answer, _ = server.ask("PUT", f"{path}{'/' + part if part else ''}?dryRun=All", new)
    ours, problems = updated(kind, new, old, part)
    server.ask("DELETE", f"{path}?propagationPolicy=Background&gracePeriodSeconds=0")
    if status in _NOT_OURS:
        return
    # Controllers write the status meanwhile.
    held = "status" if not part else ""
    yield from _answer_differences(kind, status, answer, ours, problems, without=held)


def _answer_differences(
    kind: Any, status: int, answer: Any, made: dict[str, Any], problems: Any, without: str = ""
) -> Iterator[str]:
    if status in (200, 201):
        if problems:
            yield f"Kubernetes takes it, we say {[str(each) for each in problems]}"
            return
        theirs, ours = settled(answer), settled(made)
        for each in (theirs, ours):
            each.pop(without, None)
            each["metadata"].pop("generation", None)
        yield from differences(theirs, ours)
        return
    if status != 422:
        yield f"Kubernetes answers {status} {answer.get('message')}"
        return
    theirs_causes, our_causes = told_causes(answer), causes_of(kind, "it", problems)
    yield from (f"Kubernetes alone says {each}" for each in sorted(theirs_causes - our_causes))
    yield from (f"we alone say {each}" for each in sorted(our_causes - theirs_causes))
