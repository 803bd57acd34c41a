import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.meta.int_or_string import IntOrString, InvalidPercentage, parse_int_or_string, scaled_value
from shoal.api.meta.objects import Wire


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (123, 0, 123, 123),
        (-1, 10, -1, -1),
        ("90%", 100, 90, 90),
        ("90%", 95, 86, 85),
        ("25%", 1, 1, 0),
        ("0%", 10, 0, 0),
        ("100%", 7, 7, 7),
        ("150%", 3, 5, 4),
        ("+5%", 20, 1, 1),
        ("-25%", 10, -2, -3),
        ("1%", 10**18, 10**16, 10**16),
    ],
)
def test_a_number_is_itself_and_a_percentage_a_share(value: IntOrString, total: int, up: int, down: int) -> None:
    assert scaled_value(value, total, round_up=True) == up
    assert scaled_value(value, total, round_up=False) == down


@pytest.mark.parametrize(
    "text", ["%", "90#", "#%", "90", "30%0", "40%%", "a%", "a", "", " 5%", "5 %", "5%\n", "2.5%", "٣%"]
)
def test_any_other_text_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidPercentage) as refusal:
        scaled_value(text, 10, round_up=True)
    assert refusal.value.text == text
    assert str(refusal.value).startswith(f"{text!r} is neither a number nor a percentage: write")


@given(st.integers(0, 1000), st.integers(0, 10**6))
def test_the_two_roundings_enclose_the_share(percentage: int, total: int) -> None:
    up = scaled_value(f"{percentage}%", total, round_up=True)
    down = scaled_value(f"{percentage}%", total, round_up=False)
    assert down * 100 <= percentage * total <= up * 100
    assert up - down <= 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("2147483647", 2147483647),
        ("-2147483648", -2147483648),
        ("2147483648", "2147483648"),
        ("-2147483649", "-2147483649"),
        ("9223372036854775808", "9223372036854775808"),
        ("25%", "25%"),
        ("http", "http"),
        ("", ""),
    ],
)
def test_a_text_is_a_number_where_it_fits_32_bits(text: str, value: IntOrString) -> None:
    assert parse_int_or_string(text) == value


class Port(Wire, frozen=True, kw_only=True):
    target_port: IntOrString


@pytest.mark.parametrize("data", [b'{"targetPort":8080}', b'{"targetPort":"http"}', b'{"targetPort":"8080"}'])
def test_the_wire_keeps_numbers_and_texts_apart(data: bytes) -> None:
    assert msgspec.json.encode(msgspec.json.decode(data, type=Port)) == data
