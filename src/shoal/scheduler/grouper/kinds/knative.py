"""Knative: the pods of a revision start together, as many as it never falls below; or each by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from shoal.scheduler.grouper.base import INFERENCE, flat_group
from shoal.scheduler.grouper.case import Case
from shoal.scheduler.grouper.fields import Ungroupable, annotations_of, described, group_kind
from shoal.scheduler.grouper.kinds.simple import each_by_itself
from shoal.scheduler.grouper.wanted import GroupWanted

_REVISION: Final = ("serving.knative.dev", "Revision")
_MIN_SCALE: Final = "autoscaling.knative.dev/min-scale"


def knative_service(case: Case) -> GroupWanted:
    """A group for each revision of a Service."""
    revision = next((owner for owner in case.owners if group_kind(owner) == _REVISION), None)
    if revision is None:
        raise Ungroupable(f"no Revision lies between the pod and {described(case.top)}: let one own the pod")
    group = flat_group(case, revision, priority=INFERENCE)
    if not case.facts.settings.gangs_of_knative:
        return each_by_itself(case, group)
    scale = annotations_of(revision).get(_MIN_SCALE, "")
    return replace(group, min_member=int(scale) if scale.isdecimal() else 1)
