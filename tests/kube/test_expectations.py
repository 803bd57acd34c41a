"""Expectations hold a controller back until its own requests have been seen."""

from shoal.kube.expectations import EXPIRES_AFTER, Expectations
from shoal.kube.store import Key

KEY = Key("default", "set")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_nothing_expected_is_met() -> None:
    assert Expectations().are_met(KEY)


def test_creations_are_counted_and_deletions_known_by_uid() -> None:
    expectations = Expectations()
    expectations.expect(KEY, creations=2, deletions=frozenset({"u1"}))
    expectations.created(KEY)
    expectations.deleted(KEY, "u1")
    expectations.deleted(KEY, "u1")
    assert not expectations.are_met(KEY)
    expectations.created(KEY)
    assert expectations.are_met(KEY)


def test_an_event_that_was_quicker_than_its_answer_counts() -> None:
    expectations = Expectations()
    expectations.expect(KEY, creations=1)
    expectations.created(KEY)
    assert expectations.are_met(KEY)


def test_an_old_expectation_is_not_believed() -> None:
    clock = Clock()
    expectations = Expectations(clock=clock)
    expectations.expect(KEY, creations=1)
    clock.now = EXPIRES_AFTER + 1
    assert expectations.are_met(KEY)


def test_what_was_seen_unasked_does_not_count_for_later() -> None:
    expectations = Expectations()
    expectations.expect(KEY, creations=1)
    expectations.created(KEY, 2)
    expectations.expect(KEY, creations=2)
    expectations.created(KEY)
    assert not expectations.are_met(KEY)


def test_expecting_more_adds_to_what_is_expected() -> None:
    expectations = Expectations()
    expectations.expect(KEY, creations=1)
    expectations.expect(KEY, creations=1)
    expectations.created(KEY)
    assert not expectations.are_met(KEY)
    expectations.forget(KEY)
    assert expectations.are_met(KEY)
