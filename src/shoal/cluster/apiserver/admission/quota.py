"""ResourceQuota: what a namespace may use in all.

A request that is let through is charged: ``status.used`` of every quota that is about the object grows, each by one
atomic update that checks again, so two requests at once never share the last of anything. Where a later quota refuses,
or the write itself fails (see ``refund``), what was charged is given back. What is freed by deletions is found by
whoever keeps the status of quotas, not here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from shoal.api.meta import ZERO_QUANTITY
from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.pod_resources import Amounts, amounts
from shoal.cluster.apiserver.admission.quota_usage import Measure, matches, measure_of
from shoal.cluster.apiserver.admission.refusing import refuse
from shoal.cluster.apiserver.admission.scope import WRITE, Scope
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.reader import Writer

QUOTAS = "resourcequotas"

_FREE = frozenset(
    {
        "bindings",
        "componentstatuses",
        "events",
        "events.events.k8s.io",
        "tokenreviews.authentication.k8s.io",
        "selfsubjectreviews.authentication.k8s.io",
        "subjectaccessreviews.authorization.k8s.io",
        "selfsubjectaccessreviews.authorization.k8s.io",
        "localsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectrulesreviews.authorization.k8s.io",
        "namespaces",
    }
)


class ResourceQuota:
    """Charges requests to the quotas of their namespace, and refuses those that are too much."""

    mutates = None
    validates = Scope(operations=WRITE, subresources=None)

    def __init__(self, state: Writer, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._state = state
        self._now = now

    async def mutate(self, request: Attributes) -> None:
        """Nothing to complete."""

    async def validate(self, request: Attributes) -> None:
        """Refuses what is too much, and charges the rest; a dry run is not charged."""
        if not request.namespace or request.kind.storage in _FREE or request.object is None:
            return
        measure = measure_of(request.kind.storage)
        if not measure.concerns(request):
            return
        quotas = list(self._state.list(QUOTAS, request.namespace))
        if not quotas:
            return
        charges = self._charges(request, measure, quotas)
        # All are asked before one is charged, so that a refusal rarely leaves anything to give back.
        for quota, change in charges:
            _charged(request, quota, change)
        if not request.dry_run:
            await self._charge(request, charges)

    async def refund(self, request: Attributes) -> None:
        """Gives back what the request was charged: it was let through, and yet did not come about."""
        charged, request.charges = request.charges, []
        for name, change in charged:
            await self._give_back(request.namespace, name, change)

    def _charges(self, request: Attributes, measure: Measure, quotas: list[Object]) -> list[tuple[Object, Amounts]]:
        item = request.object or {}
        about = []
        for quota in quotas:
            if not matches(measure, quota, item):
                continue
            name, status = quota["metadata"]["name"], quota["status"]
            limited = measure.names(status["hard"])
            if problem := measure.problem(limited, item):
                raise refuse(request, f"failed quota: {name}: {problem}")
            used = status.get("used") or {}
            if any(each not in used for each in limited):
                raise refuse(request, f"status unknown for quota: {name}, resources: {','.join(limited)}")
            about.append(quota)
        if not about:
            return []
        now = self._now()
        usage = measure.usage(item, now)
        if negative := sorted(name for name, amount in usage.items() if amount.nano < 0):
            raise refuse(request, f"quota usage is negative for resource(s): {','.join(negative)}")
        before: Amounts | None = None
        if request.old is not None and (request.old.get("metadata") or {}).get("resourceVersion"):
            before = measure.usage(request.old, now)
        charges = []
        for quota in about:
            change = usage
            if before is not None and matches(measure, quota, request.old or {}):
                change = {name: amount - before.get(name, ZERO_QUANTITY) for name, amount in usage.items()}
            change = {name: amount for name, amount in change.items() if amount.nano > 0}
            if change:
                charges.append((quota, change))
        return charges

    async def _charge(self, request: Attributes, charges: list[tuple[Object, Amounts]]) -> None:
        for quota, change in charges:
            name = quota["metadata"]["name"]
            charged = partial(_charged, request, change=change)
            try:
                # One that is gone meanwhile limits nothing any more.
                written = await self._state.update(QUOTAS, request.namespace, name, charged)
            except BaseException as problem:
                if isinstance(problem, asyncio.CancelledError):
                    # The client left when the charge was staged already: it is made, and given back with the others.
                    request.charges.append((name, change))
                await self.refund(request)
                raise
            if written is not None:
                request.charges.append((name, change))

    async def _give_back(self, namespace: str, name: str, change: Amounts) -> None:
        def returned(quota: Object) -> Object:
            used = amounts(quota["status"].get("used"))
            hard = quota["status"].get("hard") or {}
            for resource, amount in change.items():
                if resource in used and resource in hard:
                    used[resource] = max(used[resource] - amount, ZERO_QUANTITY)
            quota["status"]["used"] = {resource: str(amount) for resource, amount in used.items()}
            return quota

        await self._state.update(QUOTAS, namespace, name, returned)


def _charged(request: Attributes, quota: Object, change: Amounts) -> Object:
    """The quota after a charge; the one that is given stays as it is."""
    status = quota.get("status") or {}
    hard, used = amounts(status.get("hard")), amounts(status.get("used"))
    asked = {name: amount for name, amount in change.items() if name in hard}
    after = used | {name: used[name] + amount if name in used else amount for name, amount in asked.items()}
    exceeded = sorted(name for name in asked if after[name] > hard[name])
    if exceeded and request.subresource != "status":
        name = quota["metadata"]["name"]
        raise refuse(
            request,
            f"exceeded quota: {name}, requested: {_shown(asked, exceeded)}, "
            f"used: {_shown(used, exceeded)}, limited: {_shown(hard, exceeded)}",
        )
    return quota | {"status": status | {"used": {name: str(amount) for name, amount in after.items()}}}


def _shown(held: Amounts, names: list[str]) -> str:
    return ",".join(f"{name}={held[name]}" for name in names if name in held)
