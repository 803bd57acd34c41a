"""Conditions in the status of a pod."""

from __future__ import annotations

from typing import Any

from shoal.api.meta import format_time, now


def set_pod_condition(status: dict[str, Any], kind: str, value: str, *, reason: str = "", message: str = "") -> None:
    """Sets one condition; the time of its last change stays where its value does."""
    condition: dict[str, Any] = {
        "type": kind,
        "status": value,
        "lastProbeTime": None,
        "lastTransitionTime": format_time(now()),
    }
    condition |= {name: text for name, text in (("reason", reason), ("message", message)) if text}
    conditions = list(status.get("conditions") or ())
    for index, old in enumerate(conditions):
        if old.get("type") == kind:
            if old.get("status") == value:
                condition["lastTransitionTime"] = old.get("lastTransitionTime")
            conditions[index] = condition
            break
    else:
        conditions.append(condition)
    status["conditions"] = conditions


def has_condition(status: dict[str, Any] | None, kind: str, value: str = "True") -> bool:
    """Whether a condition has a value."""
    conditions = (status or {}).get("conditions") or ()
    return any(each.get("type") == kind and each.get("status") == value for each in conditions)
