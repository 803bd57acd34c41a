"""All kinds that are served at this moment: the built-in ones, and those that definitions add and take away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.cluster.apiserver.kinds.kind import Kind


class Registry:
    """Finds kinds by where they are asked for; ``generation`` rises with every change of the custom ones."""

    def __init__(self, builtin: Iterable[Kind]) -> None:
        self.generation = 0
        self._by_resource: dict[tuple[str, str, str], Kind] = {}
        self._by_kind: dict[tuple[str, str, str], Kind] = {}
        self._stored: dict[str, Kind] = {}
        self._custom: dict[str, tuple[Kind, ...]] = {}
        self._builtin: set[str] = set()
        self._builtin_resources: set[tuple[str, str]] = set()
        for kind in builtin:
            self._builtin.add(kind.group)
            self._builtin_resources.add((kind.group, kind.resource))
            self._add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._by_resource.values()))

    def find(self, group: str, version: str, resource: str) -> Kind | None:
        """The kind of a resource in a version."""
        return self._by_resource.get((group, version, resource))

    def of_kind(self, group: str, version: str, kind: str) -> Kind | None:
        """The kind of an object by its own apiVersion and kind."""
        return self._by_kind.get((group, version, kind))

    def stored(self, storage: str) -> Kind | None:
        """The version in which a kind's objects are kept."""
        return self._stored.get(storage)

    def is_builtin(self, group: str) -> bool:
        """Whether a group is one of Kubernetes' own."""
        return group in self._builtin

    def is_builtin_resource(self, definition: str) -> bool:
        """Whether a definition, named as ``plural.group``, defines what is Kubernetes' own: that stays as it is."""
        plural, _, group = definition.partition(".")
        return (group, plural) in self._builtin_resources

    def replace_custom(self, definition: str, kinds: tuple[Kind, ...], stored: Kind | None) -> None:
        """Serves these kinds for a definition, and none that it made before; ``stored`` may not be served itself."""
        for gone in self._custom.pop(definition, ()):
            del self._by_resource[gone.group, gone.version, gone.resource]
            if self._by_kind.get((gone.group, gone.version, gone.kind)) is gone:
                del self._by_kind[gone.group, gone.version, gone.kind]
        self._stored.pop(definition, None)
        if kinds:
            self._custom[definition] = kinds
            for kind in kinds:
                self._add(kind)
        if stored is not None:
            self._stored[definition] = stored
        self.generation += 1

    def _add(self, kind: Kind) -> None:
        self._by_resource[kind.group, kind.version, kind.resource] = kind
        self._by_kind.setdefault((kind.group, kind.version, kind.kind), kind)
        if kind.to_storage is None:
            self._stored.setdefault(kind.storage, kind)
