"""Bodies at the edge of what an object is, and what a write makes of them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from shoal.cluster.apiserver.calls import Answer, Call
from shoal.cluster.apiserver.core import Core
from tests.cluster.apiserver.conftest import Ask
from tests.cluster.apiserver.upkeep.test_definitions import BOAT, BOATS, CRDS, until

MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
APPLY = "application/apply-patch+yaml"
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a", "image": "x"}]}}


def config_map(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}


def lease(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a", **metadata}}


def job(**metadata: Any) -> dict[str, Any]:
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def budget(least: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "a"},
        "spec": {"minAvailable": least},
    }


async def test_an_apply_needs_no_name_where_the_object_has_it(ask: Ask) -> None:
    await ask("POST", MAPS, config_map(name="a"))
    status, applied = await ask("PATCH", f"{MAPS}/a?fieldManager=ann", config_map(labels={"l": "x"}), kind=APPLY)
    assert (status, applied["metadata"]["name"], applied["metadata"]["labels"]) == (200, "a", {"l": "x"})


async def test_an_apply_that_creates_needs_a_name(ask: Ask) -> None:
    status, refused = await ask("PATCH", f"{MAPS}/a?fieldManager=ann", config_map(), kind=APPLY)
    assert status == 400
    assert refused["message"] == "the name of the object (a based on URL) was undeterminable: name must be provided"


async def test_what_is_odd_about_a_body_is_told_with_its_refusal(core: Core) -> None:
    body = {**config_map(name="No_Name"), "bogus": 1}
    call = Call(
        method="POST",
        path=MAPS,
        query={"fieldValidation": ["Warn"]},
        headers={"content-type": "application/json"},
        body=msgspec.json.encode(body),
        is_trusted=True,
    )
    answer = await core.service.answer(call)
    assert isinstance(answer, Answer)
    assert (answer.status, answer.warnings) == (422, ['299 - "unknown field \\"bogus\\""'])


async def test_an_update_that_creates_has_no_use_for_a_version(ask: Ask) -> None:
    status, made = await ask("PUT", f"{LEASES}/a", lease(resourceVersion="1"))
    assert status == 201
    assert made["metadata"]["resourceVersion"] != "1"


async def test_an_update_of_an_object_that_is_gone_makes_no_other_of_its_identity(ask: Ask) -> None:
    status, refused = await ask("PUT", f"{LEASES}/a", lease(uid="u-1"))
    assert status == 409
    assert refused["message"].endswith("Precondition failed: UID in precondition: u-1, UID in object meta: ")


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ("apiVersion", "the API version in the data () does not match the expected API version (sea.example/v1)"),
        ("kind", "Object 'Kind' is missing in"),
    ],
    ids=["no version", "no kind"],
)
async def test_a_custom_body_says_what_it_is(ask: Ask, left_out: str, message: str) -> None:
    await ask("POST", CRDS, BOAT)
    await until(ask, BOATS, 200)
    body = {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"name": "a"}}
    del body[left_out]
    status, refused = await ask("POST", BOATS, body)
    assert status == 400
    assert message in refused["message"]


async def test_null_bytes_in_a_map_are_none_and_stay(ask: Ask) -> None:
    status, made = await ask("POST", SECRETS, {"metadata": {"name": "a"}, "data": {"k": None}})
    assert (status, made["data"]) == (201, {"k": ""})


@pytest.mark.parametrize(
    ("metadata", "is_in_both"),
    [({"name": "a"}, True), ({"generateName": "a-"}, False)],
    ids=["named", "to be named"],
)
async def test_a_job_gets_the_labels_of_its_pods_before_they_are_completed_only_if_its_name_is_made(
    ask: Ask, metadata: dict[str, Any], is_in_both: bool
) -> None:
    status, made = await ask("POST", JOBS, job(**metadata))
    inner = made["spec"]["template"]["metadata"]["labels"]
    assert (status, inner["job-name"]) == (201, made["metadata"]["name"])
    assert made["metadata"]["labels"] == (inner if is_in_both else {"app": "x"})


async def test_true_applied_where_1_was_is_a_change_and_no_number(ask: Ask) -> None:
    status, _ = await ask("POST", f"{BUDGETS}?fieldManager=ann", budget(1))
    assert status == 201
    status, refused = await ask("PATCH", f"{BUDGETS}/a?fieldManager=ben", budget(True), kind=APPLY)
    assert (status, refused["reason"]) == (409, "Conflict")
    status, refused = await ask("PATCH", f"{BUDGETS}/a?fieldManager=ben&force=true", budget(True), kind=APPLY)
    assert (status, "failed to convert new object" in refused["message"]) == (500, True)


async def test_an_update_that_must_name_a_version_is_refused_in_the_name_of_the_resource(ask: Ask) -> None:
    await ask("POST", BUDGETS, budget(1))
    status, refused = await ask("PUT", f"{BUDGETS}/a", budget(1))
    assert (status, refused["details"]["kind"]) == (422, "poddisruptionbudgets")


@pytest.mark.parametrize(
    ("method", "kind", "when"),
    [
        ("PUT", "application/json", ""),
        ("PATCH", "application/merge-patch+json", " after mutating admission happens"),
    ],
    ids=["update", "patch"],
)
async def test_an_owner_that_is_named_twice_is_told_of_once(
    core: Core, ask: Ask, method: str, kind: str, when: str
) -> None:
    await ask("POST", MAPS, config_map(name="a"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "u-1"}
    call = Call(
        method=method,
        path=f"{MAPS}/a",
        headers={"content-type": kind},
        body=msgspec.json.encode(config_map(name="a", ownerReferences=[owner, owner])),
        is_trusted=True,
    )
    answer = await core.service.answer(call)
    assert isinstance(answer, Answer)
    (warning,) = answer.warnings
    assert f"contains duplicate entries{when}; " in warning
    _, made = await ask("GET", f"{MAPS}/a")
    assert made["metadata"]["ownerReferences"] == [owner]


async def test_who_is_told_that_a_name_is_taken_finds_the_object(ask: Ask) -> None:
    answers = await asyncio.gather(*[_created_and_read(ask) for _ in range(4)])
    assert sorted(answers) == [(201, 200), (409, 200), (409, 200), (409, 200)]


async def _created_and_read(ask: Ask) -> tuple[int, int]:
    created, _ = await ask("POST", MAPS, config_map(name="a"))
    read, _ = await ask("GET", f"{MAPS}/a")
    return created, read


async def test_a_precondition_is_refused_in_the_name_of_the_kind_that_is_stored(ask: Ask) -> None:
    event = {"metadata": {"name": "a"}, "involvedObject": {"namespace": "default"}}
    status, _ = await ask("POST", "/api/v1/namespaces/default/events", event)
    assert status == 201
    wrong = {"preconditions": {"uid": "u-1"}}
    status, refused = await ask("DELETE", "/apis/events.k8s.io/v1/namespaces/default/events/a", wrong)
    assert (status, refused["details"]) == (409, {"name": "a", "kind": "Event"})
