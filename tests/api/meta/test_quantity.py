from collections.abc import Callable
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.meta.objects import Wire
from shoal.api.meta.quantity import (
    ZERO_QUANTITY,
    InvalidQuantity,
    Quantity,
    QuantityFormat,
    QuantityString,
    ResourceList,
    parse_quantity,
)

SI = QuantityFormat.DECIMAL_SI
BINARY = QuantityFormat.BINARY_SI
EXPONENT = QuantityFormat.DECIMAL_EXPONENT

LARGEST = 2**63 - 1

PARSED = [
    ("0", 0, SI),
    ("0n", 0, SI),
    ("0u", 0, SI),
    ("0m", 0, SI),
    ("0k", 0, SI),
    ("0T", 0, SI),
    ("0Ki", 0, BINARY),
    ("0Ti", 0, BINARY),
    ("00", 0, SI),
    ("1", 1, SI),
    ("1Ki", 1024, BINARY),
    ("8Ki", 8 * 1024, BINARY),
    ("7Mi", 7 * 1024**2, BINARY),
    ("6Gi", 6 * 1024**3, BINARY),
    ("5Ti", 5 * 1024**4, BINARY),
    ("4Pi", 4 * 1024**5, BINARY),
    ("3Ei", 3 * 1024**6, BINARY),
    ("100Ti", 100 * 1024**4, BINARY),
    ("5n", Fraction(5, 10**9), SI),
    ("4u", Fraction(4, 10**6), SI),
    ("3m", Fraction(3, 1000), SI),
    ("9", 9, SI),
    ("8k", 8000, SI),
    ("50k", 50_000, SI),
    ("7M", 7 * 10**6, SI),
    ("6G", 6 * 10**9, SI),
    ("5T", 5 * 10**12, SI),
    ("300T", 300 * 10**12, SI),
    ("2P", 2 * 10**15, SI),
    # The suffix E is exa; the letter E before a number is an exponent.
    ("1E", 10**18, SI),
    ("12E", 12 * 10**18, SI),
    ("1E3", 1000, EXPONENT),
    ("1e3", 1000, EXPONENT),
    ("1E-3", Fraction(1, 1000), EXPONENT),
    ("1E+3", 1000, EXPONENT),
    ("1e0", 1, EXPONENT),
    ("1E18", 10**18, EXPONENT),
    ("1e14", 10**14, EXPONENT),
    ("1e40", 10**40, EXPONENT),
    ("100.035k", 100_035, SI),
    ("0.001", Fraction(1, 1000), SI),
    ("0.0005k", Fraction(1, 2), SI),
    ("0.05", Fraction(1, 20), SI),
    ("0.50000", Fraction(1, 2), SI),
    ("0.5e0", Fraction(1, 2), EXPONENT),
    ("0.5e-2", Fraction(5, 1000), EXPONENT),
    ("10.035M", 10_035_000, SI),
    ("1.2e3", 1200, EXPONENT),
    ("1.3E+6", 1_300_000, EXPONENT),
    ("1.53E12", 1_530_000_000_000, EXPONENT),
    ("9.01", Fraction(901, 100), SI),
    ("6.987654321G", 6_987_654_321, SI),
    ("40.1T", 401 * 10**11, SI),
    ("1.01E", 101 * 10**16, SI),
    # Finer than a billionth: up.
    ("3.001n", Fraction(4, 10**9), SI),
    ("1.1E-9", Fraction(2, 10**9), EXPONENT),
    ("0.0000000001", Fraction(1, 10**9), SI),
    ("0.0000000005", Fraction(1, 10**9), SI),
    ("0.5e-9", Fraction(1, 10**9), EXPONENT),
    ("1e-999999", Fraction(1, 10**9), EXPONENT),
    ("0e-999999", 0, EXPONENT),
    ("0.9n", Fraction(1, 10**9), SI),
    ("0.00000012345", Fraction(124, 10**9), SI),
    ("0.00000012354", Fraction(124, 10**9), SI),
    # Binary amounts end at 64 bits, decimal ones do not.
    ("9Ei", LARGEST, BINARY),
    ("9223372036854775807Ki", LARGEST, BINARY),
    ("9223372036854775808", 2**63, SI),
    ("100.035Ki", Fraction(10_243_584, 100), BINARY),
    ("0.5Mi", 512 * 1024, BINARY),
    ("0.05Gi", Fraction(536_870_912, 10), BINARY),
    ("0.025Ti", Fraction(274_877_906_944, 10), BINARY),
    # Below one, a binary suffix turns decimal.
    ("0.0005Ki", Fraction(512, 1000), SI),
    ("0.000000000001Ki", Fraction(2, 10**9), SI),
    (".001", Fraction(1, 1000), SI),
    (".0001k", Fraction(1, 10), SI),
    ("1.", 1, SI),
    ("1.G", 10**9, SI),
    ("007", 7, SI),
]


@pytest.mark.parametrize(("sign", "factor"), [("", 1), ("+", 1), ("-", -1)], ids=["plain", "plus", "minus"])
@pytest.mark.parametrize(("text", "amount", "form"), PARSED, ids=[case[0] for case in PARSED])
def test_a_text_means_an_exact_amount_in_a_family_of_suffixes(
    text: str, amount: int | Fraction, form: QuantityFormat, sign: str, factor: int
) -> None:
    parsed = Quantity.parse(sign + text)
    assert Fraction(parsed.nano, 10**9) == factor * amount
    assert parsed.format is form


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1024Mi", "1Gi"),
        ("307200Ki", "300Mi"),
        ("6Ki", "6Ki"),
        ("1025024Mi", "1001Gi"),
        ("1024Gi", "1Ti"),
        ("1024Pi", "1Ei"),
        ("0.5Gi", "512Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.0005Ki", "512m"),
        ("1.1Ki", "1126400m"),
        ("100.035Ki", "102435840m"),
        ("0.05Gi", "53687091200m"),
        (".001Ki", "1024m"),
        (".000001Ki", "1024u"),
        (".000000001Ki", "1024n"),
        (".000000000001Ki", "2n"),
        ("9Ei", "9223372036854775807"),
        ("1000m", "1"),
        ("5000m", "5"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1.08", "1080m"),
        ("1080000000n", "1080m"),
        ("1000u", "1m"),
        ("1000M", "1G"),
        ("0.001T", "1G"),
        ("1000000k", "1G"),
        ("1000000000", "1G"),
        ("1234567M", "1234567M"),
        ("100000", "100k"),
        ("1025Ki", "1025Ki"),
        ("0Ki", "0"),
        ("-0", "0"),
        ("00", "0"),
        (".001e12", "1e9"),
        ("0.001e0", "1e-3"),
        ("1000e-12", "1e-9"),
        ("1000e0", "1e3"),
        ("80e-3", "80e-3"),
        ("0.5e3", "500"),
        ("1e5", "100e3"),
        ("1e-1", "100e-3"),
        ("1e400", "10e399"),
        ("1.123456789123", "1123456790n"),
    ],
)
def test_a_quantity_is_written_with_the_largest_suffix_that_needs_no_fraction(text: str, canonical: str) -> None:
    assert str(Quantity.parse(text)) == canonical
    if canonical != "0":
        assert str(-Quantity.parse(text)) == f"-{canonical}"
        assert str(Quantity.parse(f"-{text}")) == f"-{canonical}"


@pytest.mark.parametrize("text", ["1.500", "+2", "1E3", "1E-3", "005", "1.", "+1Ki", "01Ki", "2.123M", "1001e-3"])
def test_a_text_that_an_api_server_would_keep_is_kept(text: str) -> None:
    parsed = Quantity.parse(text)
    assert str(parsed) == text
    assert str(parsed + ZERO_QUANTITY) == str(Quantity(parsed.nano, parsed.format))


@pytest.mark.parametrize("text", ["+8Ki", "+1000", "1.5000", "+1Pi", "+0", "+1.5", "+1234567890123456789"])
def test_a_text_that_an_api_server_would_rewrite_is_rewritten(text: str) -> None:
    parsed = Quantity.parse(text)
    assert str(parsed) == str(Quantity(parsed.nano, parsed.format)) != text


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        pytest.param(Quantity.parse("1000E"), "1000E", id="decimal"),
        pytest.param(Quantity.parse("1Ei") * 1024, "1024Ei", id="binary"),
    ],
)
def test_beyond_the_last_suffix_no_factor_is_lost(quantity: Quantity, text: str) -> None:
    assert str(quantity) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1.1.M",
        "1+1.0M",
        "0.1mi",
        "0.1am",
        "aoeu",
        ".5i",
        "1i",
        "-3.01i",
        "-3.01e-",
        "1e",
        "1e3.5",
        "1e3k",
        "1K",
        "1ki",
        "1Eii",
        " 1",
        "1 ",
        "1\n",
        "1_000",
        "1,000",
        "--1",
        "٣",
        "0x10",
        "inf",
        # An API server reads these as zero; nobody means that.
        "m",
        "Ki",
        "e3",
        ".",
        "-",
    ],
)
def test_what_is_no_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidQuantity) as refusal:
        Quantity.parse(text)
    assert refusal.value.text == text
    assert f"quantity {text!r} is not valid" in str(refusal.value)
    assert "one of Ki Mi Gi Ti Pi Ei" in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1e999999999", id="exponent"),
        pytest.param("1e1001", id="exponent past the limit"),
        pytest.param("9" * 5000, id="digits"),
        pytest.param("1e" + "9" * 5000, id="digits of the exponent"),
    ],
)
def test_a_monstrous_number_is_refused_in_a_short_message(text: str) -> None:
    with pytest.raises(InvalidQuantity) as refusal:
        Quantity.parse(text)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("50m", "100m"),
        ("100Gi", "10000T"),
        ("1G", "1Gi"),
        ("-1", "0"),
        ("-2Gi", "-1Gi"),
        ("999m", "1"),
        ("0", "1n"),
        ("9Ei", "10E"),
    ],
)
def test_quantities_compare_by_amount(less: str, more: str) -> None:
    low, high = Quantity.parse(less), Quantity.parse(more)
    assert low < high
    assert high > low
    assert low <= high
    assert high >= low
    assert low != high
    assert max(low, high) is high


@pytest.mark.parametrize(
    ("one", "other"), [("1Gi", "1024Mi"), ("1000m", "1"), ("1e3", "1k"), ("0.5Ki", "512"), ("0Ki", "0")]
)
def test_quantities_of_one_amount_are_equal_however_they_are_written(one: str, other: str) -> None:
    assert Quantity.parse(one) == Quantity.parse(other)
    assert len({Quantity.parse(one), Quantity.parse(other)}) == 1


@pytest.mark.parametrize(
    ("one", "other", "total", "difference"),
    [
        ("100m", "0", "100m", "100m"),
        ("1Gi", "0", "1Gi", "1Gi"),
        ("0", "100m", "100m", "-100m"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("0", "1e3", "1e3", "-1e3"),
        ("1Gi", "1G", "2073741824", "73741824"),
        ("1k", "1Ki", "2024", "-24"),
        ("500m", "0.5", "1", "0"),
        ("9223372036854775807", "1", "9223372036854775808", "9223372036854775806"),
        ("1Mi", "512Ki", "1536Ki", "512Ki"),
    ],
)
def test_sums_and_differences_keep_the_suffixes_of_the_first_that_is_not_zero(
    one: str, other: str, total: str, difference: str
) -> None:
    assert str(Quantity.parse(one) + Quantity.parse(other)) == total
    assert str(Quantity.parse(one) - Quantity.parse(other)) == difference


@pytest.mark.parametrize(
    ("text", "factor", "product"),
    [
        ("100m", 10, "1"),
        ("1.5Gi", 2, "3Gi"),
        ("10", -10, "-100"),
        ("-50", -50, "2500"),
        ("50", 0, "0"),
        ("1E", 100, "100E"),
    ],
)
def test_a_quantity_times_a_whole_number_is_exact(text: str, factor: int, product: str) -> None:
    assert str(Quantity.parse(text) * factor) == product
    assert str(factor * Quantity.parse(text)) == product


def test_a_quantity_is_not_mixed_with_other_numbers() -> None:
    one: Any = Quantity.of(1)
    assert one != 1
    mixed: list[Callable[[], Any]] = [lambda: one + 1, lambda: one - 1, lambda: one * 1.5, lambda: one < 2]
    for operation in mixed:
        with pytest.raises(TypeError):
            operation()


@pytest.mark.parametrize(
    ("text", "whole", "thousandths"),
    [
        ("1", 1, 1000),
        ("1n", 1, 1),
        ("1m", 1, 1),
        ("1001u", 1, 2),
        ("1.5", 2, 1500),
        ("100m", 1, 100),
        ("4Gi", 4 * 1024**3, 4 * 1024**3 * 1000),
        ("0", 0, 0),
        ("-1.5", -2, -1500),
        ("-1n", -1, -1),
        ("12E", 12 * 10**18, 12 * 10**21),
    ],
)
def test_whole_and_milli_values_round_away_from_zero(text: str, whole: int, thousandths: int) -> None:
    assert Quantity.parse(text).value() == whole
    assert Quantity.parse(text).milli_value() == thousandths


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Quantity.of(1), "1"),
        (Quantity.of(1000), "1k"),
        (Quantity.of(1_234_000), "1234k"),
        (Quantity.of(1024, BINARY), "1Ki"),
        (Quantity.of(1023, BINARY), "1023"),
        (Quantity.of(1024**2, BINARY), "1Mi"),
        (Quantity.of(10**6, EXPONENT), "1e6"),
        (Quantity.of_milli(1), "1m"),
        (Quantity.of_milli(1000), "1"),
        (Quantity.of_milli(1024, BINARY), "1024m"),
        (Quantity.of_milli(1024**2, BINARY), "1048576m"),
        (Quantity.of_milli(10**6, EXPONENT), "1e3"),
    ],
    ids=str,
)
def test_a_quantity_made_of_a_number_is_written_in_its_family(quantity: Quantity, text: str) -> None:
    assert str(quantity) == text


def test_zero_is_zero_in_every_family() -> None:
    assert Quantity.parse("0Ki").is_zero
    assert (Quantity.parse("1Gi") - Quantity.parse("1024Mi")).is_zero
    assert not Quantity.parse("1n").is_zero


def test_a_quantity_reads_as_a_float_where_one_is_wanted() -> None:
    assert float(Quantity.parse("1.1Ki")) == 1126.4
    assert float(Quantity.parse("-250m")) == -0.25


class Requests(Wire, frozen=True, kw_only=True):
    limit: QuantityString = 0
    requests: ResourceList = {}


@pytest.mark.parametrize(
    ("json", "text"),
    [
        ('"100m"', "100m"),
        ('" 1"', "1"),
        ('"1 "', "1"),
        ("10", "10"),
        ("-1", "-1"),
        ("1000", "1k"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("99999999999999999999999", "99999999999999999999999"),
    ],
)
def test_the_wire_has_quantities_as_texts_or_numbers(json: str, text: str) -> None:
    decoded = msgspec.json.decode(f'{{"requests": {{"cpu": {json}}}, "limit": {json}}}', type=Requests)
    assert str(parse_quantity(decoded.requests["cpu"])) == text
    assert str(parse_quantity(decoded.limit)) == text


def test_what_was_written_goes_back_as_it_came() -> None:
    data = b'{"limit":2,"requests":{"cpu":"0.5","memory":"1024Mi"}}'
    assert msgspec.json.encode(msgspec.json.decode(data, type=Requests)) == data


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "4 Gi"], ids=repr)
def test_what_the_wire_must_not_have_is_refused(value: QuantityString) -> None:
    with pytest.raises(InvalidQuantity, match="is not valid"):
        parse_quantity(value)


amounts = st.integers(-LARGEST * 10**9, LARGEST * 10**9) | st.integers(-(10**12), 10**12)
quantities = st.builds(Quantity, amounts, st.sampled_from(QuantityFormat)) | st.builds(
    lambda mantissa, steps: Quantity.of(mantissa * 1024**steps, BINARY), st.integers(-1023, 1023), st.integers(0, 5)
)


@given(quantities)
def test_what_is_written_reads_back_as_the_same_amount(quantity: Quantity) -> None:
    text = str(quantity)
    assert Quantity.parse(text) == quantity
    assert "." not in text
    # A whole number that no power of 1024 divides has lost its family on the way, and may come back as thousands.
    assert quantity.format is BINARY or str(Quantity.parse(text)) == text


@given(
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**24),
    st.text("0123456789", max_size=14),
    st.sampled_from(["n", "u", "m", "", "k", "M", "G", "T", "P", "E"]),
)
def test_an_amount_is_exact_or_the_next_billionth_away_from_zero(
    sign: str, whole: int, fraction: str, suffix: str
) -> None:
    power = 10 ** (3 * "numkMGTPE".index(suffix) - 9 + (3 if suffix in "kMGTPE" else 0)) if suffix else 1
    exact = Fraction(f"{whole}.{fraction or 0}") * Fraction(power).limit_denominator(10**9)
    read = Fraction(Quantity.parse(f"{sign}{whole}.{fraction}{suffix}").nano, 10**9)
    assert 0 <= abs(read) - exact < Fraction(1, 10**9)
    assert read == 0 or (read < 0) == (sign == "-")


@given(quantities, quantities, quantities)
def test_addition_is_exact(one: Quantity, two: Quantity, three: Quantity) -> None:
    assert (one + two) + three == one + (two + three)
    assert one + two == two + one
    assert one + two - two == one
    assert one + ZERO_QUANTITY == one
    assert one - two == -(two - one)
    assert one + one + one == one * 3
    assert sum([one, two, three], ZERO_QUANTITY).nano == one.nano + two.nano + three.nano


@given(quantities, quantities, quantities)
def test_order_survives_addition(one: Quantity, two: Quantity, three: Quantity) -> None:
    assert (one < two) == (one + three < two + three)
