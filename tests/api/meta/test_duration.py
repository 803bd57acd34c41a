from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.meta.duration import Duration, InvalidDuration, parse_duration

MICROSECOND = 10**3
MILLISECOND = 10**6
SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("+0", 0),
        ("5s", 5 * SECOND),
        ("1478s", 1478 * SECOND),
        ("-5s", -5 * SECOND),
        ("+5s", 5 * SECOND),
        ("-0s", 0),
        ("5.6s", 5600 * MILLISECOND),
        ("5.s", 5 * SECOND),
        (".5s", 500 * MILLISECOND),
        ("1.00s", SECOND),
        ("1.0040s", 1004 * MILLISECOND),
        ("100.00100s", 100_001 * MILLISECOND),
        ("10ns", 10),
        ("11us", 11 * MICROSECOND),
        pytest.param("12\u00b5s", 12 * MICROSECOND, id="12µs, the micro sign"),
        pytest.param("12\u03bcs", 12 * MICROSECOND, id="12μs, the Greek letter"),
        ("13ms", 13 * MILLISECOND),
        ("15m", 15 * MINUTE),
        ("16h", 16 * HOUR),
        ("3h30m", 3 * HOUR + 30 * MINUTE),
        ("10.5s4m", 4 * MINUTE + 10_500 * MILLISECOND),
        ("-2m3.4s", -(2 * MINUTE + 3400 * MILLISECOND)),
        ("1h2m3s4ms5us6ns", HOUR + 2 * MINUTE + 3 * SECOND + 4 * MILLISECOND + 5 * MICROSECOND + 6),
        ("39h9m14.425s", 39 * HOUR + 9 * MINUTE + 14_425 * MILLISECOND),
        ("1.5h", 90 * MINUTE),
        ("1.9ns", 1),
        ("52763797000ns", 52_763_797_000),
        ("0.3333333333333333333h", 20 * MINUTE),
        ("0.100000000000000000000h", 6 * MINUTE),
        pytest.param(f"0.{'3' * 400}h", 20 * MINUTE, id="four hundred digits"),
        ("0.830103483285477580700h", 49 * MINUTE + 48 * SECOND + 372_539_827),
        ("9007199254740993ns", 2**53 + 1),
        ("9223372036854775807ns", 2**63 - 1),
        ("9223372036854775.807us", 2**63 - 1),
        ("9223372036s854ms775us807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("-9223372036854775.808us", -(2**63)),
        ("-2562047h47m16.854775808s", -(2**63)),
    ],
)
def test_a_text_means_a_number_of_nanoseconds(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == Duration(nanoseconds)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "write numbers with units"),
        ("-", "write numbers with units"),
        ("3", "the number 3 has no unit"),
        (".5", "the number .5 has no unit"),
        ("1h30", "the number 30 has no unit"),
        ("s", "there is no number before 's'"),
        (".", "there is no number"),
        (".s", "there is no number before 's'"),
        ("+.s", "there is no number before 's'"),
        ("--5s", "there is no number before '-'"),
        ("1d", "'d' is no unit"),
        ("1H", "'H' is no unit"),
        ("1 s", "' s' is no unit"),
        (" 1s", "there is no number before ' '"),
        ("1s ", "'s ' is no unit"),
        ("1s-2s", "'s-' is no unit"),
        ("1s\n", "'s\\n' is no unit"),
        ("٣s", "there is no number before '٣s'"),
        ("9223372036854775808ns", "longer than a duration can be"),
        ("-9223372036854775809ns", "longer than a duration can be"),
        ("9223372036854775.808us", "longer than a duration can be"),
        ("9223372036854ms775us808ns", "longer than a duration can be"),
        ("3000000h", "longer than a duration can be"),
    ],
)
def test_what_is_no_duration_is_refused_by_name(text: str, problem: str) -> None:
    with pytest.raises(InvalidDuration) as refusal:
        parse_duration(text)
    assert f"duration {text!r} is not valid: " in str(refusal.value)
    assert problem in str(refusal.value)
    assert refusal.value.text == text


def test_a_monstrous_text_is_refused_in_a_short_message() -> None:
    with pytest.raises(InvalidDuration) as refusal:
        parse_duration("9" * 100_000 + "s")
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1100, "1.1µs"),
        (2200 * MICROSECOND, "2.2ms"),
        (300 * MILLISECOND, "300ms"),
        (SECOND, "1s"),
        (1500 * MILLISECOND, "1.5s"),
        (3300 * MILLISECOND, "3.3s"),
        (MINUTE, "1m0s"),
        (4 * MINUTE + 5 * SECOND, "4m5s"),
        (4 * MINUTE + 5001 * MILLISECOND, "4m5.001s"),
        (HOUR, "1h0m0s"),
        (90 * MINUTE, "1h30m0s"),
        (5 * HOUR + 6 * MINUTE + 7001 * MILLISECOND, "5h6m7.001s"),
        (8 * MINUTE + 1, "8m0.000000001s"),
        (100 * HOUR, "100h0m0s"),
        (2**63 - 1, "2562047h47m16.854775807s"),
    ],
)
def test_a_duration_is_written_as_go_writes_it(nanoseconds: int, text: str) -> None:
    assert str(Duration(nanoseconds)) == text
    if nanoseconds:
        assert str(Duration(-nanoseconds)) == f"-{text}"


def test_durations_are_ordered_by_length() -> None:
    assert parse_duration("-1h") < parse_duration("0") < parse_duration("59s") < parse_duration("1m")
    assert parse_duration("60s") == parse_duration("1m")
    assert len({parse_duration("60s"), parse_duration("1m")}) == 1


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("-1.5s", timedelta(seconds=-1.5)),
        ("1us", timedelta(microseconds=1)),
        ("1999ns", timedelta(microseconds=1)),
        ("-1999ns", timedelta(microseconds=-1)),
    ],
)
def test_a_duration_becomes_a_timedelta_less_what_is_finer_than_a_microsecond(text: str, length: timedelta) -> None:
    assert parse_duration(text).to_timedelta() == length


def test_a_duration_in_seconds_is_a_float() -> None:
    assert parse_duration("1m0.25s").seconds == 60.25


nanoseconds = st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**12), 10**12)


@given(nanoseconds)
def test_what_is_written_reads_back_as_the_same_length(nanoseconds: int) -> None:
    assert parse_duration(str(Duration(nanoseconds))) == Duration(nanoseconds)


@given(st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000)))
def test_a_timedelta_survives_the_way_through_a_duration(length: timedelta) -> None:
    assert Duration.of(length).to_timedelta() == length
