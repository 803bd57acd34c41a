"""How one request is judged: the rules of a webhook, run over an AdmissionRequest, give a verdict.

All of it is values in, values out; a rule may be ``async`` where it has to read a cache. There are two kinds of rule:

- *mutating* rules get the object and return it changed. Each sees what the one before it left; the difference between
  the first and the last becomes a JSON patch. A typed rule's change is carried over to the whole object (see
  ``overlay``), so fields that the type does not name stay.
- *validating* rules get a ``Change`` and say what is wrong with it. All are heard, so that a user learns of every
  problem at once.

An object that does not even decode is refused as invalid, with the field named, since mutating webhooks are called
before the API server looks at the schema. A *stored* object that does not decode must not lock its owner out: it can
still be updated (the rules see no ``old`` then, and a warning says so), and after that be deleted.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar, cast

import msgspec

from shoal.api.meta.objects import Document, HasMetadata, Wire
from shoal.api.meta.resource import DecodeError, Resource
from shoal.kube.admission.fields import FieldProblem, Reason, invalid_status
from shoal.kube.admission.jsonpatch import difference, is_same
from shoal.kube.admission.overlay import overlaid
from shoal.kube.admission.verdicts import Allowed, Denied, Finding, Findings, Patched, Verdict, Warn
from shoal.kube.admission.wire import AdmissionRequest, Operation, UserInfo

T = TypeVar("T", bound=HasMetadata)


@dataclass(frozen=True, kw_only=True)
class Change(Generic[T]):
    """What someone is about to do to an object.

    ``object`` is the object as it would be; on DELETE, the one about to go. ``old`` is the one it replaces: None on
    CREATE, and where the stored one does not decode.
    """

    object: T
    old: T | None = None
    operation: Operation = Operation.CREATE
    request: AdmissionRequest = field(default_factory=AdmissionRequest)

    @property
    def user(self) -> UserInfo:
        """Who asks."""
        return self.request.user_info

    @property
    def dry_run(self) -> bool:
        """Whether nothing will be stored; a rule with side effects has to leave them."""
        return bool(self.request.dry_run)


Review: TypeAlias = Callable[[AdmissionRequest], Awaitable[Verdict]]
Defaulter: TypeAlias = Callable[[T], T | Awaitable[T]]
Mutator: TypeAlias = Callable[[Change[T]], T | Denied | Awaitable[T | Denied]]
Validator: TypeAlias = Callable[[Change[T]], Findings | Awaitable[Findings] | AsyncIterable[Finding]]

Content: TypeAlias = dict[str, Any]
MutatingRule: TypeAlias = Callable[[AdmissionRequest, Content], Awaitable[Content]]
ValidatingRule: TypeAlias = Callable[[AdmissionRequest], Awaitable[list[Finding]]]


async def mutate(rules: Sequence[MutatingRule], request: AdmissionRequest) -> Verdict:
    """Runs mutating rules one after the other, and gives all their changes as one patch."""
    if not _is_there(request.object):
        return Allowed()
    before: Content = msgspec.json.decode(request.object)
    seen, content = msgspec.json.encode(before), before
    try:
        for rule in rules:
            content = await rule(request, content)
    except _Refused as refused:
        return refused.verdict
    # What rules left alone they share with what they were given, unless one of them changed that in place.
    is_intact = msgspec.json.encode(before) == seen
    operations = difference(before if is_intact else msgspec.json.decode(request.object), content)
    return Patched(operations) if operations else Allowed()


async def validate(rules: Sequence[ValidatingRule], request: AdmissionRequest) -> Verdict:
    """Hears all validating rules; refuses with every problem that they found."""
    try:
        findings = [finding for rule in rules for finding in await rule(request)]
    except _Refused as refused:
        return refused.verdict
    warnings = tuple(dict.fromkeys(finding.message for finding in findings if isinstance(finding, Warn)))
    for finding in findings:
        if isinstance(finding, Denied):
            return replace(finding, warnings=finding.warnings + warnings)
    if problems := [finding for finding in findings if isinstance(finding, FieldProblem)]:
        return refusal(request, problems, warnings)
    return Allowed(warnings)


def refusal(request: AdmissionRequest, problems: Iterable[FieldProblem], warnings: tuple[str, ...] = ()) -> Denied:
    """A 422 that names the fields."""
    status = invalid_status(request.kind.group, request.kind.kind, _name(request), problems)
    return Denied(status.message, status.code, status.reason, warnings, status)


def defaulting_rule(resources: Sequence[Resource[T]], function: Defaulter[T]) -> MutatingRule:
    """A function from object to object as a rule; an object that is on its way out is left alone."""

    async def rule(request: AdmissionRequest, content: Content) -> Content:
        if is_cleanup(request):
            return content
        current = _read(_resource_of(request, resources), content, request)
        return await _carried_over(content, current, partial(function, current), function)

    return rule


def mutating_rule(resources: Sequence[Resource[T]], function: Mutator[T]) -> MutatingRule:
    """A function from change to object as a rule."""

    async def rule(request: AdmissionRequest, content: Content) -> Content:
        resource = _resource_of(request, resources)
        change, _ = _change(resource, request, _read(resource, content, request))
        return await _carried_over(content, change.object, partial(function, change), function)

    return rule


def validating_rule(resources: Sequence[Resource[T]], function: Validator[T], *, hears_cleanup: bool) -> ValidatingRule:
    """A function that finds problems as a rule; unless it wants to, it is not asked about clean-up."""

    async def rule(request: AdmissionRequest) -> list[Finding]:
        if not hears_cleanup and is_cleanup(request):
            return []
        resource = _resource_of(request, resources)
        subject = request.old_object if request.operation is Operation.DELETE else request.object
        change, doubts = _change(resource, request, _decoded(resource, subject, request))
        return [*doubts, *await _heard(function(change))]

    return rule


def is_cleanup(request: AdmissionRequest) -> bool:
    """Whether this leaves all but the metadata and status of an object that is being deleted as it was.

    A rule that is newer than the object would else refuse for ever that its finalizers are taken off.
    """
    if request.operation is not Operation.UPDATE or not _is_there(request.old_object):
        return False
    if not _DEPARTURES.decode(request.old_object).metadata.deletion_timestamp:
        return False
    old, new = msgspec.json.decode(request.old_object), msgspec.json.decode(request.object)
    surface = {"metadata", "status"}
    return is_same(*({key: value for key, value in each.items() if key not in surface} for each in (old, new)))


class _DepartureTime(Wire, frozen=True, kw_only=True):
    deletion_timestamp: Any = None


class _Departure(Wire, frozen=True, kw_only=True):
    """All that has to be read of most objects to know that nobody has asked for their deletion."""

    metadata: _DepartureTime = _DepartureTime()


_DEPARTURES = msgspec.json.Decoder(_Departure)


class _Refused(Exception):
    """Ends a review from within a rule."""

    def __init__(self, verdict: Denied) -> None:
        self.verdict = verdict
        super().__init__(verdict.message)


def _resource_of(request: AdmissionRequest, resources: Sequence[Resource[T]]) -> Resource[T]:
    asked = request.resource
    for resource in resources:
        if (resource.group, resource.version, resource.plural) == (asked.group, asked.version, asked.resource):
            return resource
    known = ", ".join(map(str, resources))
    message = f"this webhook reviews {known}, not {asked.resource}.{asked.version}.{asked.group}".rstrip(".")
    raise _Refused(Denied(f"{message}: correct the rules of its configuration", 400, "BadRequest"))


def _change(resource: Resource[T], request: AdmissionRequest, current: T) -> tuple[Change[T], list[Finding]]:
    """The change that a request asks for, and what a user should know of how it was read."""
    doubts: list[Finding] = []
    old = current if request.operation is Operation.DELETE else None
    if old is None and _is_there(request.old_object):
        try:
            old = resource.decode(request.old_object)
        except DecodeError as error:
            doubts.append(Warn(f"the stored object cannot be compared with the new one: {error.problem}"))
    return Change(object=current, old=old, operation=request.operation, request=request), doubts


def _read(resource: Resource[T], content: Content, request: AdmissionRequest) -> T:
    """Plain values as a rule gets them: the same values where it wants to see the whole object."""
    if resource.type is Document:
        with suppress(msgspec.ValidationError):
            return cast(T, Document.of(content))
    return _decoded(resource, msgspec.json.encode(content), request)


def _decoded(resource: Resource[T], subject: bytes | msgspec.Raw, request: AdmissionRequest) -> T:
    try:
        return resource.decode(subject)
    except DecodeError as error:
        raise _Refused(refusal(request, [_as_field_problem(error.problem)])) from error


async def _carried_over(
    content: Content, given: T, judge: Callable[[], T | Denied | Awaitable[T | Denied]], function: Callable[..., Any]
) -> Content:
    """The whole object with what a rule changed in its view of it."""
    seen = b"" if isinstance(given, Document) else msgspec.json.encode(given)
    outcome = judge()
    if inspect.isawaitable(outcome):
        outcome = await outcome
    if isinstance(outcome, Denied):
        raise _Refused(outcome)
    if isinstance(outcome, Document):
        return outcome.content
    if type(outcome) is not type(given):
        wanted, returned = type(given).__name__, type(outcome).__name__
        raise TypeError(f"{function.__qualname__} must return a {wanted}, changed or not, but returned {returned}")
    # Read anew where need be, so that what a rule did in place to the plain values within an object counts as well.
    is_intact = msgspec.json.encode(given) == seen
    pristine = given if is_intact else msgspec.json.decode(msgspec.json.encode(content), type=type(given))
    changed: Content = overlaid(content, pristine, outcome)
    return changed


async def _heard(answer: Any) -> list[Finding]:
    if inspect.isawaitable(answer):
        answer = await answer
    if answer is None:
        return []
    if isinstance(answer, Denied | FieldProblem | Warn):
        return [answer]
    if isinstance(answer, AsyncIterable):
        return [finding async for finding in answer]
    return list(answer)


_PLACE = re.compile(r"^(?P<problem>.*) - at `\$(?P<path>.*)`$", re.DOTALL)


def _as_field_problem(problem: str) -> FieldProblem:
    """What msgspec says of a value that has the wrong type, as a problem of a field."""
    found = _PLACE.match(problem)
    if found is None:
        return FieldProblem("<object>", problem, Reason.WRONG_TYPE)
    return FieldProblem(found["path"].lstrip(".") or "<object>", found["problem"], Reason.WRONG_TYPE)


def _name(request: AdmissionRequest) -> str:
    """The object's name; on CREATE with generateName there is only its beginning."""
    if request.name or not _is_there(request.object):
        return request.name
    metadata = msgspec.json.decode(request.object).get("metadata") or {}
    return str(metadata.get("name") or metadata.get("generateName") or "")


def _is_there(subject: msgspec.Raw) -> bool:
    return bytes(subject) not in (b"", b"null")
