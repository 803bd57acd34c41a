"""How the podgroup controller runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PodGroupSettings:
    """What flags decide for the podgroup controller."""

    workers: int = 4
