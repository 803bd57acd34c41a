"""The name of an object that a rule wants to see beside the owners of a pod."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Reference:
    """An object in the pod's namespace."""

    api_version: str
    kind: str
    name: str
