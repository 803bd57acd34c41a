"""What admission is told of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from shoal.api.meta import Quantity
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.kube.admission.wire import Operation


@dataclass(kw_only=True, slots=True)
class Attributes:
    """One request; a mutating plugin completes or replaces ``object``."""

    kind: Kind
    subresource: str = ""
    operation: Operation
    namespace: str = ""
    name: str = ""
    object: Object | None = None
    """The new object (of a subresource with a kind of its own: that body); None for a deletion."""
    old: Object | None = None
    """The object as it is; None for a creation. Never to be changed."""
    options: Mapping[str, Any] = field(default_factory=dict)
    user: User
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    charges: list[tuple[str, dict[str, Quantity]]] = field(default_factory=list)
    """What was charged to which quota, to be given back where the write fails after all."""


class Plugin(Protocol):
    """One step of admission. Raises ``Refused`` to refuse."""

    async def mutate(self, request: Attributes) -> None:
        """Completes the new object."""
        ...

    async def validate(self, request: Attributes) -> None:
        """Refuses what may not be, seen after all mutations."""
        ...
