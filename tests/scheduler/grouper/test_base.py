"""What all groups have in common: queue, priority, and how they yield."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from shoal.api.scheduling_run_ai import TopologyConstraint
from shoal.scheduler.grouper.case import Facts
from shoal.scheduler.grouper.defaults import KindDefaults
from shoal.scheduler.grouper.settings import GrouperSettings
from tests.scheduler.grouper.builders import CLASSES, a_grouped_pod, an_owner, the_group


def some(**said: Any) -> dict[str, Any]:
    return an_owner("StatefulSet", "apps/v1", **said)


def test_a_group_belongs_to_the_topmost_owner_and_does_not_bind_it() -> None:
    group = the_group(an_owner("Middle", "example.com/v1", "m"), an_owner("Top", "example.com/v1", "t"))
    assert (group.name, group.namespace) == ("pg-t-t-uid", "team")
    assert (group.owner.kind, group.owner.uid, group.owner.controller) == ("Top", "t-uid", False)
    assert group.min_member == 1
    assert group.sub_groups == ()


def test_a_pod_without_an_owner_is_the_owner_of_its_group() -> None:
    group = the_group(pod=a_grouped_pod("solo", labels={"kai.scheduler/queue": "q"}))
    assert (group.name, group.owner.kind, group.owner.uid) == ("pg-solo-solo-uid", "Pod", "solo-uid")
    assert (group.queue, group.priority_class, group.min_member) == ("q", "train", 1)


def test_labels_and_annotations_of_the_owner_are_the_groups_too() -> None:
    owner = some(
        labels={"app": "a", "user": "ann"},
        annotations={"note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    )
    pod = a_grouped_pod(
        labels={"user": "bob", "kai.scheduler/node-pool": "gpu"}, annotations={"user": "bob@example.com"}
    )
    group = the_group(owner, pod=pod)
    assert group.labels == {"app": "a", "user": "ann", "kai.scheduler/node-pool": "gpu"}
    top = yaml.safe_load(group.annotations["kai.scheduler/top-owner-metadata"])
    assert top == {"name": "w", "uid": "w-uid", "group": "apps", "version": "v1", "kind": "StatefulSet"}
    others = {key: value for key, value in group.annotations.items() if key != "kai.scheduler/top-owner-metadata"}
    assert others == {"note": "n", "user": "bob@example.com"}


def test_the_user_of_a_pod_is_the_groups_where_the_owner_names_none() -> None:
    assert the_group(some(), pod=a_grouped_pod(labels={"user": "bob"})).labels["user"] == "bob"


QUEUES: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "nobody says": ({}, {}, "default-queue"),
    "the owner": ({"kai.scheduler/queue": "a"}, {}, "a"),
    "the pod": ({}, {"kai.scheduler/queue": "b"}, "b"),
    "the owner before the pod": ({"kai.scheduler/queue": "a"}, {"kai.scheduler/queue": "b"}, "a"),
    "the pod's queue before the owner's project": ({"project": "x"}, {"kai.scheduler/queue": "b"}, "b"),
    "the owner's project": ({"project": "x"}, {}, "x"),
    "the pod's project": ({}, {"project": "y"}, "y"),
    "the owner's project before the pod's": ({"project": "x"}, {"project": "y"}, "x"),
    "a project's queue in a node pool": ({"project": "x"}, {"kai.scheduler/node-pool": "np"}, "x-np"),
    "a queue is the same in each node pool": (
        {"kai.scheduler/queue": "a"},
        {"kai.scheduler/node-pool": "np"},
        "a",
    ),
}


@pytest.mark.parametrize(("owner", "pod", "expected"), QUEUES.values(), ids=QUEUES)
def test_the_queue_is_the_first_that_is_named(owner: dict[str, str], pod: dict[str, str], expected: str) -> None:
    assert the_group(some(labels=owner), pod=a_grouped_pod(labels=pod)).queue == expected


def test_the_labels_of_queue_and_node_pool_are_settings() -> None:
    settings = GrouperSettings(queue_label="queue", node_pool_label="pool")
    pod = a_grouped_pod(labels={"project": "x", "pool": "np"})
    assert the_group(some(labels={"queue": "a"}), settings=settings).queue == "a"
    assert the_group(some(), pod=pod, settings=settings).queue == "x-np"


DEFAULTS = {
    "StatefulSet.apps": KindDefaults(
        type_name="StatefulSet", group="apps", priority_name="build", preemptibility="Non-Preemptible"
    ),
    "Thing": KindDefaults(type_name="Thing", priority_name="inference", preemptibility="preemptible"),
    "Odd": KindDefaults(type_name="Odd", priority_name="no-such-class", preemptibility="sometimes"),
}

PRIORITIES: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "the default of the kind": ({}, {}, "build"),
    "the owner": ({"priorityClassName": "urgent"}, {}, "urgent"),
    "the pod's label": ({}, {"labels": {"priorityClassName": "urgent"}}, "urgent"),
    "the pod's class": ({}, {"priorityClassName": "urgent"}, "urgent"),
    "the owner before the pod": (
        {"priorityClassName": "inference"},
        {"labels": {"priorityClassName": "urgent"}},
        "inference",
    ),
    "the pod's label before its class": (
        {},
        {"labels": {"priorityClassName": "inference"}, "priorityClassName": "urgent"},
        "inference",
    ),
    "a class that does not exist is passed over": (
        {"priorityClassName": "no-such-class"},
        {"priorityClassName": "urgent"},
        "urgent",
    ),
    "and at last the kind's default holds": ({"priorityClassName": "no-such-class"}, {}, "build"),
}


@pytest.mark.parametrize(("owner", "pod", "expected"), PRIORITIES.values(), ids=PRIORITIES)
def test_the_priority_is_the_first_class_that_is_named_and_exists(
    owner: dict[str, str], pod: dict[str, Any], expected: str
) -> None:
    facts = Facts(priority_classes=CLASSES, defaults=DEFAULTS)
    assert the_group(some(labels=owner), pod=a_grouped_pod(**pod), facts=facts).priority_class == expected


@pytest.mark.parametrize(
    ("kind", "api_version", "expected"),
    [
        pytest.param("StatefulSet", "apps/v1", ("build", "non-preemptible"), id="by group and kind"),
        pytest.param("StatefulSet", "example.com/v1", ("train", ""), id="not in another group"),
        pytest.param("Thing", "example.com/v1", ("inference", "preemptible"), id="by kind in any group"),
        pytest.param("Odd", "example.com/v1", ("train", ""), id="what makes no sense is passed over"),
    ],
)
def test_kinds_have_defaults(kind: str, api_version: str, expected: tuple[str, str]) -> None:
    group = the_group(an_owner(kind, api_version), facts=Facts(priority_classes=CLASSES, defaults=DEFAULTS))
    assert (group.priority_class, group.preemptibility) == expected


def test_the_default_of_an_owner_below_holds_where_those_above_have_none() -> None:
    owners = some(), an_owner("Unknown", "example.com/v1", "top")
    group = the_group(*owners, facts=Facts(priority_classes=CLASSES, defaults=DEFAULTS))
    assert group.priority_class == "build"


PREEMPTIBILITIES: dict[str, tuple[str | None, str | None, str]] = {
    "nobody says": (None, None, "non-preemptible"),
    "the owner": ("preemptible", None, "preemptible"),
    "the pod": (None, "preemptible", "preemptible"),
    "the owner before the pod": ("non-preemptible", "preemptible", "non-preemptible"),
    "what makes no sense is passed over": ("often", "preemptible", "preemptible"),
    "and at last the kind's default holds": ("often", "seldom", "non-preemptible"),
}


@pytest.mark.parametrize(("owner", "pod", "expected"), PREEMPTIBILITIES.values(), ids=PREEMPTIBILITIES)
def test_preemptibility_is_the_first_that_makes_sense(owner: str | None, pod: str | None, expected: str) -> None:
    def labels(said: str | None) -> dict[str, str]:
        return {} if said is None else {"kai.scheduler/preemptibility": said}

    facts = Facts(priority_classes=CLASSES, defaults=DEFAULTS)
    group = the_group(some(labels=labels(owner)), pod=a_grouped_pod(labels=labels(pod)), facts=facts)
    assert group.preemptibility == expected


def test_preemptibility_is_left_to_the_priority_where_nobody_says() -> None:
    group = the_group(an_owner("Thing", "example.com/v1", labels={"kai.scheduler/preemptibility": "often"}))
    assert group.preemptibility == ""


DURATIONS: dict[str, tuple[str | None, str | None, str, str]] = {
    "nobody says": (None, None, "", ""),
    "the owner": ("5m", None, "5m0s", "5m0s"),
    "the pod": (None, "90s", "1m30s", "1m30s"),
    "the owner before the pod": ("1h", "5m", "1h0m0s", "1h0m0s"),
    "what is no duration is passed over": ("abc", "30s", "30s", "30s"),
    "a number without a unit is none": (None, "5", "", ""),
    "only a grace period may be negative": (None, "-3m", "", "-3m0s"),
}


@pytest.mark.parametrize(("owner", "pod", "delay", "grace"), DURATIONS.values(), ids=DURATIONS)
def test_preemption_delay_and_staleness_are_copied(owner: str | None, pod: str | None, delay: str, grace: str) -> None:
    def annotations(said: str | None) -> dict[str, str]:
        keys = ("kai.scheduler/preemption-delay", "kai.scheduler/staleness-grace-period")
        return {} if said is None else dict.fromkeys(keys, said)

    group = the_group(some(annotations=annotations(owner)), pod=a_grouped_pod(annotations=annotations(pod)))
    assert (group.preemption_delay, group.staleness_grace_period) == (delay, grace)


def test_topology_annotations_of_the_owner_are_the_groups_constraint() -> None:
    annotations = {
        "kai.scheduler/topology": "dc",
        "kai.scheduler/topology-required-placement": "rack",
        "kai.scheduler/topology-preferred-placement": "block",
    }
    constraint = TopologyConstraint(topology="dc", required_topology_level="rack", preferred_topology_level="block")
    assert the_group(some(annotations=annotations)).topology == constraint
    assert the_group(some()).topology is None


def test_what_others_may_change_is_said_only_once() -> None:
    owner = some(labels={"app": "a", "kai.scheduler/queue": "q", "kai.scheduler/node-pool": "np"})
    group, movable = the_group(owner), frozenset({"kai.scheduler/queue", "kai.scheduler/node-pool"})
    body = group.body(movable)
    assert body["metadata"]["labels"] == {"app": "a"}
    assert body["spec"] == {"minMember": 1, "priorityClassName": "train"}
    assert group.initial(movable) == {
        "spec": {"queue": "q"},
        "metadata": {"labels": {"kai.scheduler/queue": "q", "kai.scheduler/node-pool": "np"}},
    }
