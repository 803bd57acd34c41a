"""How long half a gang waits."""

from __future__ import annotations

from shoal.gangs.podgangs.patience import PATIENCE, Patience
from shoal.kube import Key

ONE, OTHER = Key("default", "one"), Key("default", "other")


def test_a_change_waits_from_when_it_was_seen_first_and_not_longer() -> None:
    now = 100.0
    patience = Patience(clock=lambda: now)
    assert patience.left(ONE) == PATIENCE
    now += PATIENCE / 4
    assert patience.left(ONE) == PATIENCE * 3 / 4
    assert patience.left(OTHER) == PATIENCE
    now += PATIENCE
    assert patience.left(ONE) == 0


def test_what_was_written_does_not_shorten_the_next_wait() -> None:
    now = 100.0
    patience = Patience(clock=lambda: now)
    patience.left(ONE)
    now += PATIENCE
    patience.forget(ONE)
    assert patience.left(ONE) == PATIENCE
