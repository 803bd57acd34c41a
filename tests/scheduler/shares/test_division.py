"""How one amount is divided among the queues of one level."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.scheduler.model.amounts import UNLIMITED
from shoal.scheduler.shares.division import Claim, divide

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "kai" / "fairshare.yaml"


def corpus() -> list[Any]:
    if not CORPUS.exists():
        return []
    return list(yaml.load(CORPUS.read_text(), Loader=yaml.CSafeLoader)["cases"])


@pytest.mark.skipif(not CORPUS.exists(), reason="shared/corpus/kai/fairshare.yaml is not there")
@pytest.mark.parametrize("case", corpus(), ids=lambda case: case["id"])
def test_the_division_gives_what_the_verified_cases_say(case: Any) -> None:
    claims = [
        Claim(**{**claim, **{key: UNLIMITED for key in ("quota", "limit") if claim.get(key) == -1}})
        for claim in case["queues"]
    ]

    made = divide(case["total"], claims, k=case["k"])

    assert made.shares == pytest.approx(case["expect"], abs=1e-6)
    if case["remaining"] is not None:
        assert made.remaining == pytest.approx(case["remaining"], abs=1e-6)


def c(name: str, quota: float, weight: float, request: float, limit: float = UNLIMITED, **more: Any) -> Claim:
    return Claim(name, quota, weight, request, limit, **more)


CASES: list[tuple[str, float, list[Claim], dict[str, float], float]] = [
    ("a request within the quota is served", 3, [c("a", 3, 0, 2)], {"a": 2}, 1),
    ("quota is served even where there is not enough", 1, [c("a", 3, 0, 2)], {"a": 2}, 0),
    ("two quotas may overshoot, and nothing is left", 3, [c("a", 2, 1, 5), c("b", 2, 1, 5)], {"a": 2, "b": 2}, 0),
    ("a quota may be a fraction", 5, [c("a", 2.5, 0, 5)], {"a": 2.5}, 2.5),
    ("without quota and weight there is nothing", 5, [c("a", 0, 0, 5)], {"a": 0}, 5),
    ("a limit of 0 gives nothing", 5, [c("a", 3, 1, 5, 0)], {"a": 0}, 5),
    ("unlimited quota takes what it asks for", 10, [c("a", UNLIMITED, 0, 7), c("b", 0, 1, 9)], {"a": 7, "b": 3}, 0),
    ("unlimited quota counts as the whole", 10, [c("a", UNLIMITED, 0, 99), c("b", 2, 1, 9)], {"a": 10, "b": 2}, 0),
    ("nothing to divide breaks nothing", 0, [c("a", 0, 1, 5)], {"a": 0}, 0),
    ("nobody there leaves everything", 4, [], {}, 4),
    ("surplus goes by weight", 9, [c("a", 0, 2, 9), c("b", 0, 1, 9)], {"a": 6, "b": 3}, 0),
    (
        "what one leaves goes to the others in another round",
        12,
        [c("a", 0, 1, 2), c("b", 0, 1, 99), c("c", 0, 1, 99)],
        {"a": 2, "b": 5, "c": 5},
        0,
    ),
    (
        "the higher priority takes all the surplus it can use",
        10,
        [c("a", 2, 1, 5, priority=200), c("b", 2, 100, 9, priority=100)],
        {"a": 5, "b": 5},
        0,
    ),
    (
        "quota of a low priority is served all the same",
        4,
        [c("a", 2, 1, 9, priority=200), c("b", 2, 1, 9, priority=100)],
        {"a": 2, "b": 2},
        0,
    ),
    (
        "the last unit goes to whom rounding cost most",
        10,
        [c("a", 0, 1, 99), c("b", 0, 2, 99)],
        {"a": 3, "b": 7},
        0,
    ),
    (
        "of equal remainders the older queue gets it",
        3,
        [c("a", 0, 1, 9, created=5), c("b", 0, 1, 9, created=4)],
        {"a": 1, "b": 2},
        0,
    ),
    (
        "a remainder less than a unit goes out as it is",
        2.5,
        [c("a", 0, 1, 9, created=0), c("b", 0, 1, 9, created=1)],
        {"a": 1.5, "b": 1},
        0,
    ),
    (
        "nobody gets more than one unit of what rounding left over",
        2,
        [c("a", 0, 1, 9, created=1), c("b", 0, 1, 9, created=2), c("c", 0, 1, 9, created=0)],
        {"a": 1, "b": 0, "c": 1},
        0,
    ),
    (
        "thirds are whole where they should be",
        13,
        [c("a", 3, 0.5, 20), c("b", 0, 0.5, 7, priority=50), c("c", 0, 2, 19)],
        {"a": 5, "b": 0, "c": 8},
        0,
    ),
]


@pytest.mark.parametrize(
    ("total", "claims", "expected", "remaining"), [case[1:] for case in CASES], ids=[x[0] for x in CASES]
)
def test_the_division_follows_its_rules(
    total: float, claims: list[Claim], expected: dict[str, float], remaining: float
) -> None:
    made = divide(total, claims, k=1.0)

    assert made.shares == pytest.approx(expected)
    assert made.remaining == pytest.approx(remaining)


# Who used more than his part gets less: with k=1 his weight is 2·n - usage, where n is his part of the weights.
USED = [
    ("nobody used anything", 1.0, (0.0, 0.0), (50, 50)),
    ("one used half of what there was", 1.0, (0.5, 0.0), (33, 67)),
    ("one used all there was", 1.0, (1.0, 0.0), (0, 100)),
    ("both used as much", 1.0, (0.4, 0.4), (50, 50)),
    ("the past counts for nothing", 0.0, (0.9, 0.0), (50, 50)),
    ("a negative factor is none", -3.0, (0.9, 0.0), (50, 50)),
    ("the past counts for much", 4.0, (0.5, 0.2), (23, 77)),
]


@pytest.mark.parametrize(("k", "usage", "expected"), [case[1:] for case in USED], ids=[case[0] for case in USED])
def test_past_use_lowers_the_part_of_the_surplus(
    k: float, usage: tuple[float, float], expected: tuple[int, int]
) -> None:
    claims = [c("a", 0, 1, 500, usage=usage[0]), c("b", 0, 1, 500, usage=usage[1])]

    made = divide(100, claims, k=k)

    assert (made.shares["a"], made.shares["b"]) == expected


# Quota, weight, request and use of each queue, and what each gets: offers are whole, or just what is missing.
NOISY = [
    (22, 5.0, [(1, 1, 19, 0), (1, 2, 4, 0), (0, 3, 19, 0.2)], [7, 4, 11]),
    (36, 5.0, [(0, 1, 1, 0), (3, 2, 4, 0.35), (1, 6, 17, 0), (2, 3, 13, 0.2)], [1, 4, 17, 13]),
    (32, 0.0, [(2, 6, 20, 0), (0, 3, 5, 0), (0, 0.7, 13, 0), (2, 6, 20, 0), (1, 0.5, 19, 0)], [12, 5, 1, 12, 2]),
]


@pytest.mark.parametrize(("total", "k", "claims", "expected"), NOISY)
def test_the_noise_of_floats_decides_nothing(
    total: float, k: float, claims: list[tuple[float, float, float, float]], expected: list[float]
) -> None:
    made = divide(total, [c(str(place), *claim[:3], usage=claim[3]) for place, claim in enumerate(claims)], k=k)

    assert list(made.shares.values()) == expected


def test_past_use_never_touches_quota() -> None:
    made = divide(10, [c("a", 6, 1, 20, usage=1.0), c("b", 0, 1, 20)], k=1.0)

    assert made.shares == {"a": 6, "b": 4}


def test_a_share_may_shrink_while_the_whole_grows() -> None:
    """Whole units by the largest remainder are not monotone (the paradox of Alabama): 10 and 11 seats."""
    claims = [c("a", 0, 6, 99), c("b", 0, 6, 99), c("c", 0, 2, 99)]

    assert divide(10, claims, k=0.0).shares["c"] == 2
    assert divide(11, claims, k=0.0).shares["c"] == 1


amounts = st.one_of(st.integers(0, 40).map(float), st.integers(0, 4000).map(lambda hundredths: hundredths / 100))


@st.composite
def claims_of_a_level(draw: st.DrawFn) -> list[Claim]:
    return [
        Claim(
            name=f"queue-{place}",
            quota=draw(st.one_of(amounts, st.just(UNLIMITED))),
            weight=draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0])),
            request=draw(amounts),
            limit=draw(st.one_of(st.just(UNLIMITED), amounts)),
            priority=draw(st.sampled_from([50, 100, 200])),
            usage=draw(st.sampled_from([0.0, 0.25, 1.0])),
            created=draw(st.integers(0, 3)),
        )
        for place in range(draw(st.integers(0, 6)))
    ]


@given(total=amounts, claims=claims_of_a_level(), k=st.sampled_from([0.0, 0.5, 1.0, 5.0]))
def test_nobody_gets_less_than_quota_or_more_than_a_unit_too_much(total: float, claims: list[Claim], k: float) -> None:
    made = divide(total, claims, k=k)

    for claim in claims:
        share = made.shares[claim.name]
        assert share >= min(claim.quota, total, claim.wanted) - 1e-9
        assert share < claim.wanted + 1 + 1e-9
        if claim.weight == 0:
            assert share == min(total if claim.quota == UNLIMITED else claim.quota, claim.wanted)


@given(total=amounts, claims=claims_of_a_level(), k=st.sampled_from([0.0, 0.5, 1.0, 5.0]))
def test_no_more_is_given_than_there_is_but_for_quotas(total: float, claims: list[Claim], k: float) -> None:
    made = divide(total, claims, k=k)

    given_ = math.fsum(made.shares.values())
    promised = math.fsum(min(total if claim.quota == UNLIMITED else claim.quota, claim.wanted) for claim in claims)
    if promised > total:
        assert given_ == pytest.approx(promised)
        assert made.remaining == 0
    else:
        assert given_ + made.remaining == pytest.approx(total)


@given(total=amounts, claims=claims_of_a_level())
def test_nothing_remains_while_somebody_with_weight_wants_more(total: float, claims: list[Claim]) -> None:
    made = divide(total, claims, k=0.0)

    if made.remaining > 1e-6:
        assert all(claim.weight == 0 or made.shares[claim.name] >= claim.wanted - 1e-6 for claim in claims)


def exactly(total: float, claims: list[Claim], k: float) -> dict[str, Fraction]:
    """The rules once more, in fractions and as literally as they are written, to be compared with."""
    whole = Fraction(str(total))
    wanted = {x.name: Fraction(str(min(x.limit, x.request))) for x in claims}
    quota = {x.name: whole if x.quota == UNLIMITED else Fraction(str(x.quota)) for x in claims}
    fair = {name: min(quota[name], wanted[name]) for name in wanted}
    left = max(Fraction(0), whole - sum(fair.values()))
    priorities = sorted({x.priority for x in claims}, reverse=True)
    rest: dict[str, Fraction] = {}
    for priority in priorities:
        again = True
        while again and left > 0:
            again = False
            eager = [x for x in claims if x.priority == priority and fair[x.name] < wanted[x.name]]
            weights = sum(Fraction(str(x.weight)) for x in eager)
            parts = {x.name: Fraction(str(x.weight)) / weights for x in eager} if weights else {}
            usage = {x.name: Fraction(str(x.usage)) for x in eager}
            strength = {name: max(Fraction(0), n + Fraction(str(k)) * (n - usage[name])) for name, n in parts.items()}
            strength = {name: w if parts[name] else Fraction(0) for name, w in strength.items()}
            if not sum(strength.values()):
                break
            start = left
            for name, w in strength.items():
                offer = start * w / sum(strength.values())
                if not w:
                    continue
                missing = wanted[name] - fair[name]
                given_ = missing if missing <= offer else Fraction(math.floor(offer))
                again = again or missing < offer
                if missing <= offer:
                    rest.pop(name, None)
                elif offer > given_:
                    rest[name] = offer - given_
                fair[name] += given_
                left -= given_
    for priority in priorities:
        losers = [x for x in claims if x.priority == priority and x.name in rest]
        for x in sorted(losers, key=lambda x: (-rest[x.name], x.created, x.name)):
            given_ = min(Fraction(1), left)
            fair[x.name] += given_
            left -= given_
    return fair


@settings(max_examples=300)
@given(total=amounts, claims=claims_of_a_level(), k=st.sampled_from([0.0, 0.3, 1.0, 5.0]))
def test_floats_divide_as_fractions_would(total: float, claims: list[Claim], k: float) -> None:
    expected = {name: float(share) for name, share in exactly(total, claims, k).items()}

    assert divide(total, claims, k=k).shares == pytest.approx(expected, abs=1e-6)


@given(total=amounts, claims=claims_of_a_level(), seed=st.randoms())
def test_the_order_of_the_claims_does_not_matter(total: float, claims: list[Claim], seed: Random) -> None:
    shuffled = list(claims)
    seed.shuffle(shuffled)

    assert divide(total, shuffled, k=1.0).shares == divide(total, claims, k=1.0).shares
