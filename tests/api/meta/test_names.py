from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.meta.names import (
    dns1035_label_problems,
    dns1123_label_problems,
    dns1123_subdomain_problems,
    fit_name,
    generate_name,
    label_value_problems,
    qualified_name_problems,
)

Check = Callable[[str], list[str]]

LETTER_FIRST = ["a", "ab", "abc", "a1", "a-1", "a--1--2--b", "a" * 63]
DIGIT_FIRST = ["0", "01", "012", "1a", "1-a", "1--a--b--2"]
DOTTED = ["a.a", "a.b", "1.2", "a--1--2--b.a", "0.1", "a.b.c.d.e", "11.22.33.44.55"]
NEVER_DNS = [
    "", "A", "ABC", "aBc", "A1", "A-1", "1-A", "-", "a-", "-a", "1-", "-1",
    "_", "a_", "_a", "a_b", "1_2", ".", "a.", ".a", "1.", ".1", "a..b",
    " ", "a ", " a", "a b", "a\n", "a@b", "a,b", "a;b", "a:b", "a%b", "a/b", "é",
]  # fmt: skip
QUALIFIED = [
    "simple", "now-with-dashes", "1-starts-with-num", "1234", "Uppercase_Is_OK_123", "requests.storage-foo", "a" * 63,
]  # fmt: skip
PREFIXED = [
    "simple/simple", "now.with.dots/simple", "1-num.2-num/3-num", "1.2.3.4/5678", "example.com/Uppercase_Is_OK_123",
    "a" * 253 + "/" + "b" * 63,
]  # fmt: skip
NEVER_QUALIFIED = [
    "nospecialchars%^=@",
    "cantendwithadash-",
    "-cantstartwithadash",
    ".dot",
    "dot.",
    "a b",
    "a\n",
    "a" * 64,
]


def cases(check: Check, *names: list[str]) -> list[object]:
    return [pytest.param(check, name, id=f"{check.__name__}-{name[:30]!r}") for group in names for name in group]


@pytest.mark.parametrize(
    ("check", "name"),
    [
        *cases(dns1035_label_problems, LETTER_FIRST),
        *cases(dns1123_label_problems, LETTER_FIRST, DIGIT_FIRST),
        *cases(dns1123_subdomain_problems, LETTER_FIRST, DIGIT_FIRST, DOTTED, ["a" * 253]),
        *cases(qualified_name_problems, QUALIFIED, PREFIXED),
        *cases(label_value_problems, QUALIFIED, [""]),
    ],
)
def test_a_good_name_has_no_problems(check: Check, name: str) -> None:
    assert check(name) == []


@pytest.mark.parametrize(
    ("check", "name"),
    [
        *cases(dns1035_label_problems, NEVER_DNS, DIGIT_FIRST, DOTTED, ["a" * 64]),
        *cases(dns1123_label_problems, NEVER_DNS, DOTTED, ["a" * 64]),
        *cases(dns1123_subdomain_problems, NEVER_DNS, ["a" * 254]),
        *cases(qualified_name_problems, NEVER_QUALIFIED, ["", "only/one/slash", "Example.com/abc", "example_com/abc"]),
        *cases(qualified_name_problems, ["example.com/", "/simple", "/", "a" * 254 + "/abc"]),
        *cases(label_value_problems, NEVER_QUALIFIED, PREFIXED, ["\\backslash", "Tama-nui-te-rā"]),
    ],
)
def test_a_bad_name_has_problems(check: Check, name: str) -> None:
    assert check(name)


@pytest.mark.parametrize(
    ("problems", "expected"),
    [
        (dns1123_label_problems("a.b"), ["must not contain dots"]),
        (dns1123_label_problems("a" * 70), ["must be no more than 63 characters, and has 70"]),
        (qualified_name_problems("example.com/"), ["name part must not be empty"]),
        (
            qualified_name_problems("/x"),
            ["prefix part must not be empty: leave out the '/' or write a DNS name before it"],
        ),
    ],
)
def test_a_problem_says_what_the_rule_is(problems: list[str], expected: list[str]) -> None:
    assert problems == expected


def test_all_problems_of_a_name_are_told_at_once() -> None:
    assert len(dns1035_label_problems("-" * 64)) == 2
    assert len(qualified_name_problems("A" * 254 + "/" + "-" * 64)) == 4


def test_a_generated_name_is_the_base_and_five_letters() -> None:
    name = generate_name("worker-", Random(1))
    assert name.startswith("worker-")
    assert len(name) == len("worker-") + 5
    assert set(name.removeprefix("worker-")) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert generate_name("worker-", Random(1)) == name
    assert generate_name("worker-", Random(2)) != name


def test_a_long_base_of_a_generated_name_is_cut_to_58() -> None:
    name = generate_name("a" * 58 + "b" * 10, Random(1))
    assert len(name) == 63
    assert name[:58] == "a" * 58


@pytest.mark.parametrize(("name", "limit"), [("short", 63), ("a" * 63, 63), ("a" * 20, 20)])
def test_a_name_that_fits_is_left_alone(name: str, limit: int) -> None:
    assert fit_name(name, limit) == name


def test_a_long_name_is_shortened_the_same_way_in_every_process() -> None:
    assert fit_name("trainer-" + "x" * 80) == "trainer-" + "x" * 46 + "-zbtlqc5k"


def test_long_names_that_differ_at_the_end_stay_different() -> None:
    assert fit_name("a" * 70 + "1") != fit_name("a" * 70 + "2")


def test_a_limit_with_no_room_for_a_digest_is_refused() -> None:
    with pytest.raises(ValueError, match="needs more than 9 characters, not 9"):
        fit_name("a" * 20, 9)


@given(st.from_regex(r"[a-z]([-a-z0-9]{0,120}[a-z0-9])?", fullmatch=True), st.integers(10, 63))
def test_a_shortened_label_is_a_label_within_the_limit(name: str, limit: int) -> None:
    fitted = fit_name(name, limit)
    assert len(fitted) <= limit
    assert dns1035_label_problems(fitted) == []
    assert fit_name(fitted, limit) == fitted


@given(st.from_regex(r"[a-z0-9]{1,9}([.-][a-z0-9]{1,9}){0,20}", fullmatch=True), st.integers(10, 63))
def test_a_shortened_subdomain_is_a_subdomain_wherever_it_was_cut(name: str, limit: int) -> None:
    assert dns1123_subdomain_problems(fit_name(name, limit)) == []
