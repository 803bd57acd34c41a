"""What holds for all pods: the priority classes that exist, the defaults by kind that a ConfigMap holds, and the kinds
that definitions describe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import structlog

from shoal.api.core import CONFIG_MAPS
from shoal.api.core.config import ConfigMap
from shoal.api.meta import Document, PartialObject, Resource
from shoal.kube import About, Change, Informer, Manager
from shoal.scheduler.grouper.case import Facts
from shoal.scheduler.grouper.defaults import InvalidDefaults, KindDefaults, parse_defaults
from shoal.scheduler.grouper.described_kinds import DescribedKinds
from shoal.scheduler.grouper.settings import GrouperSettings

PRIORITY_CLASSES: Final = Resource(
    type=PartialObject,
    group="scheduling.k8s.io",
    version="v1",
    kind="PriorityClass",
    plural="priorityclasses",
    namespaced=False,
)

log = structlog.get_logger("shoal.scheduler.grouper")


class Knowledge:
    """The facts that hold for all pods, kept up to date; ``on_change`` is called when they are others.

    Where other kinds are described, pods may belong to other groups: ``on_kinds`` is called.
    """

    def __init__(
        self, manager: Manager, settings: GrouperSettings, on_change: Callable[[], None], on_kinds: Callable[[], None]
    ) -> None:
        self._manager = manager
        self._on_change = on_change
        self._classes: Informer[PartialObject] = manager.cache.informer(PRIORITY_CLASSES)
        self._defaults: Mapping[str, KindDefaults] = {}
        self._settings = settings
        self._classes.subscribe(self._class_changed)
        if settings.defaults_name and settings.defaults_namespace:
            maps: Informer[ConfigMap] = manager.cache.informer(
                CONFIG_MAPS,
                namespace=settings.defaults_namespace,
                field_selector=f"metadata.name={settings.defaults_name}",
            )
            maps.subscribe(self._defaults_changed)
        self._described = DescribedKinds(manager, on_kinds) if settings.reads_definitions else None

    def facts(self) -> Facts:
        """What is known now."""
        names = frozenset(found.metadata.name for found in self._classes.items())
        definitions = self._described.now if self._described else {}
        return Facts(settings=self._settings, priority_classes=names, defaults=self._defaults, definitions=definitions)

    def describes(self, resource: Resource[Document]) -> bool:
        """Whether a definition says how the workloads of a kind are grouped."""
        return self._described is not None and (resource.api_version, resource.kind) in self._described.now

    def _class_changed(self, change: Change[PartialObject]) -> None:
        if change.before is None or change.after is None:
            self._on_change()

    def _defaults_changed(self, change: Change[ConfigMap]) -> None:
        """Takes over what a ConfigMap says; one that cannot be read is told, and says nothing."""
        before, self._defaults = self._defaults, {}
        if change.after is not None:
            try:
                self._defaults = parse_defaults(change.after.data)
            except InvalidDefaults as error:
                log.warning("default priorities are not known", problem=str(error))
                self._manager.events.warning(About.of(CONFIG_MAPS, change.after), "PodGrouperWarning", str(error))
        if self._defaults != before:
            self._on_change()
