"""The kinds that definitions in the cluster (Kartas) describe, kept up to date.

A definition that cannot be used is told once, as an event on it, and counts for nothing: its kind is grouped as if it
were not there. So it is with two for the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from shoal.api.meta import DecodeError
from shoal.api.run_ai import KARTAS, Karta
from shoal.kube import About, Change, Informer, Manager
from shoal.scheduler.grouper.definitions import (
    Definition,
    InvalidDefinition,
    KindKey,
    definition_of,
    described_kind,
)
from shoal.scheduler.grouper.kinds import KNOWN_KINDS
from shoal.scheduler.grouper.kinds.registry import RULES
from shoal.scheduler.grouper.problems import REASON

log = structlog.get_logger("shoal.scheduler.grouper")


class DescribedKinds:
    """The definitions of the cluster; ``on_change`` is called when others count."""

    def __init__(self, manager: Manager, on_change: Callable[[], None]) -> None:
        self._manager = manager
        self._on_change = on_change
        self._valid: dict[str, tuple[Karta, Definition]] = {}
        self._told: dict[str, str] = {}
        self._by_kind: Mapping[KindKey, Definition] = {}
        kartas: Informer[Karta] = manager.cache.informer(KARTAS)
        kartas.subscribe(self._changed)
        kartas.on_undecodable(self._undecodable)

    @property
    def now(self) -> Mapping[KindKey, Definition]:
        """What counts now, by API version and kind."""
        return self._by_kind

    def _changed(self, change: Change[Karta]) -> None:
        before, after = change.before, change.after
        if before is not None and after is not None and _facts(before) == _facts(after):
            return
        name = change.latest.metadata.name
        self._valid.pop(name, None)
        problem = ""
        if after is not None and _is_of_use(after):
            try:
                self._valid[name] = (after, definition_of(after))
            except InvalidDefinition as error:
                problem = str(error)
        if name not in self._valid:
            self._say(name, About.of(KARTAS, change.latest), problem)
        self._settle()

    def _settle(self) -> None:
        """Takes over what counts, and says which definitions stand in each other's way."""
        by_kind: dict[KindKey, list[tuple[Karta, Definition]]] = {}
        for karta, definition in self._valid.values():
            by_kind.setdefault(definition.kind, []).append((karta, definition))
        for found in by_kind.values():
            names = ", ".join(sorted(definition.name for _, definition in found))
            problem = f"{names} are about the same kind, so that none of them counts: leave one"
            for karta, definition in found:
                self._say(definition.name, About.of(KARTAS, karta), problem if len(found) > 1 else "")
        counting = {kind: found[0][1] for kind, found in by_kind.items() if len(found) == 1}
        if counting != self._by_kind:
            self._by_kind = counting
            self._on_change()

    def _undecodable(self, error: DecodeError) -> None:
        self._say(error.name, About.undecodable(error), str(error))

    def _say(self, name: str, about: About, problem: str) -> None:
        """Tells of a problem, unless it was told last; an empty one is none."""
        if self._told.get(name, "") == problem:
            return
        if not problem:
            del self._told[name]
            return
        self._told[name] = problem
        log.warning("a definition does not count", karta=name, problem=problem)
        self._manager.events.warning(about, REASON, problem)


def _facts(karta: Karta) -> tuple[object, ...]:
    metadata = karta.metadata
    return metadata.uid, metadata.labels, metadata.is_deleting, karta.spec


def _is_of_use(karta: Karta) -> bool:
    """Whether a definition says how to group a kind that no rule knows."""
    kind = described_kind(karta)
    return kind is not None and (kind.group, kind.kind) not in {*KNOWN_KINDS, *RULES}
