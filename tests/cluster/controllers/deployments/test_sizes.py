from __future__ import annotations

import pytest

from shoal.api.apps import RECREATE, DeploymentStatus
from shoal.api.meta import IntOrString, InvalidPercentage
from shoal.cluster.controllers.deployments.sizes import (
    fenceposts,
    is_being_scaled,
    max_surge,
    max_unavailable,
    new_size,
    removable,
    scaled_sizes,
    surplus_last,
    unhealthy_first,
)
from tests.cluster.controllers.deployments.builders import a_deployment, a_set


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        pytest.param("0%", "0%", 0, (0, 1), id="one may be missing where nothing else may"),
        pytest.param("39%", "39%", 10, (4, 3), id="the surge is rounded up, what may be missing down"),
        pytest.param(None, "39%", 10, (0, 3), id="no surge"),
        pytest.param("39%", None, 10, (4, 0), id="none may be missing"),
        pytest.param(None, None, 10, (0, 1), id="neither"),
        pytest.param(0, "25%", 2, (0, 1), id="a share that is rounded to nothing"),
    ],
)
def test_what_a_rollout_may_go_over_and_under(
    surge: IntOrString | None, unavailable: IntOrString | None, replicas: int, expected: tuple[int, int]
) -> None:
    assert fenceposts(a_deployment(replicas, surge=surge, unavailable=unavailable)) == expected


def test_a_share_that_is_no_percentage_is_refused() -> None:
    with pytest.raises(InvalidPercentage):
        fenceposts(a_deployment(10, surge="oops"))


@pytest.mark.parametrize(
    ("replicas", "unavailable", "strategy", "expected"),
    [
        pytest.param(10, 2, "RollingUpdate", 2, id="a number"),
        pytest.param(5, 10, "RollingUpdate", 5, id="never more than there are"),
        pytest.param(0, 1, "RollingUpdate", 0, id="of none none"),
        pytest.param(10, 2, RECREATE, 0, id="only while rolling"),
        pytest.param(10, "50%", "RollingUpdate", 5, id="a share"),
    ],
)
def test_how_many_may_be_missing(replicas: int, unavailable: IntOrString, strategy: str, expected: int) -> None:
    deployment = a_deployment(replicas, surge=0, unavailable=unavailable, strategy=strategy)
    assert max_unavailable(deployment) == expected
    assert max_surge(a_deployment(10, surge=3, strategy=strategy)) == (0 if strategy == RECREATE else 3)


@pytest.mark.parametrize(
    ("replicas", "surge", "old", "new", "expected"),
    [
        pytest.param(10, 0, 10, 0, 0, id="no room"),
        pytest.param(10, 2, 10, 0, 2, id="as much as the surge"),
        pytest.param(10, 2, 5, 0, 7, id="as much as is missing, and the surge"),
        pytest.param(10, 2, 10, 2, 2, id="the surge is used up"),
        pytest.param(10, 2, 2, 11, 10, id="too large"),
        pytest.param(6, 10, 0, 2, 6, id="never beyond the size"),
        pytest.param(3, 1, 3, 3, 3, id="as it should be"),
    ],
)
def test_the_new_set_grows_as_far_as_there_is_room(
    replicas: int, surge: int, old: int, new: int, expected: int
) -> None:
    assert new_size(a_deployment(replicas, surge=surge, unavailable=0), new, new + old) == expected


def test_a_set_that_is_made_anew_takes_all_at_once() -> None:
    assert new_size(a_deployment(3, strategy=RECREATE), 1, 6) == 3


@pytest.mark.parametrize(
    ("unavailable", "old", "old_available", "new", "new_available", "sizes"),
    [
        pytest.param(0, 10, 10, 0, 0, [9], id="one may be missing where none can be added"),
        pytest.param(2, 10, 10, 0, 0, [8], id="as many as may be missing"),
        pytest.param(2, 10, 8, 0, 0, [8], id="those that are not available anyway"),
        pytest.param(2, 10, 9, 0, 0, [9, 8], id="an unavailable one first, then an available one"),
        pytest.param(2, 8, 8, 2, 0, [], id="new ones that are not available make no room"),
        pytest.param(2, 8, 8, 5, 5, [3], id="new ones that are available do"),
        pytest.param(2, 0, 0, 10, 10, [], id="nothing left to shrink"),
        pytest.param(2, 3, 5, 5, 5, [], id="one that is still shrinking is waited for"),
    ],
)
def test_old_sets_shrink_as_far_as_enough_stay_available(
    unavailable: int, old: int, old_available: int, new: int, new_available: int, sizes: list[int]
) -> None:
    deployment = a_deployment(10, surge=0, unavailable=unavailable)
    fresh = a_set(new, name="new", available=new_available)
    aged = a_set(old, name="old", available=old_available, age=1)
    taken = []
    if removable(deployment, fresh, [aged]) > 0:
        for plan in (unhealthy_first, surplus_last):
            for resize in plan(deployment, fresh, [aged]):
                taken.append(resize.size)
                aged = a_set(resize.size, name="old", available=min(old_available, aged.status.available_replicas))
    assert taken == sizes


def test_the_oldest_sets_shrink_first() -> None:
    deployment = a_deployment(4, surge=0, unavailable=3)
    new, old = a_set(0, name="new"), [a_set(2, name="oldest", available=2), a_set(2, name="younger", available=2)]
    plan = surplus_last(deployment, new, old)
    assert [(one.metadata.name, size) for one, size in plan] == [("oldest", 0), ("younger", 1)]


@pytest.mark.parametrize(
    ("before", "after", "sets", "expected"),
    [
        pytest.param(10, 12, [10], [12], id="a single set takes it all"),
        pytest.param(10, 5, [10], [5], id="a single set gives it all"),
        pytest.param(5, 10, [3, 2], [6, 4], id="5 to 10"),
        pytest.param(5, 3, [3, 2], [2, 1], id="5 to 3"),
        pytest.param(9, 4, [1, 8], [0, 4], id="9 to 4"),
        pytest.param(7, 10, [2, 3, 2], [3, 4, 3], id="7 to 10"),
        pytest.param(13, 8, [3, 8, 2], [2, 5, 1], id="13 to 8"),
        pytest.param(3, 4, [1, 1, 1], [1, 1, 2], id="among equals the youngest grows"),
        pytest.param(3, 2, [1, 1, 1], [0, 1, 1], id="among equals the oldest shrinks"),
        pytest.param(6, 0, [1, 2, 3], [0, 0, 0], id="to nothing"),
        pytest.param(6, 6, [0, 0, 0], [0, 0, 6], id="from nothing the youngest takes it all"),
    ],
)
def test_every_set_keeps_its_share(before: int, after: int, sets: list[int], expected: list[int]) -> None:
    """The sets go from the oldest to the newest, which is the present version's."""
    found = [
        a_set(size, name=f"v{number}", age=9 - number, of=before, at_most=before) for number, size in enumerate(sets)
    ]
    sizes = {one.metadata.name: one.spec.replicas for one in found}
    sizes |= {one.metadata.name: size for one, size in scaled_sizes(a_deployment(after), found[-1], found[:-1])}
    assert list(sizes.values()) == expected


def test_sets_of_earlier_versions_keep_their_shares_where_there_is_none_of_the_present() -> None:
    old = [a_set(3, name="v1", age=2, of=10, at_most=10), a_set(7, name="v2", age=1, of=10, at_most=10)]
    resizes = scaled_sizes(a_deployment(14), None, old)
    assert {one.metadata.name: size for one, size in resizes} == {"v1": 4, "v2": 10}


@pytest.mark.parametrize(
    ("before", "surge_before", "after", "surge", "sets", "expected"),
    [
        pytest.param(10, 2, 20, 2, (6, 6), (11, 11), id="the surge is shared too"),
        pytest.param(10, 3, 50, 6, (8, 5), (34, 22), id="size and surge"),
    ],
)
def test_shares_are_of_the_size_and_the_surge(
    before: int, surge_before: int, after: int, surge: int, sets: tuple[int, int], expected: tuple[int, int]
) -> None:
    at_most = before + surge_before
    old = a_set(sets[0], name="old", age=1, of=before, at_most=at_most)
    new = a_set(sets[1], name="new", of=before, at_most=at_most)
    resizes = scaled_sizes(a_deployment(after, surge=surge), new, [old])
    assert {one.metadata.name: size for one, size in resizes} == {"old": expected[0], "new": expected[1]}


def test_old_sets_go_where_the_new_one_has_all_that_is_wanted() -> None:
    new = a_set(2, name="new", available=2, of=2, at_most=3)
    resizes = scaled_sizes(a_deployment(2, surge=1), new, [a_set(1, name="old", age=1, of=2, at_most=3)])
    assert [(one.metadata.name, size) for one, size in resizes] == [("old", 0)]


def test_old_sets_stay_where_the_new_one_is_large_and_broken() -> None:
    new = a_set(2, name="new", available=0, of=2, at_most=3)
    old = a_set(1, name="old", age=1, of=2, at_most=3)
    resizes = scaled_sizes(a_deployment(2, surge=1, unavailable=1), new, [old])
    assert all(one.spec.replicas == size for one, size in resizes)


@pytest.mark.parametrize(
    ("replicas", "actual", "surge", "size", "at_most", "expected"),
    [
        pytest.param(10, 0, 0, 5, None, 5, id="nobody told it, and there is nothing to measure by"),
        pytest.param(10, 0, 0, 5, 0, 5, id="it was told nonsense"),
        pytest.param(120, 100, 0, 50, None, 60, id="nobody told it: by what there is"),
        pytest.param(120, 0, 0, 50, 100, 60, id="a fifth more"),
        pytest.param(120, 0, 10, 50, 110, 59, id="a fifth more, with a surge"),
        pytest.param(10, 0, 0, 6, 12, 5, id="a sixth less"),
        pytest.param(100, 0, 10, 50, 130, 42, id="a sixth less, with a surge"),
    ],
)
def test_a_share_is_measured_by_the_size_that_a_set_was_told_of(
    replicas: int, actual: int, surge: int, size: int, at_most: int | None, expected: int
) -> None:
    deployment = a_deployment(replicas, surge=surge, unavailable=1, status=DeploymentStatus(replicas=actual))
    # The largest set takes what is left over, so that the other one's size is its share and nothing else.
    largest = a_set(1000 if expected <= size else 51, name="largest", at_most=10**9 if expected > size else None)
    resizes = scaled_sizes(deployment, largest, [a_set(size, name="it", age=1, at_most=at_most)])
    assert {one.metadata.name: new for one, new in resizes}["it"] == expected


@pytest.mark.parametrize(
    ("told", "expected"), [(3, False), (2, True), (None, False)], ids=["this size", "another size", "nothing"]
)
def test_a_deployment_is_being_scaled_while_a_set_was_told_of_another_size(told: int | None, expected: bool) -> None:
    assert is_being_scaled(a_deployment(3), [a_set(1, of=told)]) is expected
    assert not is_being_scaled(a_deployment(3), [a_set(0, of=told)])
