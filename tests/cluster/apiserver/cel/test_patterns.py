"""Patterns mean what they mean to Go."""

from __future__ import annotations

import time

import pytest

from shoal.cluster.apiserver.cel import matching
from shoal.cluster.apiserver.cel.formats import FORMATS
from shoal.cluster.apiserver.cel.matching import matcher
from shoal.cluster.apiserver.cel.patterns import InvalidPattern, compile_pattern

MATCHES = [
    ("^[a-z]+$", "abc", True),
    ("^[a-z]+$", "abc\n", False),
    (r"^\d+$", "٣", False),
    (r"^\w+$", "é", False),
    (r"a\z", "ba", True),
    ("(?i)abc", "xABCx", True),
    ("x(?i)abc", "xABC", True),
    ("(?m)^b$", "a\nb\nc", True),
    ("^[[:alpha:]]+$", "abc", True),
    ("^[[:alpha:][:digit:]-]+$", "a-1", True),
    (r"^\p{L}+$", "äé", True),
    (r"\Qa.b\E", "a.b", True),
    (r"\Qa.b\E", "axb", False),
    ("(?P<x>a)b", "ab", True),
    ("(?<x>a)b", "ab", True),
    ("a{2,3}", "aa", True),
    ("^a{,3}$", "a{,3}", True),
    ("^[]a]+$", "]a", True),
    (r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$", "1h30m", True),
    (r"^(/[^/]+)+$", "/a/b", True),
]


@pytest.mark.parametrize(("pattern", "text", "matches"), MATCHES)
def test_a_pattern_finds_what_go_finds(pattern: str, text: str, matches: bool) -> None:
    assert (compile_pattern(pattern).search(text) is not None) is matches
    assert matcher(pattern)(text) is matches


@pytest.mark.parametrize(("pattern", "text", "matches"), MATCHES)
def test_the_quick_and_the_steady_engine_agree(pattern: str, text: str, matches: bool) -> None:
    steady = matching._linear(pattern)
    assert steady is not None
    assert steady(text) is matches


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 5000 + "!"),
        ("^([a-z0-9]+[-.]?)+$", "a" * 40 + "!"),
        ("(x+x+)+y", "x" * 5000),
        ("^(a|a)*$", "a" * 60 + "!"),
        ("(.*)(.*)(.*)(.*)(.*)(.*)z", "a" * 5000),
        ("a*a*a*a*a*b", "a" * 5000),
        (r"\s+$", " " * 500_000 + "x"),
        ("a?" * 40 + "a" * 40, "a" * 39),
        ("^(?:a?){40}a{40}$", "a" * 39),
        ("(a{0,30}){0,30}b", "a" * 200),
    ],
)
def test_no_pattern_takes_long(pattern: str, text: str) -> None:
    started = time.perf_counter()
    assert not matcher(pattern)(text)
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize("text", ["", "\0", "ä" * 20, "\U0001f41f" * 20, "\ud800" * 20, "a\0b" * 10])
def test_texts_of_any_letters_are_matched(text: str) -> None:
    assert matcher("^(.|\\n)*$")(text)


@pytest.mark.parametrize(
    "pattern",
    ["(", "a**", "(?=a)", r"(a)\1", "a{1001}", "[a", "(?P=x)", "a)", "*a", r"\8", "(?>a)", "((a{30}){30}){30}"],
)
def test_what_go_does_not_compile_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidPattern, match="error parsing regexp"):
        matcher(pattern)


FORMAT_CASES = {
    "datetime": (
        ["2020-01-02T03:04:05Z", "2020-01-02t03:04:05.123z", "2020-01-02T03:04:05+02:00"],
        ["2020-01-02", "x"],
    ),
    "date": (["2020-02-29"], ["2021-02-29", "2020-1-1"]),
    "ipv4": (["1.2.3.4", "1.2.3.04"], ["1.2.3", "::1", "1.2.3.256"]),
    "ipv6": (["::1", "2001:db8::68"], ["1.2.3.4", "g::1", "fe80::1%eth0"]),
    "cidr": (["10.0.0.0/8", "10.1.2.3/8", "::/0"], ["10.0.0.0", "10.0.0.0/33"]),
    "uri": (["http://a.b/c", "/x", "mailto:a@b"], ["a b", "", "x/y", "http://a b/"]),
    "uuid": (["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"], ["x", "123e4567"]),
    "email": (["a@b.c", "A B <a@b.c>"], ["x", "@b", "a@"]),
    "hostname": (["a", "a.bc", "host-1.example.com", "aGk="], ["_x_", "-a", "a..b"]),
    "byte": (["aGk=", "YWJj"], ["", "%", "aGk"]),
    "duration": (["1h30m", "3 days", "22 ns", "0", "-1.5h"], ["x", "", "5"]),
    "mac": (["00:00:5e:00:53:01", "0000.5e00.5301"], ["00:00", "zz:00:5e:00:53:01"]),
    "isbn10": (["0321751043"], ["0321751044"]),
    "isbn13": (["978-0321751041"], ["978-0321751042"]),
    "creditcard": (["4111 1111 1111 1111"], ["4111 1111 1111 1112"]),
    "hexcolor": (["#fff", "ABCDEF"], ["#ff"]),
    "rgbcolor": (["rgb(255,0,1)"], ["rgb(256,0,1)"]),
    "k8sshortname": (["a-b"], ["A_", "a.b"]),
    "k8slongname": (["a-b.c"], ["a..b"]),
}


@pytest.mark.parametrize("name", FORMAT_CASES)
def test_formats_tell_right_from_wrong(name: str) -> None:
    right, wrong = FORMAT_CASES[name]
    assert [text for text in right if not FORMATS[name](text)] == []
    assert [text for text in wrong if FORMATS[name](text)] == []


def test_a_pattern_that_only_a_backtracking_engine_takes_is_refused() -> None:
    with pytest.raises(InvalidPattern, match="expression too large"):
        matcher(r"^(x+x+)+y\pL{1000}$")
