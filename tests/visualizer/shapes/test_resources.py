"""Amounts as numbers: units, rounding, and what is unlimited."""

from __future__ import annotations

import math

import pytest

from shoal.api.visualizer import UNLIMITED, Amounts, Bounds
from shoal.visualizer.shapes.resources import beyond, bounded_stats, exact, missing, resource_stats, whole


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, 0),
        (0.49, 0),
        (0.5, 1),
        (2.5, 3),
        (2.4999, 2),
        (-0.5, -1),
        (33557352448.0, 33557352448),
        (math.inf, 0),
        (math.nan, 0),
    ],
)
def test_whole_numbers_are_the_nearest(amount: float, shown: int) -> None:
    assert whole(amount) == shown
    assert isinstance(whole(amount), int)


def test_sums_that_mean_the_same_are_written_the_same() -> None:
    assert exact(0.1 + 0.2) == exact(0.3) == 0.3
    assert math.copysign(1, exact(-0.00001)) == 1
    assert exact(math.inf) == exact(math.nan) == 0, "which JSON cannot say"


def test_an_amount_has_milli_cores_bytes_and_devices_whole_and_exact() -> None:
    stats = resource_stats(Amounts(milli_cpu=28_000, memory=33_557_352_448, gpus=1.5, extended={"b/x": 3, "a/y": 1}))
    assert (stats.milli_cpu, stats.memory, stats.gpu, stats.gpus) == (28_000, 33_557_352_448, 2, 1.5)
    assert list(stats.scalar_resources.items()) == [("a/y", 1), ("b/x", 3)]


def test_what_is_unlimited_is_0_and_named() -> None:
    stats = bounded_stats(Bounds(milli_cpu=UNLIMITED, memory=5e9, gpus=UNLIMITED))
    assert (stats.milli_cpu, stats.memory, stats.gpu, stats.gpus) == (0, 5_000_000_000, 0, 0)
    assert stats.unlimited == ["milliCPU", "gpu"]
    assert bounded_stats(Bounds()).unlimited == []


def test_what_is_missing_is_wanted_and_due_and_not_there() -> None:
    due = Amounts(milli_cpu=4_000, memory=100, gpus=2)
    lacking = missing(
        Amounts(milli_cpu=9_000, memory=50, gpus=8), and_no_more_than=due, had=Amounts(memory=70, gpus=0.5)
    )
    assert lacking == Amounts(milli_cpu=4_000, memory=0, gpus=1.5)


def test_nobody_is_beyond_what_is_unlimited() -> None:
    had = Amounts(milli_cpu=500, memory=10, gpus=3)
    assert beyond(Bounds(milli_cpu=200, memory=UNLIMITED, gpus=4), had=had) == Amounts(milli_cpu=300, memory=0, gpus=0)
