"""Delays grow, stay under their cap, and a bucket lets through what it promises."""

import pytest

from shoal.kube.backoff import Backoff, TokenBucket
from shoal.kube.reflector import Pace


@pytest.mark.parametrize(
    ("failures", "delay"),
    [
        pytest.param(1, 0.005, id="the first failure waits the initial delay"),
        pytest.param(2, 0.01, id="the second twice as long"),
        pytest.param(5, 0.08, id="the fifth sixteen times as long"),
        pytest.param(30, 1000, id="never beyond the cap"),
        pytest.param(100_000, 1000, id="however many failures there were"),
    ],
)
def test_delays_double_up_to_the_cap(failures: int, delay: float) -> None:
    assert Backoff(initial=0.005, cap=1000).delay(failures) == pytest.approx(delay)


def test_jitter_only_ever_adds_its_share() -> None:
    backoff = Backoff(initial=1, cap=10, jitter=0.5)
    assert backoff.delay(1, random=lambda: 0.0) == 1
    assert backoff.delay(1, random=lambda: 1.0) == 1.5


def test_a_bucket_gives_its_burst_at_once_and_then_its_rate() -> None:
    clock = Clock()
    bucket = TokenBucket(rate=10, burst=3, clock=clock)
    assert [bucket.reserve() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    clock.now += 1
    assert bucket.reserve() == 0


def test_a_bucket_never_saves_more_than_its_burst() -> None:
    clock = Clock()
    bucket = TokenBucket(rate=10, burst=2, clock=clock)
    clock.now += 1000
    assert [bucket.try_take() for _ in range(3)] == [True, True, False]


def test_a_bucket_without_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="rate > 0"):
        TokenBucket(rate=0, burst=1)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_kind_that_is_not_served_is_soon_looked_for_then_rarely_and_not_by_all_at_once() -> None:
    unserved = Pace().unserved
    at_first = [unserved.delay(failures, random=lambda: 1.0) for failures in range(1, 5)]
    assert sum(at_first) < 15, "one that is installed with us is found while somebody waits for it"
    assert 10 <= unserved.delay(100, random=lambda: 0.0) < unserved.delay(100, random=lambda: 1.0) <= 30
