"""Whether a queue and its ancestors may take on more."""

from __future__ import annotations

import pytest

from shoal.scheduler.model.amounts import NONE, UNLIMITED, WITHOUT_LIMIT, Amounts
from shoal.scheduler.shares.capacity import over_capacity, over_limit, over_quota, resource_list
from shoal.scheduler.shares.tree import QueueTree
from tests.scheduler.builders import a_model_queue
from tests.scheduler.shares.builders import a_tree, gpus, set_amounts

CPU, MEMORY, GPU = 0, 1, 2
ONE_OF_EACH = Amounts(1000, 1, 1)

# Limit, held, asked, and the resource that is exceeded.
LIMITS = [
    ("no limit", (WITHOUT_LIMIT, Amounts(500, 1, 1), ONE_OF_EACH), None),
    ("exactly the limit", (ONE_OF_EACH, NONE, ONE_OF_EACH), None),
    ("below the limit", (ONE_OF_EACH, NONE, Amounts(500, 0.5, 0.5)), None),
    ("over in everything: cpu is named", (ONE_OF_EACH, Amounts(500, 1, 1), ONE_OF_EACH), CPU),
    ("over in cpu", (ONE_OF_EACH, Amounts(500, 1, 1), Amounts(1000, 0, 0)), CPU),
    ("over in memory", (ONE_OF_EACH, Amounts(500, 1, 1), Amounts(0, 1, 0)), MEMORY),
    ("over in gpus", (ONE_OF_EACH, Amounts(500, 1, 1), gpus(1)), GPU),
    ("over in what is not asked for", (ONE_OF_EACH, Amounts(1500, 1, 0), gpus(1)), None),
    ("a limit of 0 lets nothing run", (Amounts(UNLIMITED, UNLIMITED, 0), NONE, gpus(0.5)), GPU),
    ("parts that make a whole", (gpus(0.3), gpus(0.1), gpus(0.2)), None),
]


@pytest.mark.parametrize(("figures", "resource"), [case[1:] for case in LIMITS], ids=[case[0] for case in LIMITS])
def test_a_limit_is_never_exceeded(figures: tuple[Amounts, Amounts, Amounts], resource: int | None) -> None:
    limit, held, asked = figures
    tree = a_tree(a_model_queue("q", limit=limit))
    set_amounts(tree, "q", allocated=held)

    excess = over_limit(tree, "q", asked)

    assert (excess.resource if excess else None) == resource


FIVE = Amounts(5, 5, 5)
QUOTAS = [
    ("below the quota", (FIVE, Amounts(1, 1, 1), Amounts(3, 3, 3)), None),
    ("over in one", (FIVE, Amounts(1, 1, 1), Amounts(3, 10, 3)), MEMORY),
    ("over in everything: cpu is named", (FIVE, Amounts(1, 1, 1), Amounts(10, 10, 10)), CPU),
    ("over in what is not asked for", (FIVE, Amounts(4, 4, 6), Amounts(1, 1, 0)), None),
    ("no quota at all", (NONE, NONE, gpus(1)), GPU),
    ("an unlimited quota", (WITHOUT_LIMIT, Amounts(99, 99, 99), gpus(99)), None),
]


@pytest.mark.parametrize(("figures", "resource"), [case[1:] for case in QUOTAS], ids=[case[0] for case in QUOTAS])
def test_what_cannot_be_evicted_stays_within_quota(
    figures: tuple[Amounts, Amounts, Amounts], resource: int | None
) -> None:
    quota, held, asked = figures
    tree = a_tree(a_model_queue("q", quota=quota))
    set_amounts(tree, "q", non_preemptible=held)

    excess = over_quota(tree, "q", asked)

    assert (excess.resource if excess else None) == resource


def three_levels(limits: tuple[float, float, float], held: tuple[float, float, float]) -> QueueTree:
    """Limits and quotas of top, mid and leaf, and what each holds, non-preemptible too, in GPUs."""
    names = ("top", "mid", "leaf")
    tree = a_tree(
        *(
            a_model_queue(name, parent, limit=gpus(limit), quota=gpus(limit))
            for name, parent, limit in zip(names, ("", *names), limits, strict=False)
        )
    )
    for name, count in zip(names, held, strict=True):
        set_amounts(tree, name, allocated=gpus(count), non_preemptible=gpus(count))
    return tree


LEVELS = [
    ("room everywhere", ((3, 3, 3), (2, 2, 2)), None),
    ("the root is full", ((3, 2, 1), (3, 1, 0)), "top"),
    ("the middle is full", ((3, 1, 1), (1, 1, 0)), "mid"),
    ("of several that are full, the nearest is named", ((3, 1, 1), (3, 1, 1)), "leaf"),
]


@pytest.mark.parametrize(("figures", "queue"), [case[1:] for case in LEVELS], ids=[case[0] for case in LEVELS])
def test_every_ancestor_must_have_room(
    figures: tuple[tuple[float, float, float], tuple[float, float, float]], queue: str | None
) -> None:
    tree = three_levels(*figures)

    limit, quota = over_limit(tree, "leaf", gpus(1)), over_quota(tree, "leaf", gpus(1))

    assert (limit.queue if limit else None) == (quota.queue if quota else None) == queue


def test_a_limit_is_asked_before_a_quota_and_a_quota_only_of_what_cannot_be_evicted() -> None:
    tree = a_tree(a_model_queue("top", limit=gpus(4), quota=gpus(9)), a_model_queue("q", "top", quota=gpus(1)))

    def reason(count: float, *, is_preemptible: bool) -> str | None:
        excess = over_capacity(tree, "q", gpus(count), is_preemptible=is_preemptible)
        return excess.reason if excess else None

    assert reason(5, is_preemptible=False) == "OverLimit"
    assert reason(2, is_preemptible=False) == "NonPreemptibleOverQuota"
    assert reason(2, is_preemptible=True) is None
    assert reason(1, is_preemptible=False) is None


MESSAGES = [
    (
        Amounts(2500, 0, 0),
        "may hold 1200000 CPU cores, holds 1199999.5, and the workload asks for 2.5",
        "asks for 2.5 CPU cores, the quota is 2, and non-preemptible workloads hold 1.5 of it",
    ),
    (
        Amounts(0, 3e9, 0),
        "may hold 5 GB of memory, holds 4, and the workload asks for 3",
        "asks for 3 GB of memory, the quota is 4, and non-preemptible workloads hold 2 of it",
    ),
    (
        gpus(0.5),
        "may hold 2 GPUs, holds 1.75, and the workload asks for 0.5",
        "asks for 0.5 GPUs, the quota is 1, and non-preemptible workloads hold 0.75 of it",
    ),
]


@pytest.mark.parametrize(("asked", "of_limit", "of_quota"), MESSAGES, ids=["cpu", "memory", "gpu"])
def test_a_message_names_the_queue_the_resource_and_all_figures(asked: Amounts, of_limit: str, of_quota: str) -> None:
    tree = a_tree(a_model_queue("q", limit=Amounts(12e8, 5e9, 2), quota=Amounts(2000, 4e9, 1)))
    set_amounts(tree, "q", allocated=Amounts(12e8 - 500, 4e9, 1.75), non_preemptible=Amounts(1500, 2e9, 0.75))

    limit, quota = over_limit(tree, "q", asked), over_quota(tree, "q", asked)

    assert limit is not None
    assert quota is not None
    assert limit.message().startswith("queue q is at its limit")
    assert of_limit in limit.message()
    assert "the quota of queue q" in quota.message()
    assert of_quota in quota.message()


def test_a_message_about_quota_says_what_helps() -> None:
    excess = over_quota(a_tree(a_model_queue("q")), "q", gpus(1))

    assert excess is not None
    assert "a preemptible workload may go beyond the quota" in excess.message()


def test_the_details_have_the_figures_of_that_moment() -> None:
    tree = a_tree(a_model_queue("q", limit=Amounts(UNLIMITED, UNLIMITED, 4), quota=gpus(2)))
    tree.take("q", Amounts(1500, 10**9, 3.5), is_preemptible=True)
    tree.take("q", gpus(0.5), is_preemptible=False)
    tree.ask("q", gpus(2))
    excess = over_capacity(tree, "q", Amounts(500, 0, 1), is_preemptible=True)
    tree.take("q", gpus(1), is_preemptible=True)

    assert excess is not None
    details = excess.details()
    assert details.name == "q"
    assert details.queue_allocated_resources == {"cpu": "1500m", "memory": "1G", "nvidia.com/gpu": "4"}
    assert details.queue_allocated_non_preemptible_resources["nvidia.com/gpu"] == "500m"
    assert details.queue_requested_resources["nvidia.com/gpu"] == "6"
    assert details.queue_deserved_resources["nvidia.com/gpu"] == "2"
    assert details.queue_resource_limits == {"nvidia.com/gpu": "4"}
    assert details.pod_group_requested_resources == {"cpu": "500m", "memory": "0", "nvidia.com/gpu": "1"}
    assert set(details.pod_group_requested_non_preemptible_resources.values()) == {"0"}


def test_what_cannot_be_evicted_is_asked_for_as_such() -> None:
    excess = over_quota(a_tree(a_model_queue("q")), "q", gpus(1))

    assert excess is not None
    assert excess.details().pod_group_requested_non_preemptible_resources["nvidia.com/gpu"] == "1"


def test_what_has_no_limit_is_not_in_a_resource_list() -> None:
    assert resource_list(WITHOUT_LIMIT) == {}
