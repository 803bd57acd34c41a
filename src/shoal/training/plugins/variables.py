"""Variables and ports, as plugins write them into containers."""

from __future__ import annotations

from typing import Any

from shoal.api.trainer import names

TRAINER_PORT: dict[str, Any] = {"containerPort": names.TRAINER_PORT}
"""Where nodes meet."""


def variable(name: str, value: object) -> dict[str, Any]:
    """A variable with a value."""
    return {"name": name, "value": str(value)}


def index_variable(name: str) -> dict[str, Any]:
    """A variable with the pod's index in its Job."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": names.COMPLETION_INDEX_FIELD}}}
