"""What can be done to a pod beside writing it: binding it to a node, and evicting it."""

from __future__ import annotations

import dataclasses

from shoal.cluster.apiserver.apply import record_update
from shoal.cluster.apiserver.builtin.workloads.binding import bind
from shoal.cluster.apiserver.builtin.workloads.eviction import Eviction, evicted, eviction_blocked, still_processed
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.kinds.tables import type_schema
from shoal.cluster.apiserver.refusals import Refused, bad_request, conflict, not_found
from shoal.cluster.apiserver.state import encoder
from shoal.cluster.apiserver.storage import Changed, Record
from shoal.cluster.apiserver.verbs.asked import Asked, Outcome, write_options
from shoal.cluster.apiserver.verbs.bodies import read_other
from shoal.cluster.apiserver.verbs.deleting import DeleteOptions, check_preconditions, delete
from shoal.cluster.apiserver.verbs.writing import Workshop, attributes, live_object
from shoal.kube.admission.wire import Operation

PODS = "pods"

_BINDING = "core.v1.Binding"
_EVICTION = "policy.v1.Eviction"
_BUDGETS = "poddisruptionbudgets.policy"
_ATTEMPTS = 5


class PodSubresources:
    """Binds and evicts pods."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop

    async def bind(self, asked: Asked) -> Outcome:
        """Assigns a pod to a node; also for the old ``bindings`` resource, which names the pod in the body alone."""
        asked.options = write_options(asked.call, "CreateOptions")
        binding = await read_other(asked, type_schema(_BINDING), "v1", "Binding")
        pods = self._workshop.state.registry.find("", "v1", PODS)
        assert pods is not None
        stated = binding.get("metadata", {}).get("name", "")
        if asked.name and stated != asked.name:
            raise bad_request("name in URL does not match name in Binding object")
        name = asked.name or stated
        asked = dataclasses.replace(asked, kind=pods, name=name, subresource="binding")
        request = attributes(asked, Operation.CREATE, new=binding, old=None)
        await self._workshop.admission.mutate(request)
        await self._workshop.admission.validate(request)
        for _ in range(_ATTEMPTS):
            previous = self._found(asked)
            bound = bind(live_object(asked.kind, self._workshop.state, previous), binding)
            if asked.options.dry_run:
                break
            try:
                await self._put(asked, previous, bound)
            except Changed:
                continue
            break
        else:
            raise conflict(PODS, "", asked.name)
        return Outcome(kind=asked.kind, object=_success(), status=201)

    async def evict(self, asked: Asked) -> Outcome:
        """Deletes a pod where its disruption budgets allow it."""
        asked.options = write_options(asked.call, "CreateOptions")
        eviction = await read_other(asked, type_schema(_EVICTION), "policy/v1", "Eviction")
        name = eviction.get("metadata", {}).get("name", "")
        if name and name != asked.name:
            raise bad_request("name in URL does not match name in Eviction object")
        given = eviction.get("deleteOptions") or {}
        options = DeleteOptions.of_value({**given})
        dry_run = asked.options.dry_run or options.dry_run
        asked.options.dry_run = dry_run
        request = attributes(asked, Operation.CREATE, new=eviction, old=None)
        await self._workshop.admission.mutate(request)
        await self._workshop.admission.validate(request)
        is_counted = False
        for _ in range(_ATTEMPTS):
            previous = self._found(asked)
            pod = live_object(asked.kind, self._workshop.state, previous)
            check_preconditions(asked, options, pod["metadata"])
            # A disruption is counted once, however often the pod changes before it is gone.
            verdict = Eviction() if is_counted else self._verdict(asked, pod)
            if asked.options.dry_run:
                break
            try:
                if verdict.budget is not None:
                    await self._count(asked, verdict.budget)
                    is_counted = True
                await self._evict(asked, options, previous, pod, verdict)
            except Changed:
                continue
            break
        else:
            raise still_processed("")
        return Outcome(kind=asked.kind, object=_success(), status=201)

    def _verdict(self, asked: Asked, pod: Object) -> Eviction:
        verdict = eviction_blocked(pod, self._workshop.state.list(_BUDGETS, asked.namespace))
        if isinstance(verdict, Refused):
            raise verdict
        return verdict

    async def _evict(
        self, asked: Asked, options: DeleteOptions, previous: Record, pod: Object, verdict: Eviction
    ) -> None:
        written = await self._put(asked, previous, evicted(pod))
        if verdict.needs_same_version or options.resource_version:
            options = dataclasses.replace(options, resource_version=str(written.revision))
        await delete(self._workshop, dataclasses.replace(asked, subresource=""), options)

    async def _count(self, asked: Asked, budget: Object) -> None:
        """Writes the budget with the disruption counted, unless another was counted meanwhile."""
        seen = budget["metadata"]["resourceVersion"]
        kind = self._workshop.state.registry.stored(_BUDGETS)
        assert kind is not None

        def change(current: Object) -> Object:
            if current["metadata"]["resourceVersion"] != seen:
                raise Changed(None)
            new = {**current, "metadata": dict(current["metadata"]), "status": budget["status"]}
            record_update(
                kind.schema,
                current,
                new,
                manager="kube-apiserver",
                subresource="status",
                now=self._workshop.now(),
                resets=kind.rules.resets.get("status", ()),
            )
            return new

        await self._workshop.state.update(_BUDGETS, asked.namespace, budget["metadata"]["name"], change)

    async def _put(self, asked: Asked, previous: Record, pod: Object) -> Record:
        state = self._workshop.state
        encode = encoder(state.stored_kind(asked.kind), pod)
        return await state.store.put(asked.kind.storage, asked.namespace, asked.name, encode, previous=previous)

    def _found(self, asked: Asked) -> Record:
        record = self._workshop.state.store.latest(PODS, asked.namespace, asked.name)
        if record is None:
            raise not_found(PODS, "", asked.name)
        return record


def _success() -> Object:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
