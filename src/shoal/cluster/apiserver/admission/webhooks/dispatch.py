"""Puts a request to the webhooks that it concerns: mutating ones one after the other, validating ones all at once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec
import structlog

from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.webhooks.calling import Caller, CallFailed
from shoal.cluster.apiserver.admission.webhooks.matching import Called, Webhook, Webhooks, conditions_hold
from shoal.cluster.apiserver.admission.webhooks.reviews import (
    BadAnswer,
    Verdict,
    answer,
    denial,
    question,
    request_fields,
)
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.patches.json_patch import Unfit, patched
from shoal.cluster.apiserver.refusals import Refused, bad_request, internal_error

log = structlog.get_logger("shoal.cluster.apiserver.admission")

Decoder: TypeAlias = Callable[[Kind, Object], Object]
"""Brings an object that a webhook patched into normal form, with defaults; raises Refused."""


@dataclass(slots=True)
class Reinvocation:
    """Which webhooks are to be asked a second time, since others changed the object after they saw it."""

    asked: set[Webhook] = field(default_factory=set)
    again: set[Webhook] = field(default_factory=set)
    output: bytes = b""

    def changed(self) -> None:
        """The object has changed: all that were asked before, and want it so, are asked again."""
        self.again |= self.asked
        self.asked.clear()


class MutatingWebhooks:
    """MutatingAdmissionWebhook: each webhook sees what those before it made of the object."""

    def __init__(self, webhooks: Webhooks, caller: Caller, decode: Decoder) -> None:
        self._webhooks = webhooks
        self._caller = caller
        self._decode = decode

    def with_rules_for(self, request: Attributes) -> list[Called]:
        """The webhooks that may have to be asked."""
        return self._webhooks.with_rules_for(request)

    async def ask(self, request: Attributes, called: list[Called], rounds: Reinvocation) -> bool:
        """Asks all that are concerned; says whether one of them changed the object."""
        return await self._ask(request, called, rounds, is_again=False)

    async def ask_again(self, request: Attributes, called: list[Called], rounds: Reinvocation) -> None:
        """Asks those again that want to see what became of the object."""
        if rounds.output != _fingerprint(request.object):
            rounds.changed()
        await self._ask(request, called, rounds, is_again=True)

    async def _ask(self, request: Attributes, called: list[Called], rounds: Reinvocation, *, is_again: bool) -> bool:
        has_changed = False
        for webhook, wanted in called:
            if not _is_concerned(self._webhooks, webhook, wanted, request):
                continue
            if is_again and webhook not in rounds.again:
                continue
            try:
                changes = await self._mutate(webhook, wanted, request)
            except CallFailed as failure:
                _tolerate(webhook, failure)
                changes = False
            if changes:
                has_changed = True
                rounds.changed()
            if webhook.is_reinvoked:
                rounds.asked.add(webhook)
        rounds.output = _fingerprint(request.object)
        return has_changed

    async def _mutate(self, webhook: Webhook, wanted: Kind, request: Attributes) -> bool:
        verdict = await _verdict(self._caller, webhook, wanted, request, mutates=True)
        if not verdict.patch:
            return False
        try:
            operations = msgspec.json.decode(verdict.patch, type=list[dict[str, Any] | None])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise CallFailed(f"received undecodable patch in webhook response: {error}") from error
        if not operations:
            return False
        if request.object is None:
            raise internal_error(
                f'admission webhook "{webhook.name}" attempted to modify the object, '
                "which is not supported for this operation"
            )
        if verdict.patch_type != "JSONPatch":
            raise CallFailed(f'unsupported patch type "{verdict.patch_type}"')
        try:
            after = patched(converted(request.object, request.kind, wanted), operations)
        except (Unfit, RecursionError) as error:
            raise internal_error(str(error)) from error
        try:
            after = self._decode(request.kind, converted(after, wanted, request.kind))
        except Refused as refusal:
            raise internal_error(refusal.status.message) from refusal
        is_changed = after != request.object
        request.object = after
        return is_changed


class ValidatingWebhooks:
    """ValidatingAdmissionWebhook: all are asked at once, and one refusal is enough."""

    def __init__(self, webhooks: Webhooks, caller: Caller) -> None:
        self._webhooks = webhooks
        self._caller = caller

    async def validate(self, request: Attributes) -> None:
        """Refuses what a webhook refuses."""
        called = self._webhooks.with_rules_for(request)
        concerned = [each for each in called if _is_concerned(self._webhooks, *each, request)]
        if len(concerned) == 1:
            await self._ask(*concerned[0], request)
        elif concerned:
            answers = await asyncio.gather(
                *(self._ask(webhook, wanted, request) for webhook, wanted in concerned), return_exceptions=True
            )
            for each in answers:
                if isinstance(each, BaseException):
                    raise each

    async def _ask(self, webhook: Webhook, wanted: Kind, request: Attributes) -> None:
        try:
            await _verdict(self._caller, webhook, wanted, request, mutates=False)
        except CallFailed as failure:
            _tolerate(webhook, failure)


def converted(value: Object, source: Kind, target: Kind) -> Object:
    """An object in another version of its kind."""
    if source is target:
        return value
    stored = value if source.to_storage is None else source.to_storage(value)
    shown = stored if target.from_storage is None else target.from_storage(stored)
    return shown | {"apiVersion": target.api_version, "kind": target.kind}


async def _verdict(caller: Caller, webhook: Webhook, wanted: Kind, request: Attributes, *, mutates: bool) -> Verdict:
    """What a webhook says; raises Refused where it refuses, and CallFailed where it does not say anything of use."""
    if request.dry_run and webhook.has_side_effects:
        raise bad_request(f'admission webhook "{webhook.name}" does not support dry run')
    if "v1" not in webhook.review_versions:
        raise CallFailed(
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1)"
        )
    uid = str(uuid.uuid4())
    new, old = _as_wanted(request.object, request, wanted), _as_wanted(request.old, request, wanted)
    body = question(uid, request, wanted, new, old)
    answered = await caller.post(webhook.client, body, timeout=webhook.timeout)
    try:
        verdict = answer(answered, uid, mutates=mutates)
    except BadAnswer as error:
        raise CallFailed(f"received invalid webhook response: {error}") from error
    request.warnings += verdict.warnings
    if not verdict.allowed:
        raise Refused(denial(webhook.name, verdict.status))
    return verdict


def _is_concerned(webhooks: Webhooks, webhook: Webhook, wanted: Kind, request: Attributes) -> bool:
    def variables() -> Mapping[str, Any]:
        return {
            "object": _as_wanted(request.object, request, wanted),
            "oldObject": _as_wanted(request.old, request, wanted),
            "request": request_fields(request, wanted),
        }

    return webhooks.is_selected(webhook, request) and conditions_hold(webhook, request, variables)


def _as_wanted(value: Object | None, request: Attributes, wanted: Kind) -> Object | None:
    # The body of a subresource, such as a Scale, is the same in all versions.
    if value is None or wanted is request.kind or value.get("kind") != request.kind.kind:
        return value
    return converted(value, request.kind, wanted)


def _tolerate(webhook: Webhook, failure: CallFailed) -> None:
    """Goes on without an answer where the webhook may be done without; raises otherwise."""
    message = f'failed calling webhook "{webhook.name}": {failure}'
    if not webhook.fails_open:
        log.warning("webhook failed, request refused", webhook=webhook.name, reason=str(failure))
        raise internal_error(message) from failure
    log.warning("webhook failed, going on without it", webhook=webhook.name, reason=str(failure))


def _fingerprint(value: Object | None) -> bytes:
    return msgspec.json.encode(value, order="deterministic")
