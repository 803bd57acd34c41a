"""Objects in the making: what a case of a table is, and the pieces that many share."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.api.meta import format_time

Object = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One object: how it is created, what is then patched into which subresource, and whether it is being deleted."""

    api_version: str
    kind: str
    body: Object
    patches: dict[str, Object] = field(default_factory=dict)
    is_deleted: bool = False


def ago(**past: float) -> str:
    return format_time(datetime.now(UTC) - timedelta(**past))


def named(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name, **more.pop("metadata", {})}, **more}


def pod_template(*containers: str, **spec: Any) -> Object:
    made = [{"name": name, "image": f"registry.test/{name}:1"} for name in containers or ("main",)]
    return {"metadata": {"labels": {"app": "x", "tier": "a"}}, "spec": {"containers": made, **spec}}


def condition(kind: str, status: str = "True", **more: str) -> Object:
    return {"type": kind, "status": status, **more}
