from __future__ import annotations

import copy
from typing import Any

import pytest

from shoal.api.meta.objects import Document
from shoal.api.meta.resource import Resource
from shoal.kube.admission import Webhooks
from shoal.kube.admission.conversion import Conversions, NoConversion, answer
from shoal.kube.admission.wire import ConversionRequest


def version(name: str, kind: str = "Queue") -> Resource[Document]:
    return Resource(type=Document, group="shoal.test", version=name, kind=kind, plural="queues")


V1, V2, V3 = version("v1"), version("v2"), version("v3")


@pytest.fixture
def conversions() -> Conversions:
    webhooks = Webhooks()

    @webhooks.converting(V1, to=V2)
    def rename(queue: dict[str, Any]) -> dict[str, Any]:
        queue["spec"]["priority"] = queue["spec"].pop("prio")
        return queue

    @webhooks.converting(V2, to=V3)
    def wrap(queue: dict[str, Any]) -> dict[str, Any]:
        return queue | {"spec": {"scheduling": queue["spec"]}, "metadata": {"annotations": {"was": "v2"}, "name": "x"}}

    @webhooks.converting(V2, to=V1)
    def unrename(queue: dict[str, Any]) -> dict[str, Any]:
        return queue | {"spec": {"prio": queue["spec"]["priority"]}}

    return webhooks.conversions


def a_v1_queue(name: str = "team-a", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": "1", "labels": {"a": "b"}}
    return {"apiVersion": "shoal.test/v1", "kind": "Queue", "metadata": metadata, "spec": spec or {"prio": 3}}


def no_fault(error: Exception) -> None:
    raise AssertionError("nobody is at fault") from error


def test_an_object_is_converted_and_what_was_given_stays(conversions: Conversions) -> None:
    given = a_v1_queue()
    kept = copy.deepcopy(given)
    converted = conversions.converted(given, "shoal.test/v2")
    assert converted == given | {"apiVersion": "shoal.test/v2", "spec": {"priority": 3}}
    assert given == kept


def test_a_way_is_found_over_other_versions(conversions: Conversions) -> None:
    assert conversions.converted(a_v1_queue(), "shoal.test/v3")["spec"] == {"scheduling": {"priority": 3}}


def test_there_and_back_again(conversions: Conversions) -> None:
    there = conversions.converted(a_v1_queue(), "shoal.test/v2")
    assert conversions.converted(there, "shoal.test/v1") == a_v1_queue()


def test_of_the_metadata_only_labels_and_annotations_change(conversions: Conversions) -> None:
    metadata = conversions.converted(a_v1_queue(), "shoal.test/v3")["metadata"]
    assert metadata == {"name": "team-a", "uid": "1", "annotations": {"was": "v2"}}


def test_an_object_in_the_version_asked_for_is_given_back(conversions: Conversions) -> None:
    assert conversions.converted(a_v1_queue(), "shoal.test/v1") == a_v1_queue()


def test_where_no_way_leads_that_is_said(conversions: Conversions) -> None:
    with pytest.raises(NoConversion, match=r"from Queue shoal\.test/v1 to v9"):
        conversions.converted(a_v1_queue(), "shoal.test/v9")


def test_a_request_is_answered_in_order(conversions: Conversions) -> None:
    request = ConversionRequest(
        uid="7", desired_api_version="shoal.test/v2", objects=[a_v1_queue("a"), a_v1_queue("b", prio=9)]
    )
    response = answer(conversions, request, on_fault=no_fault)
    assert response.uid == "7"
    assert response.result.status == "Success"
    assert [each["metadata"]["name"] for each in response.converted_objects] == ["a", "b"]
    assert [each["spec"] for each in response.converted_objects] == [{"priority": 3}, {"priority": 9}]


def test_one_object_that_cannot_be_converted_fails_the_request_and_is_named(conversions: Conversions) -> None:
    faults: list[Exception] = []
    request = ConversionRequest(
        uid="7", desired_api_version="shoal.test/v2", objects=[a_v1_queue("a"), a_v1_queue("b", wrong=1)]
    )
    response = answer(conversions, request, on_fault=faults.append)
    assert response.converted_objects == []
    assert response.result.status == "Failure"
    assert response.result.message == "Queue b cannot be converted: KeyError: 'prio'"
    assert [type(fault) for fault in faults] == [KeyError]


def test_a_version_that_nobody_knows_is_an_answer_not_a_fault(conversions: Conversions) -> None:
    request = ConversionRequest(uid="7", desired_api_version="shoal.test/v9", objects=[a_v1_queue()])
    response = answer(conversions, request, on_fault=no_fault)
    assert response.result.status == "Failure"


def test_a_conversion_is_given_once_and_within_one_kind(conversions: Conversions) -> None:
    with pytest.raises(ValueError, match="is there already"):
        conversions.add(V1, V2, lambda queue: queue)
    with pytest.raises(ValueError, match="stays within a kind"):
        conversions.add(V1, version("v2", "Shoal"), lambda queue: queue)
