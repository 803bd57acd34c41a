from __future__ import annotations

import asyncio

import pytest

from shoal.cluster.controllers.batches import LARGEST, slow_start


class Attempts:
    """Counts calls and how many run at once; those of the given numbers fail."""

    def __init__(self, *failing: int) -> None:
        self.failing = failing
        self.made: list[int] = []
        self.at_once = 0
        self.batches: list[int] = []

    async def __call__(self, number: int) -> None:
        self.made.append(number)
        self.at_once += 1
        await asyncio.sleep(0)
        self.batches.append(self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if number in self.failing:
            raise ValueError(f"number {number}")


@pytest.mark.parametrize(
    ("count", "failing", "made", "succeeded"),
    [
        pytest.param(0, (), 0, 0, id="nothing to do"),
        pytest.param(1, (), 1, 1, id="one"),
        pytest.param(10, (), 10, 10, id="all go well"),
        pytest.param(10, (0,), 1, 0, id="the first fails, and no other is tried"),
        pytest.param(10, (1,), 3, 2, id="one of the second batch fails, and its batch is finished"),
        pytest.param(10, (3, 5), 7, 5, id="two of the third batch fail"),
        pytest.param(10, (9,), 10, 9, id="the last fails"),
    ],
)
async def test_after_a_batch_with_an_error_none_begins(
    count: int, failing: tuple[int, ...], made: int, succeeded: int
) -> None:
    attempts = Attempts(*failing)
    done, error = await slow_start(count, attempts)
    assert attempts.made == list(range(made))
    assert done == succeeded
    assert (str(error) if error else "") == (f"number {failing[0]}" if failing else "")


async def test_batches_double_up_to_a_limit() -> None:
    attempts = Attempts()
    await slow_start(600, attempts)
    sizes = [1, 2, 4, 8, 16, 32, 64, LARGEST, LARGEST, LARGEST, 600 - 127 - 3 * LARGEST]
    assert attempts.batches == [size for size in sizes for _ in range(size)]


async def test_a_cancellation_is_passed_on() -> None:
    async def cancelled(_: int) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await slow_start(3, cancelled)
