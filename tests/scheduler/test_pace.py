"""How often a status is written."""

from __future__ import annotations

from shoal.scheduler.pace import WritePace


def test_the_first_write_is_at_once_and_the_next_a_moment_later() -> None:
    time = [100.0]
    pace: WritePace[str] = WritePace(2.0, clock=lambda: time[0])
    assert pace.left("a") == 0
    pace.wrote("a")
    assert pace.left("a") == 2
    assert pace.left("b") == 0
    time[0] = 101.5
    assert pace.left("a") == 0.5
    time[0] = 102.0
    assert pace.left("a") == 0


def test_what_is_gone_is_forgotten() -> None:
    pace: WritePace[str] = WritePace(2.0, clock=lambda: 0.0)
    pace.wrote("a")
    pace.forget("a")
    assert pace.left("a") == 0
