"""Which objects a selecting informer is told of: sure of it, or not waited for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.core import CONFIG_MAPS, PODS
from shoal.api.meta import PartialObject, Resource
from shoal.api.meta.objects import Wire
from shoal.kube.selection import Answered, Selection

PARTIAL = CONFIG_MAPS.view(PartialObject)


class Identity(Wire, frozen=True, kw_only=True):
    """The least that a view names of an object's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Nameplate(Wire, frozen=True, kw_only=True):
    metadata: Identity = Identity()


def answered(resource: Resource[Any] = PARTIAL, *, labels: dict[str, str] | None = None, **fields: Any) -> Answered:
    metadata = {"name": "one", "namespace": "team"} | ({"labels": labels} if labels is not None else {})
    body = msgspec.json.encode({"apiVersion": "v1", "kind": resource.kind, "metadata": metadata, **fields})
    return Answered(resource.decode(body).metadata, body)


@pytest.mark.parametrize(
    ("selector", "labels", "shown"),
    [
        pytest.param("", {}, True, id="everything"),
        pytest.param("app", {"app": "web"}, True, id="has the label"),
        pytest.param("app", {"tier": "web"}, False, id="has another label"),
        pytest.param("app", None, False, id="has no labels"),
        pytest.param("!app", None, True, id="has no labels, as it should be"),
        pytest.param("app=web", {"app": "web"}, True, id="the right value"),
        pytest.param("app=web", {"app": "db"}, False, id="another value"),
        pytest.param("app notin (db)", {}, True, id="not one of"),
        pytest.param("app in (web,db),tier!=test", {"app": "db", "tier": "prod"}, True, id="both hold"),
        pytest.param("app in (web,db),tier!=test", {"app": "db", "tier": "test"}, False, id="one of both holds"),
        pytest.param("app in (", {"app": "web"}, False, id="a selector that nobody can read"),
    ],
)
@pytest.mark.parametrize("view", [PartialObject, Nameplate])
def test_labels_decide(selector: str, labels: dict[str, str] | None, shown: bool, view: type[Any]) -> None:
    assert Selection.of(selector, "").shows(answered(CONFIG_MAPS.view(view), labels=labels)) is shown


@pytest.mark.parametrize(
    ("selector", "fields", "shown"),
    [
        pytest.param("metadata.name=one", {}, True, id="its name"),
        pytest.param("metadata.name==other", {}, False, id="another name"),
        pytest.param("metadata.namespace!=other,metadata.name=one", {}, True, id="name and namespace"),
        pytest.param("metadata.namespace!=team,metadata.name=one", {}, False, id="a namespace that is left out"),
        pytest.param("type=Opaque", {"type": "Opaque"}, True, id="a field of the top"),
        pytest.param("spec.nodeName=a", {"spec": {"nodeName": "a"}}, True, id="a nested field"),
        pytest.param("spec.nodeName=a", {"spec": {"nodeName": "b"}}, False, id="another value"),
        pytest.param("spec.nodeName=a", {"spec": {}}, False, id="a value where there is none"),
        pytest.param("spec.nodeName=", {"spec": {}}, True, id="no value where there is none"),
        pytest.param("spec.nodeName!=", {"spec": {"nodeName": "a"}}, True, id="any value"),
        pytest.param("spec.nodeName!=", {}, False, id="any value where there is none"),
        pytest.param("spec.nodeName!=a", {}, True, id="not a value that is not there"),
        pytest.param("spec.unschedulable=true", {"spec": {"unschedulable": True}}, True, id="yes"),
        pytest.param("spec.unschedulable=false", {"spec": {"unschedulable": False}}, True, id="no"),
        pytest.param("spec.unschedulable=false", {}, False, id="an absent field may mean no: not sure"),
        pytest.param("spec.unschedulable!=false", {}, False, id="an absent field may not mean no: not sure"),
        pytest.param("status.replicas=3", {"status": {"replicas": 3}}, True, id="a number"),
        pytest.param("source=kubelet", {"source": {"component": "kubelet"}}, False, id="no plain value: not sure"),
        pytest.param("source!=kubelet", {"source": {"component": "other"}}, False, id="nor that it is not"),
        pytest.param("spec.host.name=a", {"spec": {"host": "a"}}, False, id="a field of a plain value"),
        pytest.param(r"type=a\,b\=c\\d", {"type": r"a,b=c\d"}, True, id="escaped"),
        pytest.param("type", {"type": "type"}, False, id="no comparison"),
        pytest.param("type=a=b", {"type": "a"}, False, id="two comparisons in one"),
    ],
)
def test_fields_decide(selector: str, fields: dict[str, Any], shown: bool) -> None:
    assert Selection.of("", selector).shows(answered(PODS.view(PartialObject), **fields)) is shown


@pytest.mark.parametrize(
    ("labels", "phase", "shown"),
    [({"app": "web"}, "Running", True), ({}, "Running", False), ({"app": "web"}, "Failed", False)],
)
def test_labels_and_fields_must_both_hold(labels: dict[str, str], phase: str, shown: bool) -> None:
    pod = answered(PODS.view(PartialObject), labels=labels, status={"phase": phase})
    assert Selection.of("app=web", "status.phase=Running").shows(pod) is shown


def test_an_answer_that_cannot_be_read_is_not_waited_for() -> None:
    metadata = answered().metadata
    for body in (b"no JSON", b'{"spec":' + b"[" * 100_000):
        assert not Selection.of("", "spec.nodeName=").shows(Answered(metadata, body))
