"""Which requests a plugin has anything to do with, so that the others never reach it."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.kube.admission.wire import Operation

CREATE = frozenset({Operation.CREATE})
UPDATE = frozenset({Operation.UPDATE})
WRITE = CREATE | UPDATE


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Some storages, operations and subresources; None stands for all of them."""

    storages: frozenset[str] | None = None
    operations: frozenset[Operation]
    subresources: frozenset[str] | None = frozenset({""})

    def covers(self, storage: str, subresource: str, operation: Operation) -> bool:
        """Whether a request of this sort is meant."""
        return (
            operation in self.operations
            and (self.storages is None or storage in self.storages)
            and (self.subresources is None or subresource in self.subresources)
        )


def scope(*storages: str, operations: frozenset[Operation] = CREATE, subresources: tuple[str, ...] = ("",)) -> Scope:
    """The scope of a plugin that cares for a few kinds."""
    return Scope(storages=frozenset(storages), operations=operations, subresources=frozenset(subresources))
