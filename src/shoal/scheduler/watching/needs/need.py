"""What a pod needs, as the engine is told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What other objects mean to a pod."""

    missing: str = ""
    """Why it can be placed nowhere yet."""
    allowed: frozenset[str] | None = None
    """The nodes that reach its volumes and devices; None: all."""
    claimed_gpus: int = 0
    """GPUs that it claims, and that its queue answers for."""
    taken_gpus: int = 0
    """Those of them that nobody else on its node answers for: several pods may use one claim."""
    attached: tuple[tuple[str, int], ...] = ()
    """How many volumes it attaches, by the resource that limits them."""


NO_NEED: Final = Need()
