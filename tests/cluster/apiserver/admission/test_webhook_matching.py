"""Which webhooks are asked about a request: rules, selectors, conditions, versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from shoal.cluster.apiserver.admission import Chain
from shoal.cluster.apiserver.kinds.kind import Object, Subresource
from shoal.cluster.apiserver.schema import Schema
from shoal.kube.admission import (
    AdmissionRequest,
    Allowed,
    Denied,
    Patched,
    Verdict,
    Webhooks,
)
from tests.cluster.apiserver.admission.memory import (
    NODE,
    a_kind,
    deleting,
    refusal_of,
    updating,
)
from tests.cluster.apiserver.admission.webhook_serving import (
    QUEUE,
    Serving,
    a_rule,
)
from tests.support.builders.reviews import a_reviewed_queue

SCALE = Subresource(group="autoscaling", version="v1", kind="Scale", verbs=(), schema=Schema())
SCALED = a_kind("Queue", "queues", "shoal.test", "v2", subresources={"scale": SCALE})


@pytest.mark.parametrize(
    ("change", "is_asked"),
    [
        pytest.param({}, True, id="this resource"),
        pytest.param(
            {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}, True, id="all"
        ),
        pytest.param({"apiGroups": ["other"]}, False, id="another group"),
        pytest.param({"apiVersions": ["v9"]}, False, id="another version"),
        pytest.param({"resources": ["pods"]}, False, id="another resource"),
        pytest.param({"resources": ["queues/status"]}, False, id="a subresource"),
        pytest.param({"resources": ["*/*"]}, True, id="everything with its subresources"),
        pytest.param({"resources": ["queues/*"]}, True, id="it with its subresources"),
        pytest.param({"operations": ["UPDATE", "DELETE"]}, False, id="another operation"),
        pytest.param({"scope": "Cluster"}, False, id="another scope"),
        pytest.param({"scope": "Namespaced"}, True, id="its scope"),
    ],
)
async def test_a_webhook_is_asked_what_its_rules_say(
    webhooks: Webhooks, serving: Serving, change: Any, is_asked: bool
) -> None:
    seen = a_rule(webhooks, "validating", lambda _: Allowed())
    rule = {"apiGroups": ["shoal.test"], "apiVersions": ["v2"], "resources": ["queues"], "operations": ["CREATE"]}
    await serving.configure(rules=[rule | change])
    await serving.admit(a_reviewed_queue())
    assert bool(seen) is is_asked


async def test_a_subresource_is_asked_about_as_its_own_kind(webhooks: Webhooks, serving: Serving) -> None:
    seen = a_rule(webhooks, "validating", lambda _: Allowed())
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["queues/scale"], "operations": ["*"]}
    await serving.configure(rules=[rule])
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "team-a", "namespace": "team"}}
    await serving.admit(scale, SCALED, subresource="scale")
    await serving.admit(a_reviewed_queue(), SCALED)
    (review,) = seen
    assert (review.kind.group, review.kind.kind, review.resource.resource) == ("autoscaling", "Scale", "queues")
    assert (review.sub_resource, review.request_sub_resource) == ("scale", "scale")


@pytest.mark.parametrize(
    ("selectors", "value", "is_asked"),
    [
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"env": "test"}}}, {"namespace": "team"}, True, id="namespace"
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"env": "test"}}}, {"namespace": "default"}, False, id="other"
        ),
        pytest.param({"objectSelector": {"matchLabels": {"a": "b"}}}, {"labels": {"a": "b"}}, True, id="object"),
        pytest.param({"objectSelector": {"matchLabels": {"a": "b"}}}, {"labels": {"a": "c"}}, False, id="other object"),
        pytest.param(
            {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}},
            {},
            True,
            id="no label",
        ),
    ],
)
async def test_selectors_choose_namespaces_and_objects(
    webhooks: Webhooks, serving: Serving, selectors: Any, value: Any, is_asked: bool
) -> None:
    seen = a_rule(webhooks, "validating", lambda _: Allowed())
    await serving.configure(**selectors)
    queue = a_reviewed_queue()
    queue["metadata"] |= value
    await serving.admit(queue)
    assert bool(seen) is is_asked


async def test_what_is_in_no_namespace_is_never_left_out_by_one(webhooks: Webhooks, serving: Serving) -> None:
    seen = a_rule(webhooks, "validating", lambda _: Allowed())
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes", "namespaces"], "operations": ["*"]}
    await serving.configure(rules=[rule], namespaceSelector={"matchLabels": {"env": "test"}})
    await serving.admit({"metadata": {"name": "n"}}, NODE)
    assert len(seen) == 1
    namespace = a_kind("Namespace", "namespaces", namespaced=False)
    await serving.admit({"metadata": {"name": "new", "labels": {"env": "test"}}}, namespace)
    assert (seen[1].name, seen[1].namespace) == ("new", "new")
    await serving.admit({"metadata": {"name": "new", "labels": {"env": "live"}}}, namespace)
    assert len(seen) == 2


async def test_an_old_object_that_is_selected_is_enough(webhooks: Webhooks, serving: Serving) -> None:
    seen = a_rule(webhooks, "validating", lambda _: Allowed(), operations=["UPDATE", "DELETE"])
    await serving.configure(objectSelector={"matchLabels": {"a": "b"}})
    old = a_reviewed_queue()
    old["metadata"]["labels"] = {"a": "b"}
    await serving.chain.validate(updating(QUEUE, a_reviewed_queue(), old))
    await serving.chain.validate(deleting(QUEUE, old))
    assert [msgspec.json.decode(each.old_object) for each in seen] == [old, old]
    assert msgspec.json.decode(seen[1].object) is None


async def test_conditions_are_asked_before_a_webhook(webhooks: Webhooks, serving: Serving) -> None:
    seen = a_rule(webhooks, "validating", lambda _: Allowed())
    await serving.configure(
        matchConditions=[{"name": "a", "expression": "weight"}, {"name": "b", "expression": "user"}]
    )

    def compiler(expression: str) -> Callable[[Mapping[str, Any]], Any]:
        def condition(variables: Mapping[str, Any]) -> Any:
            if expression == "user":
                return variables["request"]["userInfo"]["username"] == "ann"
            return variables["object"]["spec"]["weight"] > 3

        return condition

    serving.chain = Chain(serving.state, compile_condition=compiler)
    await serving.admit(a_reviewed_queue(weight=5))
    await serving.admit(a_reviewed_queue(weight=1))
    assert len(seen) == 1
    refused = await refusal_of(serving.admit(a_reviewed_queue()))
    assert (refused.code, refused.message) == (
        403,
        "queues.shoal.test \"team-a\" is forbidden: expression 'weight' resulted in error: 'weight'",
    )
    await serving.configure(failurePolicy="Ignore", matchConditions=[{"name": "a", "expression": "weight"}])
    await serving.admit(a_reviewed_queue())
    assert len(seen) == 1


async def test_webhooks_are_never_asked_about_webhooks(webhooks: Webhooks, serving: Serving) -> None:
    seen = a_rule(webhooks, "validating", lambda _: Denied("never"))
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}
    await serving.configure(rules=[everything])
    kind = a_kind(
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "admissionregistration.k8s.io",
        namespaced=False,
    )
    await serving.admit({"metadata": {"name": "ours"}}, kind)
    assert not seen


def to_old(value: Object) -> Object:
    return value | {"spec": {"size": value["spec"].get("weight", 0)}}


def from_old(value: Object) -> Object:
    return value | {"spec": {"weight": value["spec"]["size"]}}


OLD_QUEUE = a_kind("Queue", "queues", "shoal.test", "v1", to_storage=from_old, from_storage=to_old)


@pytest.mark.parametrize("policy", ["Equivalent", "Exact"])
async def test_a_webhook_for_one_version_sees_objects_of_others_in_its_own(
    webhooks: Webhooks, serving: Serving, policy: str
) -> None:
    def double(request: AdmissionRequest) -> Verdict:
        size = msgspec.json.decode(request.object)["spec"]["size"]
        return Patched([{"op": "replace", "path": "/spec/size", "value": 2 * size}])

    seen = a_rule(webhooks, "mutating", double, match_policy=policy)
    rule = {"apiGroups": ["shoal.test"], "apiVersions": ["v1"], "resources": ["queues"], "operations": ["CREATE"]}
    await serving.configure(rules=[rule])
    serving.chain = Chain(serving.state, equivalents=lambda _kind: (QUEUE, OLD_QUEUE))
    request = await serving.admit(a_reviewed_queue(weight=3))
    await serving.chain.close()
    if policy == "Exact":
        assert not seen
        assert request.object == a_reviewed_queue(weight=3)
        return
    (review,) = seen
    assert (review.kind.version, review.resource.version) == ("v1", "v1")
    assert review.request_kind is not None
    assert review.request_kind.version == "v2"
    assert msgspec.json.decode(review.object)["apiVersion"] == "shoal.test/v1"
    assert request.object == a_reviewed_queue(weight=6)
