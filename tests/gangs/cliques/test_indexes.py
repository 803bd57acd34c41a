"""The numbers of pods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.gangs.cliques.indexes import free_indexes
from tests.gangs.builders import CLIQUE, a_clique_pod


@pytest.mark.parametrize(
    ("pods", "count", "free"),
    [
        pytest.param([], 3, [0, 1, 2], id="none yet"),
        pytest.param([a_clique_pod("a", index=0), a_clique_pod("b", index=2)], 2, [1, 3], id="the gap first"),
        pytest.param([a_clique_pod("a", index=0, going=True)], 1, [0], id="one that goes gives its number up"),
        pytest.param([a_clique_pod("a", index=0, phase="Failed")], 1, [0], id="a failed one gives its number up"),
        pytest.param(
            [a_clique_pod("a", index=0, phase="Succeeded")], 1, [0], id="one that succeeded gives its number up"
        ),
        pytest.param([a_clique_pod("a", index=7)], 1, [0], id="a high number keeps nobody from a low one"),
    ],
)
def test_a_pod_takes_the_lowest_free_number(pods: list[object], count: int, free: list[int]) -> None:
    assert free_indexes(CLIQUE, pods, count) == free  # type: ignore[arg-type]


def test_a_clique_whose_name_begins_like_another_takes_none_of_its_numbers() -> None:
    other = a_clique_pod("a", clique="web-0-workers-1", index=0)
    assert other.spec.hostname == "web-0-workers-1-0"
    assert free_indexes("web-0-workers", [other], 2) == [0, 1]


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=20), st.integers(0, 20))
def test_active_pods_never_share_a_number(found: list[tuple[int, bool]], count: int) -> None:
    active = {index for index, is_going in found if not is_going}
    pods = [a_clique_pod(f"p{n}", index=index, going=is_going) for n, (index, is_going) in enumerate(found)]
    free = free_indexes(CLIQUE, pods, count)
    assert len(set(free)) == count
    assert not set(free) & active
