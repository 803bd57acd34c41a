"""When each patch of a TrainJob was last made: filled in by admission, since it decides nothing and users forget it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shoal.api.meta import format_time


def with_patch_times(new: Mapping[str, Any], old: Mapping[str, Any] | None, now: datetime) -> dict[str, Any]:
    """A TrainJob, as plain values, whose patches all say when they were made.

    A patch that says the same as before keeps its time. One that says something else is made now, whatever it claims;
    only of one that is new its own time is believed.
    """
    patches = _patches(new)
    if not patches:
        return dict(new)
    before = {patch.get("manager"): patch for patch in _patches(old or {})}
    timed = [_with_time(patch, before.get(patch.get("manager")), format_time(now)) for patch in patches]
    return {**new, "spec": {**new["spec"], "runtimePatches": timed}}


def _with_time(patch: dict[str, Any], before: dict[str, Any] | None, now: str) -> dict[str, Any]:
    if before is None:
        return patch if patch.get("time") else {**patch, "time": now}
    if _content(patch) != _content(before):
        return {**patch, "time": now}
    kept = {"time": before["time"]} if before.get("time") else {}
    return {**_content(patch), **kept}


def _content(patch: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in patch.items() if key != "time"}


def _patches(train_job: Mapping[str, Any]) -> list[dict[str, Any]]:
    return (train_job.get("spec") or {}).get("runtimePatches") or []
