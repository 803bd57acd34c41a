"""Rules as their authors write them, judged as the server would."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from shoal.api.meta.objects import Document, PartialObject
from shoal.api.meta.resource import Resource
from shoal.kube.admission import (
    AdmissionRequest,
    Allowed,
    Change,
    Denied,
    FieldProblem,
    Finding,
    Operation,
    Patched,
    Verdict,
    Warn,
    Webhook,
    Webhooks,
    immutable,
    invalid,
    required,
)
from shoal.kube.admission.jsonpatch import apply
from shoal.kube.admission.verdicts import response
from tests.support.builders.reviews import QUEUES, Limit, Queue, a_request, a_reviewed_queue

PODS = Resource(type=PartialObject, group="", version="v1", kind="Pod", plural="pods")


async def judged(webhooks: Webhooks, request: AdmissionRequest) -> Verdict:
    (webhook,) = webhooks
    return await webhook.review(request)


async def mutated(webhooks: Webhooks, queue: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The queue as the API server would store it."""
    verdict = await judged(webhooks, a_request(queue, **more))
    assert not isinstance(verdict, Denied), verdict.message
    result: dict[str, Any] = apply(verdict.operations, queue) if isinstance(verdict, Patched) else queue
    return result


class TestDefaulting:
    async def test_a_typed_default_keeps_every_field_that_the_type_does_not_name(self) -> None:
        webhooks = Webhooks()

        @webhooks.defaulting(QUEUES)
        def default_priority(queue: Queue) -> Queue:
            return replace(queue, spec=replace(queue.spec, priority=queue.spec.priority or 50))

        written = a_reviewed_queue(parent="root", colour="blue", limits=[{"name": "gpu", "unit": "card"}])
        assert await mutated(webhooks, written) == a_reviewed_queue(
            parent="root", colour="blue", limits=[{"name": "gpu", "unit": "card"}], priority=50
        )
        assert default_priority(Queue()).spec.priority == 50

    async def test_what_needs_no_default_gets_no_patch(self) -> None:
        webhooks = Webhooks()

        @webhooks.defaulting(QUEUES)
        def nothing_to_do(queue: Queue) -> Queue:
            return queue

        assert await judged(webhooks, a_request(a_reviewed_queue(colour="blue"))) == Allowed()

    async def test_each_function_sees_what_the_one_before_it_left(self) -> None:
        webhooks = Webhooks()

        @webhooks.defaulting(QUEUES)
        def first(queue: Queue) -> Queue:
            return replace(queue, spec=replace(queue.spec, limits=[*queue.spec.limits, Limit(name="gpu")]))

        @webhooks.defaulting(QUEUES)
        async def second(queue: Queue) -> Queue:
            limits = [replace(limit, amount=8) for limit in queue.spec.limits]
            return replace(queue, spec=replace(queue.spec, limits=limits))

        @webhooks.defaulting(QUEUES.documents())
        def third(queue: Document) -> Document:
            queue.content["metadata"]["labels"] = {"limits": str(len(queue.content["spec"]["limits"]))}
            return queue

        stored = await mutated(webhooks, a_reviewed_queue(limits=[{"name": "cpu", "unit": "core"}]))
        assert stored["spec"]["limits"] == [
            {"name": "cpu", "unit": "core", "amount": 8},
            {"name": "gpu", "amount": 8},
        ]
        assert stored["metadata"]["labels"] == {"limits": "2"}

    async def test_a_dying_object_is_not_defaulted(self) -> None:
        webhooks = Webhooks()

        @webhooks.defaulting(QUEUES)
        def default_priority(queue: Queue) -> Queue:
            return replace(queue, spec=replace(queue.spec, priority=1))

        old = a_reviewed_queue()
        old["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a", "b"]}
        new = msgspec.json.decode(msgspec.json.encode(old))
        new["metadata"]["finalizers"] = ["b"]
        assert await judged(webhooks, a_request(new, old=old)) == Allowed()

    async def test_a_deletion_has_nothing_to_default(self) -> None:
        webhooks = Webhooks()

        @webhooks.defaulting(QUEUES, operations=["DELETE"])
        def never_asked(queue: Queue) -> Queue:
            raise AssertionError("there is no object")

        assert await judged(webhooks, a_request(old=a_reviewed_queue())) == Allowed()

    async def test_an_object_of_the_wrong_type_is_refused_with_its_field_named(self) -> None:
        webhooks = Webhooks()

        @webhooks.defaulting(QUEUES)
        def nothing_to_do(queue: Queue) -> Queue:
            return queue

        verdict = await judged(webhooks, a_request(a_reviewed_queue(limits=[{"amount": "many"}])))
        assert isinstance(verdict, Denied)
        assert verdict.code == 422
        assert verdict.message == (
            'Queue.shoal.test "team-a" is invalid: '
            "spec.limits[0].amount: Invalid value: Expected `int | null`, got `str`"
        )

    async def test_a_function_that_forgets_to_return_the_object_is_told_so(self) -> None:
        webhooks = Webhooks()

        def forgetful(queue: Queue) -> Queue:
            return None  # type: ignore[return-value]

        webhooks.defaulting(QUEUES)(forgetful)
        with pytest.raises(TypeError, match="forgetful must return a Queue, changed or not, but returned NoneType"):
            await judged(webhooks, a_request(a_reviewed_queue()))


class TestMutating:
    async def test_a_change_can_be_compared_with_what_was_and_who_asks(self) -> None:
        webhooks = Webhooks()

        @webhooks.mutating(QUEUES)
        def keep_parent(change: Change[Queue]) -> Queue | Denied:
            if change.user.username == "mallory":
                return Denied("not you")
            if change.old is None:
                return change.object
            return replace(change.object, spec=replace(change.object.spec, parent=change.old.spec.parent))

        stored = await mutated(webhooks, a_reviewed_queue(parent="b", colour="blue"), old=a_reviewed_queue(parent="a"))
        assert stored["spec"] == {"parent": "a", "colour": "blue"}
        assert await judged(webhooks, a_request(a_reviewed_queue(), user="mallory")) == Denied("not you")

    async def test_what_a_function_does_in_place_counts_as_well(self) -> None:
        webhooks = Webhooks()

        @webhooks.mutating(QUEUES.documents())
        def add_label(change: Change[Document]) -> Document:
            change.object.content["metadata"]["labels"] = {"a": "b"}
            return change.object

        @webhooks.mutating(QUEUES)
        def add_limit(change: Change[Queue]) -> Queue:
            change.object.spec.limits.append(Limit(name="gpu"))
            return change.object

        @webhooks.mutating(QUEUES.documents())
        def add_colour(change: Change[Document]) -> Document:
            change.object.content["spec"]["limits"][0]["colour"] = "blue"
            return Document.of(dict(change.object.content))

        assert await judged(webhooks, a_request(a_reviewed_queue(limits=[{"name": "cpu", "unit": "core"}]))) == Patched(
            [
                {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
                {"op": "add", "path": "/spec/limits/0/colour", "value": "blue"},
                {"op": "add", "path": "/spec/limits/1", "value": {"name": "gpu"}},
            ]
        )

    async def test_what_a_function_tries_out_in_place_and_does_not_return_counts_for_nothing(self) -> None:
        webhooks = Webhooks()

        @webhooks.mutating(QUEUES.documents())
        def undecided(change: Change[Document]) -> Document:
            kept = msgspec.json.decode(msgspec.json.encode(change.object.content))
            del change.object.content["spec"]
            return Document.of(kept)

        assert await judged(webhooks, a_request(a_reviewed_queue(priority=1))) == Allowed()

    async def test_a_whole_object_whose_metadata_make_no_sense_is_refused(self) -> None:
        webhooks = Webhooks()

        @webhooks.mutating(QUEUES.documents())
        def never_asked(change: Change[Document]) -> Document:
            raise AssertionError("there is nothing to change")

        odd = a_reviewed_queue()
        odd["metadata"]["labels"] = {"a": 1}
        verdict = await judged(webhooks, a_request(odd))
        assert isinstance(verdict, Denied)
        assert verdict.code == 422
        assert "metadata.labels[...]: Invalid value: Expected `str`, got `int`" in verdict.message


class TestValidating:
    async def test_every_problem_of_every_rule_is_told_at_once(self) -> None:
        webhooks = Webhooks()

        @webhooks.validating(QUEUES)
        def priority_in_range(change: Change[Queue]) -> Iterable[FieldProblem]:
            if (change.object.spec.priority or 0) < 0:
                yield invalid("spec.priority", change.object.spec.priority, "must be at least 0")

        @webhooks.validating(QUEUES)
        async def parent_set(change: Change[Queue]) -> list[FieldProblem]:
            return [] if change.object.spec.parent else [required("spec.parent")]

        @webhooks.validating(QUEUES)
        async def parent_kept(change: Change[Queue]) -> AsyncIterator[Finding]:
            yield Warn("queues move slowly")
            if change.old is not None and change.old.spec.parent != change.object.spec.parent:
                yield immutable("spec.parent", change.object.spec.parent)

        verdict = await judged(webhooks, a_request(a_reviewed_queue(priority=-3), old=a_reviewed_queue(parent="root")))
        assert isinstance(verdict, Denied)
        assert verdict.message == (
            'Queue.shoal.test "team-a" is invalid: [spec.priority: Invalid value: -3: must be at least 0, '
            'spec.parent: Required value, spec.parent: Invalid value: "": field is immutable]'
        )
        assert verdict.warnings == ("queues move slowly",)
        assert await judged(webhooks, a_request(a_reviewed_queue(parent="root"))) == Allowed(("queues move slowly",))

    async def test_a_plain_refusal_is_forbidden(self) -> None:
        webhooks = Webhooks()

        @webhooks.validating(QUEUES, operations=["DELETE"])
        def never_deleted(change: Change[Queue]) -> Denied | None:
            assert change.operation is Operation.DELETE
            assert change.old == change.object
            return Denied("delete its children first") if change.object.spec.parent else None

        verdict = await judged(webhooks, a_request(old=a_reviewed_queue(parent="root")))
        assert verdict == Denied("delete its children first", 403, "Forbidden")
        assert await judged(webhooks, a_request(old=a_reviewed_queue())) == Allowed()

    async def test_a_stored_object_that_does_not_decode_can_still_be_repaired(self) -> None:
        webhooks = Webhooks()

        @webhooks.validating(QUEUES)
        def parent_kept(change: Change[Queue]) -> Iterable[Finding]:
            if change.old is not None and change.old.spec.parent != change.object.spec.parent:
                yield immutable("spec.parent", change.object.spec.parent)

        broken = a_reviewed_queue(parent=["not", "a", "name"])
        verdict = await judged(webhooks, a_request(a_reviewed_queue(parent="root"), old=broken))
        assert isinstance(verdict, Allowed)
        assert "cannot be compared" in verdict.warnings[0]
        assert "spec.parent" in verdict.warnings[0]

    @pytest.mark.parametrize(
        ("change", "heard"),
        [
            pytest.param({"metadata": {"finalizers": ["b"]}}, False, id="a finalizer is taken off"),
            pytest.param({"status": {"phase": "Gone"}}, False, id="the status changes"),
            pytest.param({"spec": {"parent": "other"}}, True, id="the spec changes"),
        ],
    )
    async def test_a_rule_cannot_keep_a_dying_object_alive(self, change: dict[str, Any], heard: bool) -> None:
        webhooks = Webhooks()

        @webhooks.validating(QUEUES)
        def refuse_all(change: Change[Queue]) -> Denied:
            return Denied("no")

        old = a_reviewed_queue()
        old["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a", "b"]}
        new = old | change
        new["metadata"] = old["metadata"] | change.get("metadata", {})
        assert isinstance(await judged(webhooks, a_request(new, old=old)), Denied) is heard

    async def test_a_rule_that_guards_metadata_can_ask_to_hear_of_clean_up(self) -> None:
        webhooks = Webhooks()

        @webhooks.validating(QUEUES, hears_cleanup=True)
        def refuse_all(change: Change[Queue]) -> Denied:
            return Denied("no")

        dying = a_reviewed_queue()
        dying["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert await judged(webhooks, a_request(dying, old=dying)) == Denied("no")

    async def test_a_living_object_is_heard_even_when_only_its_metadata_change(self) -> None:
        webhooks = Webhooks()

        @webhooks.validating(QUEUES)
        def refuse_all(change: Change[Queue]) -> Denied:
            return Denied("no")

        assert await judged(webhooks, a_request(a_reviewed_queue(), old=a_reviewed_queue())) == Denied("no")

    async def test_an_object_without_a_name_yet_is_called_by_the_beginning_of_it(self) -> None:
        webhooks = Webhooks()

        @webhooks.validating(QUEUES)
        def refuse_all(change: Change[Queue]) -> FieldProblem:
            return required("spec.parent")

        unnamed = a_reviewed_queue()
        unnamed["metadata"] = {"generateName": "team-"}
        verdict = await judged(webhooks, a_request(unnamed))
        assert isinstance(verdict, Denied)
        assert 'Queue.shoal.test "team-" is invalid' in verdict.message


class TestReviewing:
    async def test_a_bare_function_judges_the_bare_request(self) -> None:
        webhooks = Webhooks()

        @webhooks.reviewing("validating", QUEUES, path="/authorize")
        async def authorize(request: AdmissionRequest) -> Verdict:
            return Allowed() if "system:authenticated" in request.user_info.groups else Denied("who are you?")

        assert await judged(webhooks, a_request(a_reviewed_queue())) == Allowed()

    async def test_it_shares_its_path_with_nobody(self) -> None:
        webhooks = Webhooks()

        async def allow(request: AdmissionRequest) -> Verdict:
            return Allowed()

        webhooks.reviewing("validating", QUEUES)(allow)
        with pytest.raises(ValueError, match="is taken"):
            webhooks.reviewing("validating", QUEUES)(allow)
        with pytest.raises(ValueError, match="is offered already"):
            webhooks.validating(QUEUES)(lambda change: None)


class TestRegistration:
    @pytest.mark.parametrize(
        ("resource", "mutating", "validating"),
        [
            pytest.param(
                QUEUES, "/mutate-shoal-test-v2-queue", "/validate-shoal-test-v2-queue", id="a group with dots"
            ),
            pytest.param(PODS, "/mutate--v1-pod", "/validate--v1-pod", id="no group"),
        ],
    )
    def test_paths_are_those_of_controller_runtime(
        self, resource: Resource[Any], mutating: str, validating: str
    ) -> None:
        webhooks = Webhooks()
        webhooks.defaulting(resource)(lambda queue: queue)
        webhooks.validating(resource)(lambda change: None)
        assert [webhook.path for webhook in webhooks] == [mutating, validating]

    async def test_one_webhook_can_review_several_kinds_on_a_path_of_its_own(self) -> None:
        webhooks = Webhooks()
        seen: list[str] = []

        @webhooks.validating(PODS, QUEUES.view(PartialObject), path="/guard", operations=["*"])
        def note(change: Change[PartialObject]) -> None:
            seen.append(change.object.metadata.name)

        await judged(webhooks, a_request(a_reviewed_queue("team-b")))
        assert seen == ["team-b"]
        (webhook,) = webhooks
        assert [(rule.group, rule.resource) for rule in webhook.rules] == [("", "pods"), ("shoal.test", "queues")]
        with pytest.raises(ValueError, match="needs a path of its own"):
            webhooks.validating(PODS, QUEUES.view(PartialObject))(lambda change: None)

    def test_rules_that_share_a_path_must_agree_on_the_options(self) -> None:
        webhooks = Webhooks()
        webhooks.validating(QUEUES)(lambda change: None)
        webhooks.validating(QUEUES.documents())(lambda change: None)
        with pytest.raises(ValueError, match="other options"):
            webhooks.validating(QUEUES, failure_policy="Ignore")(lambda change: None)

    async def test_a_request_about_another_kind_is_refused_and_says_what_to_correct(self) -> None:
        webhooks = Webhooks()
        webhooks.validating(QUEUES)(lambda change: None)
        verdict = await judged(webhooks, a_request(a_reviewed_queue(), plural="shoals"))
        assert isinstance(verdict, Denied)
        assert verdict.code == 400
        assert "reviews queues.v2.shoal.test, not shoals.v2.shoal.test" in verdict.message

    def test_a_path_begins_with_a_slash_and_a_webhook_has_a_resource(self) -> None:
        with pytest.raises(ValueError, match="begins with a slash"):
            Webhooks().validating(QUEUES, path="queues")(lambda change: None)
        with pytest.raises(ValueError, match="at least one resource"):
            Webhooks().validating()(lambda change: None)


class TestResponse:
    def test_a_patch_travels_as_base64(self) -> None:
        operations = [{"op": "add", "path": "/spec/priority", "value": 1}]
        answer = msgspec.to_builtins(response(Patched(operations, ("mind",)), a_request(a_reviewed_queue(), uid="42")))
        assert msgspec.json.decode(base64.b64decode(answer.pop("patch"))) == operations
        assert answer == {"uid": "42", "allowed": True, "patchType": "JSONPatch", "warnings": ["mind"]}

    def test_a_refusal_carries_its_status(self) -> None:
        answer = response(Denied("no", warnings=("mind",)), a_request(a_reviewed_queue()))
        assert not answer.allowed
        assert answer.status is not None
        assert (answer.status.code, answer.status.reason, answer.status.message) == (403, "Forbidden", "no")
        assert answer.patch is None

    def test_a_plain_yes_says_nothing_more(self) -> None:
        assert msgspec.to_builtins(response(Allowed(), a_request(a_reviewed_queue()))) == {
            "uid": "705ab4f5",
            "allowed": True,
        }


def test_rules_are_kept_per_instance() -> None:
    one, other = Webhooks(), Webhooks()
    one.validating(QUEUES)(lambda change: None)
    found: list[Webhook] = list(other)
    assert found == []
