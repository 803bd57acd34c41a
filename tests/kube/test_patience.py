"""How long news waits: from when it was first there, and never for good."""

from __future__ import annotations

import pytest

from shoal.kube import Key
from shoal.kube.patience import Patience

ONE, OTHER = Key("default", "one"), Key("default", "other")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_news_waits_from_when_it_was_first_there_and_not_longer(clock: Clock) -> None:
    patience = Patience(4.0, clock=clock)
    assert patience.left(ONE) == 4.0
    clock.now += 1.0
    assert patience.left(ONE) == 3.0
    assert patience.left(OTHER) == 4.0
    clock.now += 4.0
    assert patience.left(ONE) == 0


def test_news_waits_as_long_as_is_said_of_it(clock: Clock) -> None:
    patience = Patience(4.0, clock=clock)
    assert patience.left(ONE, 1.0) == 1.0
    clock.now += 0.75
    assert patience.left(ONE, 1.0) == 0.25


def test_what_was_told_does_not_shorten_the_next_wait(clock: Clock) -> None:
    patience = Patience(4.0, clock=clock)
    patience.left(ONE)
    clock.now += 3.0
    patience.forget(ONE)
    assert patience.left(ONE) == 4.0


def test_what_could_not_be_told_does_not_wait_again(clock: Clock) -> None:
    patience = Patience(4.0, clock=clock)
    patience.left(ONE)
    clock.now += 4.0
    assert patience.left(ONE) == 0
    assert patience.left(ONE) == 0


def test_news_of_another_step_waits_for_the_next_one_and_never_for_good(clock: Clock) -> None:
    patience = Patience(clock=clock)
    assert patience.left(ONE, 30.0) == 30.0
    clock.now += 25.0
    assert patience.left(ONE, 5.0) == 5.0  # as it would if nothing had waited before
    clock.now += 1.0
    assert patience.left(ONE, 1.0) == 1.0
    clock.now += 0.5
    assert patience.left(ONE, 5.0) == 4.5  # what goes back and forth does not begin again each time
    assert patience.left(ONE, 1.0) == 0.5
    clock.now += 0.5
    assert patience.left(ONE, 1.0) == 0
