from __future__ import annotations

from shoal.api.scheduler_grove_io import BACKEND_READY, POD_GANGS
from shoal.gangs.backends.outcome import Outcome, Outcomes, synced
from shoal.kube import Key

GANG = POD_GANGS.decode(b'{"metadata": {"name": "web-0", "namespace": "default", "uid": "one"}}')
NEXT_LIFE = POD_GANGS.decode(b'{"metadata": {"name": "web-0", "namespace": "default", "uid": "two"}}')
WELL, BADLY = synced([]), Outcome.waiting("something has to go first")


def test_an_outcome_counts_from_when_it_was_first_so() -> None:
    now = 100.0
    outcomes = Outcomes(clock=lambda: now)
    assert outcomes.note(GANG, WELL) == 0
    now = 103.0
    assert outcomes.note(GANG, WELL) == 3
    assert outcomes.note(GANG, BADLY) == 0
    now = 104.0
    assert outcomes.note(GANG, BADLY) == 1
    assert outcomes.note(NEXT_LIFE, BADLY) == 0


def test_the_last_outcome_of_a_gang_is_told_and_that_of_an_earlier_gang_is_not() -> None:
    outcomes = Outcomes()
    assert outcomes.condition(GANG) is None
    outcomes.note(GANG, BADLY)
    outcomes.note(GANG, WELL)
    told = outcomes.condition(GANG)
    assert told is not None
    assert (told.type, told.status) == (BACKEND_READY, "True")
    assert outcomes.condition(NEXT_LIFE) is None


def test_a_gang_that_is_gone_is_forgotten() -> None:
    outcomes = Outcomes()
    outcomes.note(GANG, WELL)
    outcomes.forget(Key("default", "web-0"))
    assert outcomes.condition(GANG) is None
