"""The reconcile of a ClusterTopologyBinding: every scheduler that has topologies is told its levels, or compared.

For a scheduler that the binding does not name, its topology is made here, under the binding's name and owned by it; one
whose levels have changed is made anew, since they cannot be changed. A topology of that name that belongs to somebody
else is left alone, as is one that the binding names: both are only compared with.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.grove import TOPOLOGY_BINDINGS, ClusterTopologyBinding
from shoal.api.meta import HasMetadata, PartialObject, is_controlled_by, now, owner_reference
from shoal.gangs.caches import Caches
from shoal.gangs.settings import GangSettings
from shoal.gangs.topologies.drift import Finding, bound_reference, compared, status_of
from shoal.gangs.topologies.kai import KAI
from shoal.gangs.topologies.scheduler import TopologyScheduler
from shoal.kube import About, Controller, Invalid, Key, Manager, NotFound, Watch
from shoal.kube.admission.configuration import CUSTOM_RESOURCE_DEFINITIONS
from shoal.kube.changes import spec_changed
from shoal.kube.store import key_of

SCHEDULERS = (KAI,)
_DEFINITIONS = CUSTOM_RESOURCE_DEFINITIONS.view(PartialObject)


def add_topologies(manager: Manager, caches: Caches, settings: GangSettings) -> None:
    """Adds the controller of ClusterTopologyBindings; where sets may not ask for topologies, nobody is told of any."""
    if not settings.has_topologies:
        return
    bindings = TopologyBindings(manager, caches)
    watches = []
    for scheduler in SCHEDULERS:
        watches += [
            Watch(resource=scheduler.resource, keys=bindings.keys_of_topology),
            # A kind that was not served says by its definition that it is now.
            Watch(resource=_DEFINITIONS, keys=bindings.all_keys, field_selector=_named(scheduler.definition)),
        ]
    manager.add(
        Controller(
            "clustertopologybinding",
            TOPOLOGY_BINDINGS,
            bindings.reconcile,
            watches=watches,
            when=spec_changed,
            workers=1,
        )
    )


class TopologyBindings:
    """Keeps schedulers' own topologies as the bindings say."""

    def __init__(self, manager: Manager, caches: Caches) -> None:
        self._bindings = caches.topologies
        self._topologies = {scheduler.name: manager.cache.informer(scheduler.resource) for scheduler in SCHEDULERS}
        self._definitions = {
            scheduler.name: manager.cache.informer(_DEFINITIONS, field_selector=_named(scheduler.definition))
            for scheduler in SCHEDULERS
        }
        self._events = manager.events
        self._writer = manager.writer("grove-topologies")

    async def reconcile(self, key: Key) -> None:
        """Tells every scheduler the levels of one binding, and its status what came of it."""
        binding = self._bindings.store.get(key)
        if binding is None or binding.metadata.is_deleting:
            return
        findings = [await self._finding(binding, scheduler) for scheduler in SCHEDULERS]
        status = status_of(binding, findings, now())
        if await self._writer.patch_status(TOPOLOGY_BINDINGS, binding, before=binding.status, after=status):
            self._tell(binding, findings)

    def keys_of_topology(self, topology: HasMetadata) -> Iterable[Key]:
        """The bindings that a scheduler's topology concerns: the one of its name, and those that name it."""
        name = topology.metadata.name
        for binding in self._bindings.items():
            entries = binding.spec.scheduler_topology_bindings
            if binding.metadata.name == name or any(entry.topology_reference == name for entry in entries):
                yield key_of(binding)

    def all_keys(self, found: HasMetadata) -> Iterable[Key]:
        """All bindings, whatever changed."""
        return [key_of(binding) for binding in self._bindings.items()]

    async def _finding(self, binding: ClusterTopologyBinding, scheduler: TopologyScheduler) -> Finding:
        topologies = self._topologies[scheduler.name]
        bound = bound_reference(binding, scheduler)
        if bound is not None:
            return compared(binding, scheduler, bound, topologies.get(bound))
        name = binding.metadata.name
        live = topologies.get(name)
        if live is None:
            return await self._made(binding, scheduler)
        if not is_controlled_by(live.metadata, binding.metadata.uid):
            problem = f"{scheduler.resource.kind} {name} exists and belongs to somebody else: delete it, or name it "
            problem += f"in schedulerTopologyBindings for {scheduler.name}"
            generation = live.metadata.generation
            return Finding(scheduler=scheduler, reference=name, problem=problem, generation=generation)
        if live.metadata.is_deleting:
            # Its last event brings us back.
            problem = f"{scheduler.resource.kind} {name} is being deleted"
            return Finding(scheduler=scheduler, reference=name, problem=problem, is_missing=True)
        finding = compared(binding, scheduler, name, live)
        if not finding.problem:
            return finding
        await self._writer.delete(scheduler.resource, live)
        return await self._made(binding, scheduler)

    async def _made(self, binding: ClusterTopologyBinding, scheduler: TopologyScheduler) -> Finding:
        """Makes a scheduler's topology. One that is there after all is a lost race, and tried again."""
        name = binding.metadata.name
        owner = owner_reference(binding, TOPOLOGY_BINDINGS)
        try:
            made = await self._writer.create(scheduler.resource, scheduler.wanted(binding), owner=owner)
        except NotFound:
            if self._definitions[scheduler.name].get(scheduler.definition) is not None:
                raise  # the server has yet to begin serving it
            problem = f"{scheduler.definition} is not served: install {scheduler.name}, or leave it as it is without"
            return Finding(scheduler=scheduler, reference=name, problem=problem, is_missing=True)
        except Invalid as error:
            problem = f"{scheduler.resource.kind} {name} was refused: {error.message}"
            return Finding(scheduler=scheduler, reference=name, problem=problem)
        return compared(binding, scheduler, name, made)

    def _tell(self, binding: ClusterTopologyBinding, findings: Iterable[Finding]) -> None:
        """An event for each scheduler of which the status says something new."""
        about = About.of(TOPOLOGY_BINDINGS, binding)
        known = {
            status.scheduler_name: (status.in_sync, status.message)
            for status in binding.status.scheduler_topology_statuses
        }
        for finding in findings:
            if known.get(finding.scheduler.name) == (not finding.problem, finding.problem):
                continue
            what = f"{finding.scheduler.resource.kind} {finding.reference} of {finding.scheduler.name}"
            if finding.problem:
                self._events.warning(about, "TopologyDriftDetected", finding.problem)
            else:
                self._events.normal(about, "TopologyInSync", f"{what} has the levels of this binding")


def _named(name: str) -> str:
    return f"metadata.name={name}"
