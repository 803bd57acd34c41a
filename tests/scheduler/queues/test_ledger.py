"""The figures of queues, kept as their gangs change."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shoal.api.scheduling_run_ai import PodGroup
from shoal.kube import Change
from shoal.scheduler.queues.ledger import Ledger
from shoal.scheduler.resource_lists import Amounts, add_to, amounts_of, written
from tests.scheduler.builders import a_pod_group
from tests.scheduler.queues.builders import figures


def test_gangs_add_up_and_leave_again() -> None:
    ledger = Ledger()
    one = a_pod_group("one", "a", status=figures(2, cpu="500m", kept=True))
    two = a_pod_group("two", "a", status=figures(1, waiting=3))
    ledger.record(Change(None, one))
    ledger.record(Change(None, two))
    use = ledger.total(["a", "b"])
    assert written(use.allocated) == {"cpu": "500m", "nvidia.com/gpu": "3"}
    assert written(use.allocated_non_preemptible) == {"cpu": "500m", "nvidia.com/gpu": "2"}
    assert written(use.requested) == {"cpu": "500m", "nvidia.com/gpu": "6"}
    ledger.record(Change(one, None))
    ledger.record(Change(two, None))
    assert ledger.total(["a"]).allocated == {}
    assert len(ledger) == 0


def test_a_gang_that_moves_takes_its_figures_along() -> None:
    ledger = Ledger()
    here, there = a_pod_group("one", "a", status=figures(2)), a_pod_group("one", "b", status=figures(2))
    ledger.record(Change(None, here))
    ledger.record(Change(here, there))
    assert ledger.total(["a"]).allocated == {}
    assert written(ledger.total(["b"]).allocated) == {"nvidia.com/gpu": "2"}


def test_a_gang_without_a_queue_counts_nowhere() -> None:
    ledger = Ledger()
    ledger.record(Change(None, a_pod_group("one", "", status=figures(2))))
    assert len(ledger) == 0


STATES = st.one_of(
    st.none(),
    st.builds(
        lambda name, queue, gpus, cpu: (name, queue, figures(gpus, cpu=cpu)),
        st.sampled_from(["g1", "g2", "g3"]),
        st.sampled_from(["", "a", "b"]),
        st.sampled_from([0, 0.25, 0.5, 1, 3]),
        st.sampled_from(["", "100m", "2"]),
    ),
)


@given(st.lists(st.tuples(st.sampled_from(["g1", "g2", "g3"]), STATES), max_size=25))
def test_the_figures_are_those_of_the_gangs_that_are_there(steps: list[tuple[str, Any]]) -> None:
    """Whatever happens in whatever order: the same as adding up from scratch."""
    ledger = Ledger()
    present: dict[str, PodGroup] = {}
    for name, state in steps:
        before = present.pop(name, None)
        after = None if state is None else a_pod_group(name, state[1], status=state[2])
        if after is not None:
            present[name] = after
        if before is not None or after is not None:
            ledger.record(Change(before, after))
    for queue in ("a", "b"):
        expected: Amounts = {}
        for group in present.values():
            if group.spec.queue == queue:
                add_to(expected, amounts_of(group.status.resources_status.allocated))
        assert ledger.total([queue]).allocated == expected
    assert len(ledger) == len({group.spec.queue for group in present.values()} - {""})
