"""What the plugin's arguments say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaSettings:
    """How zones are looked at."""

    ignored: frozenset[str] = frozenset()
    """Resources that nodes report by zone, but that their kubelets do not align."""
    reconstructs: bool = True
    """Whether what is free in a zone is counted from the pods that are there; otherwise the node's word is taken."""
