"""The backends that there are, and which of them a pod's scheduler means.

Our own come first. Third parties ship theirs as entry points ``shoal.gangs.backends``: the class of a backend, or a
backend. One that does not load is told of and left out; it stops nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, Final

import structlog

from shoal.api.grove import names
from shoal.api.meta import Document, Resource
from shoal.api.scheduler_grove_io import PodGang
from shoal.gangs.backends.backend import Backend
from shoal.gangs.backends.default import DefaultScheduler
from shoal.gangs.backends.kai import Kai
from shoal.gangs.backends.koordinator import SCHEDULER as KOORDINATOR
from shoal.gangs.backends.koordinator import Koordinator
from shoal.gangs.backends.outcome import Outcomes
from shoal.gangs.backends.volcano import Volcano
from shoal.kube import Informer, Manager

log = structlog.get_logger("shoal.gangs.backends")

ENTRY_POINTS: Final = "shoal.gangs.backends"
FALLBACK: Final = "kai"
"""The backend of pods whose scheduler nobody knows."""


def built_in(profiles: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> tuple[Backend, ...]:
    """The backends that come with Shoal, as the configs of schedulers' profiles say."""
    return (Kai(), DefaultScheduler(), Koordinator.configured(profiles.get(KOORDINATOR, {})), Volcano())


class Backends:
    """All backends by name. ``served`` tells at any time which of their kinds the cluster serves.

    Of two that have a name, or mean a scheduler, the first is used.
    """

    def __init__(
        self, backends: Iterable[Backend], *, served: Callable[[], frozenset[Resource[Document]]] = frozenset
    ) -> None:
        self._backends: dict[str, Backend] = {}
        self._names: dict[str, str] = {}
        for backend in backends:
            self._backends.setdefault(backend.name, backend)
        for backend in self._backends.values():
            for name in backend.scheduler_names:
                self._names.setdefault(name, backend.name)
        self.served = served
        self.outcomes = Outcomes()

    @classmethod
    def load(
        cls, manager: Manager | None = None, *, profiles: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    ) -> Backends:
        """Our own backends and those of third parties; with a manager, ``served`` goes by what its cache sees.

        ``profiles`` are the configs that the operator's configuration has for schedulers, by their names.
        """
        found = cls([*built_in(profiles), *third_party()])
        if manager is not None:
            found.served = _Serving(manager, found)
        return found

    def __iter__(self) -> Iterator[Backend]:
        return iter(self._backends.values())

    def label(self, scheduler_name: str) -> str:
        """The backend for pods of a scheduler: the default one where none is named, KAI for names nobody knows."""
        return self._names.get(scheduler_name, FALLBACK)

    def named(self, name: str) -> Backend:
        """The backend that a label of ours names."""
        return self._backends[name]

    def of(self, gang: PodGang) -> Backend | None:
        """The backend that a gang's label names, if it is here."""
        return self._backends.get(gang.metadata.labels.get(names.SCHEDULER_BACKEND_LABEL, ""))


def third_party() -> list[Backend]:
    """What entry points bring, by name; those that are no use are told of and left out."""
    found: dict[str, Backend] = {}
    taken = {backend.name for backend in built_in()}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: (entry.name, entry.value)):
        backend = _loaded(entry)
        if backend is None:
            continue
        if backend.name in taken or backend.name in found:
            whose = "comes with Shoal" if backend.name in taken else "was loaded before"
            log.warning("backend left out: its name is taken", backend=backend.name, entry_point=entry.value, by=whose)
            continue
        found[backend.name] = backend
    return list(found.values())


def informer_of(manager: Manager, backend: Backend, kind: Resource[Document]) -> Informer[Document]:
    """What was written for gangs in a kind by a backend; what others have in that kind is not held."""
    return manager.cache.informer(kind, label_selector=selector_of(backend))


def selector_of(backend: Backend) -> str:
    """The label that everything carries that a backend writes."""
    return f"{names.SCHEDULER_BACKEND_LABEL}={backend.name}"


def _loaded(entry: EntryPoint) -> Backend | None:
    try:
        loaded = entry.load()
        backend = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:
        # Somebody else's code, which may fail in any way.
        log.error("backend left out: it does not load", entry_point=entry.value, name=entry.name, error=repr(error))
        return None
    if not isinstance(backend, Backend):
        missing = sorted(member for member in _members() if not hasattr(backend, member))
        log.error("backend left out: it is none", entry_point=entry.value, name=entry.name, missing=missing)
        return None
    return backend


def _members() -> frozenset[str]:
    return frozenset(member for member in vars(Backend) if not member.startswith("_"))


class _Serving:
    """Which kinds of all backends are served, by a manager's informers; they begin when first asked for."""

    def __init__(self, manager: Manager, backends: Backends) -> None:
        self._manager = manager
        self._backends = backends
        self._informers: dict[Resource[Document], Informer[Document]] = {}

    def __call__(self) -> frozenset[Resource[Document]]:
        if not self._informers:
            self._informers = {
                kind: informer_of(self._manager, backend, kind) for backend in self._backends for kind in backend.kinds
            }
        return frozenset(kind for kind, informer in self._informers.items() if informer.is_served)
