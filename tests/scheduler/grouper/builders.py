"""Pods, owners and cases in few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from shoal.scheduler.grouper.case import Case, Facts
from shoal.scheduler.grouper.fields import Json
from shoal.scheduler.grouper.kinds import wanted_group
from shoal.scheduler.grouper.pods import GroupedPod
from shoal.scheduler.grouper.settings import GrouperSettings
from shoal.scheduler.grouper.wanted import GroupWanted, checked
from tests.scheduler.builders import kai_pod_manifest

CLASSES = frozenset({"train", "build-preemptible", "build", "inference", "urgent"})


def a_grouped_pod(
    name: str = "p", *, owners: Iterable[Mapping[str, Any]] = (), deleting: bool = False, **given: Any
) -> GroupedPod:
    """A pod for KAI's scheduler, as far as its group depends on it."""
    manifest = kai_pod_manifest(
        name,
        namespace="team",
        uid=f"{name}-uid",
        deleted=datetime(2026, 1, 1, tzinfo=UTC) if deleting else None,
        metadata={"ownerReferences": list(owners)},
        **given,
    )
    return msgspec.convert(manifest, GroupedPod)


def an_owner(
    kind: str,
    api_version: str,
    name: str = "w",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "team",
        "uid": f"{name}-uid",
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": dict(spec or {}), **more}


def the_group(
    *owners: Json,
    pod: GroupedPod | None = None,
    beside: Json | None = None,
    members: Iterable[GroupedPod] = (),
    settings: GrouperSettings | None = None,
    facts: Facts | None = None,
) -> GroupWanted:
    """The group of a pod with these owners, the nearest first."""
    known = facts or Facts(settings=settings or GrouperSettings(), priority_classes=CLASSES)
    case = Case(pod=pod or a_grouped_pod(), owners=owners, beside=beside, members=tuple(members), facts=known)
    return checked(wanted_group(case))


def parts_of(group: GroupWanted) -> dict[str, str]:
    """The parts of a group, in words: ``3 pods``, ``2 parts``, and in which part they are."""
    return {part.name: _words(part.min_member, part.min_sub_group, part.parent) for part in group.sub_groups}


def _words(pods: int | None, parts: int | None, parent: str) -> str:
    assert (pods is None) != (parts is None), "a part counts either pods or parts"
    said = f"{pods} pods" if parts is None else f"{parts} parts"
    return f"{said} in {parent}" if parent else said
