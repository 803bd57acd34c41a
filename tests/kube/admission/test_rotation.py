from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kube.admission.rotation import Material, Policy, wanted_material
from shoal.kube.certificates import (
    KeyPair,
    bundle,
    covers,
    is_issued_by,
    is_matching,
    is_valid_at,
    make_authority,
    make_serving,
    separate,
)

START = datetime(2026, 5, 1, tzinfo=UTC)
DAY = timedelta(days=1)
POLICY = Policy(
    names=("hooks.shoal.svc",), authority_lifetime=90 * DAY, serving_lifetime=30 * DAY, settle=timedelta(hours=6)
)


def is_trusted(serving: KeyPair, authorities: bytes, now: datetime) -> bool:
    return is_valid_at(serving.certificate, now) and any(
        is_issued_by(serving.certificate, authority) and is_valid_at(authority, now)
        for authority in separate(authorities)
    )


@pytest.fixture(scope="module")
def first() -> Material:
    return wanted_material(None, POLICY, now=START)


def test_the_first_certificates_are_made_at_once(first: Material) -> None:
    assert is_matching(first.serving)
    assert is_matching(first.authority)
    assert covers(first.serving.certificate, POLICY.names)
    assert first.authorities == first.authority.certificate
    assert is_trusted(first.serving, first.authorities, START)


def test_at_rest_nothing_changes(first: Material) -> None:
    assert wanted_material(first, POLICY, now=START + 19 * DAY) is first


def test_a_serving_certificate_is_renewed_under_the_same_authority(first: Material) -> None:
    renewed = wanted_material(first, POLICY, now=START + 21 * DAY)
    assert renewed.serving != first.serving
    assert renewed.authorities == first.authorities
    assert is_trusted(renewed.serving, first.authorities, START + 21 * DAY)


def test_an_authority_is_renewed_in_three_steps() -> None:
    now = START + 58 * DAY
    old = wanted_material(wanted_material(None, POLICY, now=START), POLICY, now=now)

    now += 3 * DAY
    joined = wanted_material(old, POLICY, now=now)
    assert joined.authorities == bundle(joined.authority.certificate, old.authority.certificate)
    assert joined.serving == old.serving, "served before everyone can trust it"
    assert wanted_material(joined, POLICY, now=now + timedelta(hours=5)) is joined

    now += timedelta(hours=6)
    served = wanted_material(joined, POLICY, now=now)
    assert is_issued_by(served.serving.certificate, served.authority.certificate)
    assert served.authorities == joined.authorities, "the old authority left while a replica may still serve under it"
    assert wanted_material(served, POLICY, now=now + timedelta(hours=5)) is served

    now += timedelta(hours=6)
    left = wanted_material(served, POLICY, now=now)
    assert left.authorities == served.authority.certificate
    assert left.serving == served.serving


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=40, max_size=100))
def test_whoever_lags_by_less_than_the_settling_time_never_meets_a_stranger(steps: list[int]) -> None:
    """One replica may serve what it read a while ago, and an API server trust what it read at another time."""
    now, material = START, wanted_material(None, POLICY, now=START)
    replaced: list[tuple[datetime, Material]] = []
    for hours in steps:
        now += timedelta(hours=hours)
        newer = wanted_material(material, POLICY, now=now)
        if newer is not material:
            replaced.append((now, material))
            material = newer
        around = [material, *(older for until, older in replaced if until > now - POLICY.settle)]
        for served in around:
            for trusted in around:
                assert is_trusted(served.serving, trusted.authorities, now)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        pytest.param({"serving": KeyPair(b"garbage", b"garbage")}, "unreadable", id="unreadable certificate"),
        pytest.param({"serving": None}, "foreign", id="certificate of a stranger"),
    ],
)
def test_a_useless_serving_certificate_is_replaced_at_once(
    first: Material, damage: dict[str, KeyPair | None], problem: str
) -> None:
    stranger = make_authority("stranger", now=START, lifetime=90 * DAY)
    serving = damage["serving"] or make_serving(stranger, POLICY.names, now=START, lifetime=30 * DAY)
    damaged = Material(serving=serving, authority=first.authority, authorities=first.authorities)
    repaired = wanted_material(damaged, POLICY, now=START)
    assert is_trusted(repaired.serving, first.authorities, START), problem


def test_new_names_are_certified_at_once_under_the_same_authority(first: Material) -> None:
    elsewhere = Policy(names=("other.svc", "10.0.0.1"))
    moved = wanted_material(first, elsewhere, now=START)
    assert covers(moved.serving.certificate, elsewhere.names)
    assert moved.authorities == first.authorities


def test_after_everything_expired_everything_is_made_anew(first: Material) -> None:
    now = START + 200 * DAY
    anew = wanted_material(first, POLICY, now=now)
    assert is_trusted(anew.serving, anew.authorities, now)
    assert len(separate(anew.authorities)) == 1


def test_a_lost_authority_key_starts_over_but_keeps_trusting_what_is_served(first: Material) -> None:
    lost = Material(
        serving=first.serving,
        authority=KeyPair(first.authority.certificate, b"lost"),
        authorities=first.authorities,
    )
    anew = wanted_material(lost, POLICY, now=START)
    assert is_trusted(anew.serving, anew.authorities, START)
    assert is_trusted(first.serving, anew.authorities, START)


def test_a_policy_that_leaves_no_time_for_its_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="too late for steps"):
        Policy(names=("a",), serving_lifetime=timedelta(hours=2), settle=timedelta(hours=1))
