"""What webhooks do to a request: change it, refuse it, and see what others made of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission import (
    AdmissionRequest,
    Allowed,
    Denied,
    Patched,
    Verdict,
    Webhooks,
)
from shoal.kube.admission.fields import invalid, invalid_status
from tests.cluster.apiserver.admission.memory import (
    a_kind,
    refusal_of,
)
from tests.cluster.apiserver.admission.webhook_serving import (
    MUTATING,
    Serving,
    a_rule,
    raise_weight,
)
from tests.support.builders.reviews import QUEUES, a_reviewed_queue


async def test_a_mutating_webhook_changes_the_object_and_warns(webhooks: Webhooks, serving: Serving) -> None:
    seen = a_rule(webhooks, "mutating", raise_weight)
    await serving.configure()
    queue = a_reviewed_queue(parent="root")
    request = await serving.admit(queue)
    assert request.object == a_reviewed_queue(parent="root", weight=5)
    assert request.warnings == ["weights will go"]
    assert queue == a_reviewed_queue(parent="root")
    (review,) = seen
    assert (review.name, review.namespace, review.operation) == ("team-a", "default", "CREATE")
    assert (review.user_info.username, review.user_info.groups) == ("ann", ["system:authenticated"])
    assert msgspec.json.decode(review.object) == a_reviewed_queue(parent="root")
    assert (review.kind.kind, review.resource.resource, review.dry_run) == ("Queue", "queues", False)


async def test_what_a_webhook_brought_in_is_given_defaults(webhooks: Webhooks, serving: Serving) -> None:
    a_rule(webhooks, "mutating", raise_weight)
    await serving.configure()

    def defaults(value: Object) -> None:
        value["spec"]["priority"] = value["spec"].get("weight", 0) * 2

    kind = a_kind("Queue", "queues", "shoal.test", "v2", rules=Rules(defaults=defaults))
    request = await serving.admit(a_reviewed_queue(), kind)
    assert request.object["spec"] == {"weight": 5, "priority": 10}


async def test_a_denial_carries_the_webhooks_own_status(webhooks: Webhooks, serving: Serving) -> None:
    status = invalid_status("shoal.test", "Queue", "team-a", [invalid("spec.priority", -3, "must be at least 0")])
    a_rule(webhooks, "validating", lambda _: Denied(status.message, status=status))
    await serving.configure()
    refused = await refusal_of(serving.admit(a_reviewed_queue(priority=-3)))
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.message == f'admission webhook "x.shoal.test" denied the request: {status.message}'
    assert [cause.field for cause in refused.details.causes] == ["spec.priority"]


async def test_a_plain_denial_is_forbidden(webhooks: Webhooks, serving: Serving) -> None:
    a_rule(webhooks, "validating", lambda _: Denied("not on my watch"))
    await serving.configure()
    refused = await refusal_of(serving.admit(a_reviewed_queue()))
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert refused.message == 'admission webhook "x.shoal.test" denied the request: not on my watch'


async def test_validating_webhooks_are_asked_at_once_and_see_the_final_object(
    webhooks: Webhooks, serving: Serving
) -> None:
    together = asyncio.Barrier(3)
    seen: list[Any] = []
    a_rule(webhooks, "mutating", raise_weight, "/mutate")
    for path in ("/a", "/b", "/c"):

        @webhooks.reviewing("validating", QUEUES, path=path, name=f"{path[1:]}.shoal.test")
        async def review(request: AdmissionRequest) -> Verdict:
            await together.wait()
            seen.append(msgspec.json.decode(request.object)["spec"])
            return Allowed()

    await serving.configure()
    async with asyncio.timeout(20):
        await serving.admit(a_reviewed_queue())
    assert seen == [{"weight": 5}] * 3


async def test_webhooks_follow_one_another_by_the_names_of_their_configurations(
    webhooks: Webhooks, serving: Serving
) -> None:
    def noting(letter: str) -> Callable[[AdmissionRequest], Verdict]:
        def note(request: AdmissionRequest) -> Verdict:
            trace = msgspec.json.decode(request.object)["spec"].get("trace", "")
            return Patched([{"op": "replace", "path": "/spec/trace", "value": trace + letter}])

        return note

    for letter in "ab":
        a_rule(webhooks, "mutating", noting(letter), f"/{letter}")
    await serving.configure()
    ours = serving.state.get(MUTATING, "", "ours")
    assert ours is not None
    first, second = ours["webhooks"]
    serving.state.put(MUTATING, ours | {"webhooks": [second]})
    serving.state.put(MUTATING, {"metadata": {"name": "another"}, "webhooks": [first]})
    assert (await serving.admit(a_reviewed_queue())).object["spec"]["trace"] == "ab"
    serving.state.put(MUTATING, {"metadata": {"name": "z"}, "webhooks": [first]})
    del serving.state.objects[MUTATING, "", "another"]
    assert (await serving.admit(a_reviewed_queue())).object["spec"]["trace"] == "ba"


async def test_a_webhook_that_wants_it_sees_what_later_ones_made(webhooks: Webhooks, serving: Serving) -> None:
    wants = a_rule(webhooks, "mutating", lambda _: Allowed(), "/a", reinvocation_policy="IfNeeded")
    does_not = a_rule(webhooks, "mutating", lambda _: Allowed(), "/b")
    changes = a_rule(webhooks, "mutating", raise_weight, "/c", reinvocation_policy="IfNeeded")
    await serving.configure()
    await serving.admit(a_reviewed_queue())
    assert [len(each) for each in (wants, does_not, changes)] == [2, 1, 1]
    assert msgspec.json.decode(wants[1].object)["spec"] == {"weight": 5}


async def test_built_in_plugins_complete_what_webhooks_bring_in(webhooks: Webhooks, serving: Serving) -> None:
    """A container that a webhook injects gets the token mounted, too."""
    pod = {"metadata": {"name": "p", "namespace": "team"}, "spec": {"containers": [{"name": "c"}]}}
    sidecar = {"op": "add", "path": "/spec/containers/-", "value": {"name": "sidecar"}}

    def inject(request: AdmissionRequest) -> Verdict:
        names = [each["name"] for each in msgspec.json.decode(request.object)["spec"]["containers"]]
        return Allowed() if "sidecar" in names else Patched([sidecar])

    a_rule(webhooks, "mutating", inject)
    await serving.configure(
        rules=[{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["*"]}]
    )
    request = await serving.admit(pod, a_kind("Pod", "pods"))
    containers = request.object["spec"]["containers"]
    assert [each["name"] for each in containers] == ["c", "sidecar"]
    assert all(each["volumeMounts"] for each in containers)
    assert len(request.object["spec"]["volumes"]) == 1
