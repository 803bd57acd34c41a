"""The webhooks that a program offers: rules given by decorators, gathered by the path they are called on.

::

    webhooks = Webhooks()

    @webhooks.defaulting(QUEUES)
    def default_priority(queue: Queue) -> Queue:
        ...

    @webhooks.validating(QUEUES)
    def parent_exists(change: Change[Queue]) -> Iterable[FieldProblem]:
        ...

A decorator gives the function back as it was, so a rule is tested by calling it. Any rule may be ``async``. Rules of
the same kind on the same path are one webhook to the API server; they run in the order in which they were given.

The type decides what a rule sees. With ``QUEUES`` it is a ``Queue``, and fields that ``Queue`` does not name are kept
whatever the rule returns; with ``QUEUES.documents()`` it is the whole object as plain JSON values. See ``overlay``.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol, TypedDict, TypeVar, Unpack, overload

from shoal.api.meta.objects import HasMetadata
from shoal.api.meta.resource import Resource
from shoal.kube.admission.conversion import Conversions, Converter
from shoal.kube.admission.review import (
    Change,
    MutatingRule,
    Review,
    ValidatingRule,
    defaulting_rule,
    mutate,
    mutating_rule,
    validate,
    validating_rule,
)
from shoal.kube.admission.verdicts import Denied, Finding, Findings, Verdict
from shoal.kube.admission.wire import AdmissionRequest

T = TypeVar("T", bound=HasMetadata)
R = TypeVar("R", MutatingRule, ValidatingRule)
F = TypeVar("F", bound=Findings | Awaitable[Findings] | AsyncIterable[Finding])

OperationName = Literal["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]
WebhookKind = Literal["mutating", "validating"]


class Options(TypedDict, total=False):
    """What the API server is to know of a webhook: when to call it, and what to do when it does not answer."""

    path: str
    """Where it is called; by default as controller-runtime names it, ``/validate-<group>-<version>-<kind>``."""
    name: str
    """Its name in the configuration, a full domain name."""
    operations: Sequence[OperationName]
    subresource: str
    """Reviews this part of the resource instead of the object: ``binding``, ``status``, ``*`` for all parts."""
    scope: Literal["*", "Cluster", "Namespaced"]
    failure_policy: Literal["Fail", "Ignore"]
    match_policy: Literal["Equivalent", "Exact"]
    side_effects: Literal["None", "NoneOnDryRun"]
    timeout_seconds: int
    namespace_selector: Mapping[str, Any]
    object_selector: Mapping[str, Any]
    match_conditions: Sequence[Mapping[str, str]]
    """CEL expressions, ``{"name": …, "expression": …}``, that must all hold for the webhook to be called."""
    reinvocation_policy: Literal["Never", "IfNeeded"]
    """Mutating webhooks alone: whether to be called again when a later one changed the object."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Which requests a webhook is called for."""

    group: str
    version: str
    resource: str
    operations: tuple[OperationName, ...]
    scope: str


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """One path, what is called there, and what the API server is to know of it."""

    kind: WebhookKind
    path: str
    name: str
    rules: tuple[Rule, ...]
    review: Review = field(compare=False)
    failure_policy: str = "Fail"
    match_policy: str = "Equivalent"
    side_effects: str = "None"
    timeout_seconds: int = 10
    namespace_selector: Mapping[str, Any] | None = None
    object_selector: Mapping[str, Any] | None = None
    match_conditions: tuple[Mapping[str, str], ...] = ()
    reinvocation_policy: str = "Never"


class TakesDefaulter(Protocol[T]):
    """Takes a function, async or not, and gives it back as it is."""

    @overload
    def __call__(self, function: Callable[[T], Awaitable[T]], /) -> Callable[[T], Awaitable[T]]: ...
    @overload
    def __call__(self, function: Callable[[T], T], /) -> Callable[[T], T]: ...


class TakesMutator(Protocol[T]):
    """Takes a function, async or not, and gives it back as it is."""

    @overload
    def __call__(
        self, function: Callable[[Change[T]], Awaitable[T | Denied]], /
    ) -> Callable[[Change[T]], Awaitable[T | Denied]]: ...
    @overload
    def __call__(self, function: Callable[[Change[T]], T | Denied], /) -> Callable[[Change[T]], T | Denied]: ...


class TakesValidator(Protocol[T]):
    """Takes a function, async or not, and gives it back as it is."""

    def __call__(self, function: Callable[[Change[T]], F], /) -> Callable[[Change[T]], F]:
        """Registers the function."""
        ...


class Webhooks:
    """The webhooks and conversions of one server."""

    def __init__(self) -> None:
        self.conversions = Conversions()
        self._webhooks: dict[str, Webhook] = {}
        self._mutating: dict[str, list[MutatingRule]] = {}
        self._validating: dict[str, list[ValidatingRule]] = {}

    def __iter__(self) -> Iterator[Webhook]:
        return iter(self._webhooks.values())

    def include(self, others: Webhooks) -> None:
        """Offers the webhooks of another set too, which may know nothing of this one."""
        taken = self._webhooks.keys() & others._webhooks.keys()
        if taken:
            raise ValueError(f"{', '.join(sorted(taken))} is offered already: give one of them a path of its own")
        self._webhooks |= others._webhooks
        self._mutating |= others._mutating
        self._validating |= others._validating

    def defaulting(self, *resources: Resource[T], **options: Unpack[Options]) -> TakesDefaulter[T]:
        """Registers a function from object to object that fills in what the user left out, on CREATE and UPDATE."""

        def register(function: Any) -> Any:
            rules = self._rules("mutating", resources, options, self._mutating, mutate)
            rules.append(defaulting_rule(resources, function))
            return function

        return register

    def mutating(self, *resources: Resource[T], **options: Unpack[Options]) -> TakesMutator[T]:
        """Registers a function from a change to the object as it should be, or to ``Denied``.

        For what ``defaulting`` cannot know: what was there before, and who asks.
        """

        def register(function: Any) -> Any:
            rules = self._rules("mutating", resources, options, self._mutating, mutate)
            rules.append(mutating_rule(resources, function))
            return function

        return register

    def validating(
        self, *resources: Resource[T], hears_cleanup: bool = False, **options: Unpack[Options]
    ) -> TakesValidator[T]:
        """Registers a function that finds what is wrong with a change, on CREATE and UPDATE unless told otherwise.

        It returns or yields ``FieldProblem``, ``Warn`` and ``Denied``, or nothing. Updates that leave all but the
        metadata and status of a dying object as it was are let through unheard, unless ``hears_cleanup``.
        """

        def register(function: Any) -> Any:
            rules = self._rules("validating", resources, options, self._validating, validate)
            rules.append(validating_rule(resources, function, hears_cleanup=hears_cleanup))
            return function

        return register

    def reviewing(
        self, kind: WebhookKind, *resources: Resource[Any], **options: Unpack[Options]
    ) -> Callable[[Review], Review]:
        """Registers a function that judges the bare request and is alone on its path."""

        def register(function: Review) -> Review:
            webhook = _webhook(kind, resources, function, options)
            if webhook.path in self._webhooks:
                raise ValueError(f"{webhook.path} is taken: a function that reviews bare requests needs its own path")
            self._webhooks[webhook.path] = webhook
            return function

        return register

    def converting(self, source: Resource[Any], *, to: Resource[Any]) -> Callable[[Converter], Converter]:
        """Registers a function that turns plain values of one version into another's."""

        def register(function: Converter) -> Converter:
            self.conversions.add(source, to, function)
            return function

        return register

    def _rules(
        self,
        kind: WebhookKind,
        resources: Sequence[Resource[Any]],
        options: Options,
        known: dict[str, list[R]],
        run: Callable[[Sequence[R], AdmissionRequest], Awaitable[Verdict]],
    ) -> list[R]:
        """The rules that a new one joins: those of a webhook that is there on equal terms, or of a new one."""
        rules: list[R] = []
        wanted = _webhook(kind, resources, partial(run, rules), options)
        present = self._webhooks.setdefault(wanted.path, wanted)
        if present is wanted:
            known[wanted.path] = rules
        elif present != wanted or wanted.path not in known:
            raise ValueError(
                f"{wanted.path} is offered already with other options or for other resources: "
                "rules that share a path must agree on them, or give a path of their own"
            )
        return known[wanted.path]


def default_path(kind: WebhookKind, resource: Resource[Any]) -> str:
    """Where controller-runtime would serve it: ``/mutate-apps-v1-deployment``, and ``/mutate--v1-pod`` for no group."""
    verb = "mutate" if kind == "mutating" else "validate"
    return f"/{verb}-{resource.group.replace('.', '-')}-{resource.version}-{resource.kind.lower()}"


def _webhook(kind: WebhookKind, resources: Sequence[Resource[Any]], review: Review, options: Options) -> Webhook:
    if not resources:
        raise ValueError("a webhook needs at least one resource to review")
    if len(resources) > 1 and not options.get("path"):
        raise ValueError('a webhook for several resources needs a path of its own: path="/…"')
    first = resources[0]
    path = options.get("path") or default_path(kind, first)
    if not path.startswith("/"):
        raise ValueError(f"a webhook's path begins with a slash, unlike {path!r}")
    verb = "mutate" if kind == "mutating" else "validate"
    name = options.get("name") or f"{verb}.{first.kind.lower()}.{first.version}.{first.group or 'core'}"
    part = f"/{options['subresource']}" if options.get("subresource") else ""
    rules = tuple(
        Rule(
            group=resource.group,
            version=resource.version,
            resource=resource.plural + part,
            operations=tuple(options.get("operations", ("CREATE", "UPDATE"))),
            scope=options.get("scope", "*"),
        )
        for resource in resources
    )
    return Webhook(
        kind=kind,
        path=path,
        name=name,
        rules=rules,
        review=review,
        failure_policy=options.get("failure_policy", "Fail"),
        match_policy=options.get("match_policy", "Equivalent"),
        side_effects=options.get("side_effects", "None"),
        timeout_seconds=options.get("timeout_seconds", 10),
        namespace_selector=options.get("namespace_selector"),
        object_selector=options.get("object_selector"),
        match_conditions=tuple(options.get("match_conditions", ())),
        reinvocation_policy=options.get("reinvocation_policy", "Never"),
    )
