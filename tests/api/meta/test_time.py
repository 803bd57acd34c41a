from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.meta.objects import ObjectMeta
from shoal.api.meta.time import InvalidTime, format_micro_time, format_time, now, parse_time

MORNING = datetime(1998, 5, 5, 5, 5, 5, tzinfo=UTC)
NEW_YORK = timezone(timedelta(hours=-4))


def test_now_is_a_whole_second_in_utc() -> None:
    before = datetime.now(UTC)
    moment = now()
    assert moment.tzinfo is UTC
    assert moment.microsecond == 0
    assert timedelta(seconds=-1) < moment - before < timedelta(seconds=5)


def test_now_is_what_the_wire_gives_back() -> None:
    moment = now()
    data = msgspec.json.encode(ObjectMeta(creation_timestamp=moment))
    assert msgspec.json.decode(data) == {"creationTimestamp": format_time(moment)}
    assert msgspec.json.decode(data, type=ObjectMeta).creation_timestamp == moment


@pytest.mark.parametrize(
    ("moment", "seconds", "microseconds"),
    [
        (MORNING, "1998-05-05T05:05:05Z", "1998-05-05T05:05:05.000000Z"),
        (MORNING.replace(microsecond=5), "1998-05-05T05:05:05Z", "1998-05-05T05:05:05.000005Z"),
        (MORNING.replace(microsecond=999_999), "1998-05-05T05:05:05Z", "1998-05-05T05:05:05.999999Z"),
        (datetime(1998, 5, 5, 1, 5, 5, tzinfo=NEW_YORK), "1998-05-05T05:05:05Z", "1998-05-05T05:05:05.000000Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
    ],
)
def test_a_time_is_written_in_utc_to_the_second_or_with_six_digits(
    moment: datetime, seconds: str, microseconds: str
) -> None:
    assert format_time(moment) == seconds
    assert format_micro_time(moment) == microseconds


@pytest.mark.parametrize("write", [format_time, format_micro_time])
def test_a_time_without_a_zone_is_refused(write: Callable[[datetime], str]) -> None:
    with pytest.raises(ValueError, match="1998-05-05T00:00:00 has no time zone"):
        write(datetime(1998, 5, 5))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1998-05-05T05:05:05Z", MORNING),
        ("1998-05-05T05:05:05.000000Z", MORNING),
        ("1998-05-05T05:05:05.5Z", MORNING.replace(microsecond=500_000)),
        ("1998-05-05T05:05:05.123456789Z", MORNING.replace(microsecond=123_456)),
        ("1998-05-05T01:05:05-04:00", MORNING),
        ("1998-05-05T10:35:05+05:30", MORNING),
        ("2024-02-29T23:59:59+00:00", datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_a_text_is_read_into_utc(text: str, moment: datetime) -> None:
    parsed = parse_time(text)
    assert parsed == moment
    assert parsed.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "1998-05-05",
        "1998-05-05T05:05Z",
        "1998-05-05T05:05:05",
        "1998-05-05 05:05:05Z",
        "1998-05-05t05:05:05z",
        "1998-05-05T05:05:05.Z",
        "1998-13-05T05:05:05Z",
        "1998-02-29T05:05:05Z",
        "1998-05-05T24:00:00Z",
        "1998-05-05T05:05:60Z",
        "1998-05-05T05:05:05+25:00",
        "0001-01-01T00:00:00+01:00",
        "98-05-05T05:05:05Z",
        "1998-05-05T05:05:05Z\n",
        "１998-05-05T05:05:05Z",
    ],
)
def test_what_is_no_time_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidTime) as refusal:
        parse_time(text)
    assert refusal.value.text == text
    assert f"time {text!r} is not valid: write it as RFC 3339 does" in str(refusal.value)


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.timezones() | st.just(UTC)))
def test_a_time_survives_its_text(moment: datetime) -> None:
    assert parse_time(format_micro_time(moment)) == moment.astimezone(UTC)
    assert parse_time(format_time(moment)) == moment.astimezone(UTC).replace(microsecond=0)
