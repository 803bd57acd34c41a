"""Webhook configurations, compiled: the rules, selectors and conditions that say what a webhook is asked about.

Compiling is done again only when a configuration's resourceVersion changes. Which webhooks have a rule for a kind, an
operation and a subresource is remembered, so a request that concerns none costs one look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import msgspec

from shoal.api.meta import SELECT_EVERYTHING, InvalidSelector, LabelSelector, Selector
from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.refusing import refuse, together
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.reader import Reader
from shoal.cluster.apiserver.refusals import internal_error, not_found
from shoal.kube.admission.wire import Operation

Condition: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""A compiled expression, asked with its variables; raises where it cannot be evaluated."""

Equivalents: TypeAlias = Callable[[Kind], Sequence[Kind]]
"""The other versions of a kind."""


class ConditionCompiler(Protocol):
    """Makes a condition of a CEL expression over ``object``, ``oldObject`` and ``request``."""

    def __call__(self, expression: str) -> Condition:
        """The condition; raises where the expression cannot be compiled."""
        ...


_EXEMPT = frozenset(
    f"{name}.admissionregistration.k8s.io"
    for name in (
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
)
"""What webhooks are never asked about, so that a broken one can always be removed."""

_REMEMBERED = 2048


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule: the requests that a webhook wants to see."""

    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    operations: frozenset[str]
    scope: str

    def covers(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        """Whether a request of this sort is meant."""
        if self.scope != "*" and (self.scope == "Namespaced") != kind.namespaced:
            return False
        return (
            _is_among(operation.value, self.operations)
            and _is_among(kind.group, self.groups)
            and _is_among(kind.version, self.versions)
            and any(resource in ("*", kind.resource) and sub in ("*", subresource) for resource, sub in self.resources)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Webhook:
    """One webhook of a configuration."""

    name: str
    client: Mapping[str, Any]
    rules: tuple[Rule, ...]
    namespaces: Selector
    objects: Selector
    conditions: tuple[tuple[str, Condition], ...]
    fails_open: bool
    timeout: int
    has_side_effects: bool
    takes_equivalents: bool
    is_reinvoked: bool
    review_versions: tuple[str, ...]

    def version_wanted(
        self, kind: Kind, subresource: str, operation: Operation, equivalents: Equivalents
    ) -> Kind | None:
        """The version in which the webhook wants to see an object of this kind, or None where it does not want to."""
        if any(rule.covers(kind, subresource, operation) for rule in self.rules):
            return kind
        if self.takes_equivalents:
            for rule in self.rules:
                for other in equivalents(kind):
                    if other is not kind and rule.covers(other, subresource, operation):
                        return other
        return None


Called: TypeAlias = tuple[Webhook, Kind]


class Webhooks:
    """All webhooks of the mutating, or of the validating configurations, in their order."""

    def __init__(
        self, state: Reader, storage: str, *, compiler: ConditionCompiler | None, equivalents: Equivalents
    ) -> None:
        self._state = state
        self._storage = storage
        self._compiler = compiler
        self._equivalents = equivalents
        self._changed = -1
        self._all: list[Webhook] = []
        self._with_rules: dict[tuple[Kind, str, Operation], list[Called]] = {}

    def with_rules_for(self, request: Attributes) -> list[Called]:
        """The webhooks that have a rule for such a request, each with the version that it wants to see."""
        changed = self._state.changed(self._storage)
        if changed != self._changed:
            self._compile(self._state.list(self._storage))
            self._changed = changed
        if not self._all or request.kind.storage in _EXEMPT:
            return []
        key = (request.kind, request.subresource, request.operation)
        found = self._with_rules.get(key)
        if found is None:
            if len(self._with_rules) >= _REMEMBERED:
                self._with_rules.clear()
            wanted = ((each, each.version_wanted(*key, self._equivalents)) for each in self._all)
            found = self._with_rules[key] = [(each, kind) for each, kind in wanted if kind is not None]
        return found

    def is_selected(self, webhook: Webhook, request: Attributes) -> bool:
        """Whether the selectors of a webhook select the request."""
        if not webhook.namespaces.is_everything and not self._is_namespace_selected(webhook.namespaces, request):
            return False
        if webhook.objects.is_everything:
            return True
        return any(
            each is not None and webhook.objects.matches(_labels(each)) for each in (request.object, request.old)
        )

    def _is_namespace_selected(self, selector: Selector, request: Attributes) -> bool:
        if request.kind.storage == "namespaces":
            if request.operation in (Operation.CREATE, Operation.UPDATE) and not request.subresource:
                return selector.matches(_labels(request.object or {}))
            name = request.name
        elif not request.namespace:
            return True
        else:
            name = request.namespace
        namespace = self._state.get("namespaces", "", name)
        if namespace is None:
            raise not_found("namespaces", "", name)
        return selector.matches(_labels(namespace))

    def _compile(self, configurations: Iterable[Object]) -> None:
        self._with_rules.clear()
        ordered = sorted(configurations, key=lambda each: str(each["metadata"]["name"]))
        self._all = [_compiled(webhook, self._compiler) for each in ordered for webhook in each.get("webhooks") or ()]


def conditions_hold(webhook: Webhook, request: Attributes, variables: Callable[[], Mapping[str, Any]]) -> bool:
    """Whether all conditions are met; one that cannot be evaluated refuses the request, or skips a lenient webhook."""
    if not webhook.conditions:
        return True
    known = variables()
    problems = []
    for expression, condition in webhook.conditions:
        try:
            if condition(known) is False:
                return False
        except Exception as error:
            problems.append(f"expression '{expression}' resulted in error: {error}")
    if problems and not webhook.fails_open:
        raise refuse(request, together(problems))
    return not problems


def _compiled(stated: Mapping[str, Any], compiler: ConditionCompiler | None) -> Webhook:
    return Webhook(
        name=stated["name"],
        client=stated.get("clientConfig") or {},
        rules=tuple(_rule(each) for each in stated.get("rules") or ()),
        namespaces=_selector(stated.get("namespaceSelector")),
        objects=_selector(stated.get("objectSelector")),
        conditions=tuple(
            (each["expression"], _condition(each["expression"], compiler))
            for each in stated.get("matchConditions") or ()
        ),
        fails_open=stated.get("failurePolicy") == "Ignore",
        timeout=stated.get("timeoutSeconds") or 10,
        has_side_effects=stated.get("sideEffects") not in ("None", "NoneOnDryRun"),
        takes_equivalents=stated.get("matchPolicy", "Equivalent") == "Equivalent",
        is_reinvoked=stated.get("reinvocationPolicy") == "IfNeeded",
        review_versions=tuple(stated.get("admissionReviewVersions") or ()),
    )


def _rule(stated: Mapping[str, Any]) -> Rule:
    pairs = (each.partition("/") for each in stated.get("resources") or ())
    return Rule(
        groups=frozenset(stated.get("apiGroups") or ()),
        versions=frozenset(stated.get("apiVersions") or ()),
        resources=tuple((resource, sub) for resource, _, sub in pairs),
        operations=frozenset(stated.get("operations") or ()),
        scope=stated.get("scope") or "*",
    )


def _selector(stated: Mapping[str, Any] | None) -> Selector:
    if not stated:
        return SELECT_EVERYTHING
    try:
        return Selector.of(msgspec.convert(stated, LabelSelector))
    except (InvalidSelector, msgspec.ValidationError) as error:
        raise internal_error(str(error)) from error


def _condition(expression: str, compiler: ConditionCompiler | None) -> Condition:
    problem = "expressions cannot be evaluated here"
    if compiler is not None:
        try:
            return compiler(expression)
        except Exception as error:
            problem = str(error)

    def failing(_variables: Mapping[str, Any]) -> Any:
        raise ValueError(f"compilation error: {problem}")

    return failing


def _is_among(value: str, known: frozenset[str]) -> bool:
    return value in known or "*" in known


def _labels(of: Object) -> Mapping[str, str]:
    return (of.get("metadata") or {}).get("labels") or {}
