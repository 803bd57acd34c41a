"""All of admission in Kubernetes' order: the plugins that complete, then those that refuse, quotas last.

Which plugins a sort of request concerns is looked up in a table that fills itself, so that a request for a ConfigMap
does not walk past a dozen plugins that are about pods.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol, TypeAlias

from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.limit_ranger import LimitRanger
from shoal.cluster.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from shoal.cluster.apiserver.admission.node_conditions import DefaultTolerationSeconds, TaintNodesByCondition
from shoal.cluster.apiserver.admission.pod_security import NEWEST_MINOR, PodSecurity, PodSecurityMetrics
from shoal.cluster.apiserver.admission.priority import Priority
from shoal.cluster.apiserver.admission.quota import ResourceQuota
from shoal.cluster.apiserver.admission.runtime_class import RuntimeClasses
from shoal.cluster.apiserver.admission.scope import Scope
from shoal.cluster.apiserver.admission.service_account import ServiceAccounts
from shoal.cluster.apiserver.admission.topology_labels import PodTopologyLabels
from shoal.cluster.apiserver.admission.volumes import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)
from shoal.cluster.apiserver.admission.webhooks import (
    Backends,
    Caller,
    ConditionCompiler,
    Equivalents,
    MutatingWebhooks,
    Reinvocation,
    ValidatingWebhooks,
)
from shoal.cluster.apiserver.admission.webhooks.dispatch import Decoder
from shoal.cluster.apiserver.admission.webhooks.matching import Webhooks
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.reader import Writer
from shoal.kube.admission.wire import Operation

Step: TypeAlias = Callable[[Attributes], Awaitable[None]]

_MOST_SORTS = 500
"""How many sorts of requests are remembered: custom kinds come and go."""


class BuiltIn(Protocol):
    """A plugin, and which requests it has anything to do with."""

    @property
    def mutates(self) -> Scope | None:
        """What it completes."""
        ...

    @property
    def validates(self) -> Scope | None:
        """What it may refuse."""
        ...

    async def mutate(self, request: Attributes) -> None:
        """Completes the new object."""
        ...

    async def validate(self, request: Attributes) -> None:
        """Refuses what may not be, seen after all mutations."""
        ...


class Chain:
    """The whole of admission.

    ``backends`` leads to what is behind a webhook's Service, ``compile_condition`` makes conditions of CEL
    expressions, ``equivalents`` gives the other versions of a kind, and ``decode`` brings what a webhook patched into
    normal form. What is not given is done without.
    """

    def __init__(
        self,
        state: Writer,
        *,
        backends: Backends | None = None,
        compile_condition: ConditionCompiler | None = None,
        equivalents: Equivalents = lambda _kind: (),
        decode: Decoder | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        pod_security_metrics: PodSecurityMetrics | None = None,
    ) -> None:
        self._quota = ResourceQuota(state, now=now)
        self._namespaces = NamespaceLifecycle(state)
        self._plugins: Sequence[BuiltIn] = (
            self._namespaces,
            LimitRanger(state),
            ServiceAccounts(state),
            TaintNodesByCondition(),
            PodSecurity(state, pod_security_metrics or PodSecurityMetrics(minor=NEWEST_MINOR)),
            Priority(state),
            DefaultTolerationSeconds(),
            DefaultStorageClass(state),
            StorageObjectInUseProtection(),
            PersistentVolumeClaimResize(state),
            RuntimeClasses(state),
            PodTopologyLabels(state),
        )
        self._caller = Caller(backends)

        def webhooks(which: str) -> Webhooks:
            storage = f"{which}webhookconfigurations.admissionregistration.k8s.io"
            return Webhooks(state, storage, compiler=compile_condition, equivalents=equivalents)

        self._mutating = MutatingWebhooks(webhooks("mutating"), self._caller, decode or _with_defaults)
        self._validating = ValidatingWebhooks(webhooks("validating"), self._caller)
        self._mutations: dict[tuple[str, str, Operation], list[Step]] = {}
        self._validations: dict[tuple[str, str, Operation], list[Step]] = {}

    async def mutate(self, request: Attributes) -> None:
        """Completes or replaces the new object; raises Refused."""
        key = (request.kind.storage, request.subresource, request.operation)
        steps = self._mutations.get(key)
        if steps is None:
            if len(self._mutations) >= _MOST_SORTS:
                del self._mutations[next(iter(self._mutations))]
            steps = self._mutations[key] = [
                each.mutate for each in self._plugins if each.mutates is not None and each.mutates.covers(*key)
            ]
        for step in steps:
            await step(request)
        called = self._mutating.with_rules_for(request)
        if not called:
            return
        rounds = Reinvocation()
        if await self._mutating.ask(request, called, rounds):
            # What webhooks brought in must be completed as well, and those that asked for it see what became of it.
            for step in steps:
                await step(request)
            await self._mutating.ask_again(request, called, rounds)

    async def validate(self, request: Attributes) -> None:
        """Refuses what may not be, and charges the rest to quotas; raises Refused."""
        key = (request.kind.storage, request.subresource, request.operation)
        steps = self._validations.get(key)
        if steps is None:
            plugins = [each for each in self._plugins if each.validates is not None and each.validates.covers(*key)]
            if len(self._validations) >= _MOST_SORTS:
                del self._validations[next(iter(self._validations))]
            last = [self._quota.validate] if self._quota.validates.covers(*key) else []
            steps = self._validations[key] = [*(each.validate for each in plugins), self._validating.validate, *last]
        for step in steps:
            await step(request)

    async def check_namespace(self, request: Attributes) -> None:
        """Refuses what would come into a namespace that has gone, or begun to, while webhooks were asked."""
        await self._namespaces.mutate(request)

    async def refund(self, request: Attributes) -> None:
        """Gives back what a request was charged that was let through and then failed to be written."""
        if request.charges:
            await self._quota.refund(request)

    async def close(self) -> None:
        """Closes the connections to webhooks."""
        await self._caller.close()


def _with_defaults(kind: Kind, value: Object) -> Object:
    kind.rules.defaults(value)
    return value
