"""Knative: a group for each revision, or for each pod."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.scheduler.grouper.fields import Ungroupable
from shoal.scheduler.grouper.settings import GrouperSettings
from tests.scheduler.grouper.builders import a_grouped_pod, an_owner, the_group

GROUP = "serving.knative.dev/v1"


def owners(**revision: Any) -> tuple[dict[str, Any], ...]:
    return (
        an_owner("ReplicaSet", "apps/v1", "rs"),
        an_owner("Deployment", "apps/v1", "d"),
        an_owner("Revision", GROUP, "rev-1", **revision),
        an_owner("Configuration", GROUP, "c"),
        an_owner("Service", GROUP, "s"),
    )


@pytest.mark.parametrize(("scale", "expected"), [(None, 1), ("3", 3), ("0", 0), ("many", 1)])
def test_a_revision_starts_with_as_many_pods_as_it_never_falls_below(scale: str | None, expected: int) -> None:
    annotations = {} if scale is None else {"autoscaling.knative.dev/min-scale": scale}
    group = the_group(*owners(annotations=annotations))
    assert (group.name, group.owner.kind, group.min_member) == ("pg-rev-1-rev-1-uid", "Revision", expected)
    assert group.priority_class == "inference"


def test_what_the_revision_is_labelled_with_is_the_groups() -> None:
    group = the_group(*owners(labels={"kai.scheduler/queue": "q", "priorityClassName": "urgent"}))
    assert (group.queue, group.priority_class) == ("q", "urgent")


def test_each_pod_is_a_group_where_revisions_are_no_gangs() -> None:
    settings = GrouperSettings(gangs_of_knative=False)
    revision = owners(annotations={"autoscaling.knative.dev/min-scale": "3"})
    group = the_group(*revision, pod=a_grouped_pod("x"), settings=settings)
    assert (group.name, group.owner.kind, group.min_member) == ("pg-x-x-uid", "Pod", 1)
    assert group.priority_class == "inference"


def test_a_service_without_a_revision_is_told() -> None:
    with pytest.raises(Ungroupable, match="no Revision lies between the pod and Service team/w"):
        the_group(an_owner("Service", GROUP))


def test_a_service_of_kubernetes_is_another_kind() -> None:
    assert the_group(an_owner("Service", "v1")).priority_class == "train"
