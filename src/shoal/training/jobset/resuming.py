"""How a suspended Job goes on: with what was added to its template meanwhile.

A queueing system suspends a JobSet, writes where its pods shall run into the template, and resumes it. Others may have
written into the Job as well, so the two are merged, and the template's value wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.api.batch import Job

_MERGED_LISTS = ("tolerations", "schedulingGates")


def resumed_spec(job: Job, pod_template: Mapping[str, Any]) -> dict[str, Any]:
    """What is patched into the Job's specification; lists whole, since a merge patch replaces them."""
    metadata, spec = pod_template.get("metadata") or {}, pod_template.get("spec") or {}
    now = job.spec.template.get("spec") or {}
    template: dict[str, Any] = {
        "metadata": {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)},
        "spec": {"nodeSelector": spec["nodeSelector"]} if spec.get("nodeSelector") else {},
    }
    for key in _MERGED_LISTS:
        whole = union(now.get(key) or [], spec.get(key) or [])
        if whole != (now.get(key) or []):
            template["spec"][key] = whole
    kept = {key: value for key, value in template.items() if value}
    return {"suspend": False, **({"template": kept} if kept else {})}


def union(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """The first list, and what the second has besides."""
    return [*first, *(each for each in second if each not in first)]
