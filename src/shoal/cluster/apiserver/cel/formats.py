"""The formats of strings that the API server checks, by the names that schemas give them.

A format of any other name is accepted and means nothing, as in Kubernetes.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
import unicodedata
from collections.abc import Callable

from shoal.cluster.apiserver.cel.urls import InvalidUrl, parse_request_uri

_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_HOSTNAME = re.compile(r"[LDS](?:-?[LDS]{0,62})?|(?:[LDS](?:[LDS-]{0,61}[LDS])?\.)+L{2,63}")
_HEX = "[0-9a-f]"
_UUID = rf"(?i){_HEX}{{8}}-?{_HEX}{{4}}-?%s-?%s-?{_HEX}{{12}}"
_ANY, _VARIANT = f"{_HEX}{{4}}", f"[89ab]{_HEX}{{3}}"
_CARD = re.compile(
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})"
)
_BYTE = r"\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_GO_SPAN = re.compile(r"[-+]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_SPAN_PART = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)")
_WORDED_SPAN = re.compile(r"(\d+)\s*([A-Za-zµ]+)")
_UNITS = (
    (1, ("ns", "nano")),
    (10**3, ("us", "µs", "micro")),
    (10**6, ("ms", "milli")),
    (10**9, ("s", "sec")),
    (60 * 10**9, ("m", "min")),
    (3600 * 10**9, ("h", "hr", "hour")),
    (86400 * 10**9, ("d", "day")),
    (7 * 86400 * 10**9, ("w", "wk", "week")),
)


def is_date(text: str) -> bool:
    """``2006-01-02``."""
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:
        return False
    try:
        # Go knows the year 0, which is a leap year like 2000.
        datetime.date.fromisoformat("2000" + text[4:] if text.startswith("0000") else text)
    except ValueError:
        return False
    return True


def is_date_time(text: str) -> bool:
    """RFC 3339, and a little more, as the API server has it."""
    day, *rest = text.lower().split("t")
    clock = _CLOCK.fullmatch(rest[0]) if rest else None
    return clock is not None and is_date(day) and clock[1] <= "23" and clock[2] <= "59" and clock[3] <= "59"


def is_uri(text: str) -> bool:
    """An absolute URI, or an absolute path."""
    try:
        parse_request_uri(text)
    except InvalidUrl:
        return False
    return True


def span_nanos(text: str) -> int | None:
    """A duration in nanoseconds, as Go writes it (``1h30m``) or in words (``3 days``); None where it is none."""
    if _GO_SPAN.fullmatch(text):
        total = 0
        for whole, fraction, unit in _SPAN_PART.findall(text):
            scale = next(scale for scale, names in _UNITS if unit.replace("μ", "µ") in names)
            total += int(whole or 0) * scale + (int(fraction) * scale // 10 ** len(fraction) if fraction else 0)
        return -total if text.startswith("-") else total
    total, is_known = 0, False
    for count, word in _WORDED_SPAN.findall(text):
        unit = word.lower()
        for scale, names in _UNITS:
            if unit in names[:-1] or unit.startswith(names[-1]):
                total, is_known = total + int(count) * scale, True
    return total if is_known else None


def _is_email(text: str) -> bool:
    named = re.fullmatch(r'\s*(?:"[^"]*"|[^<>@",]*)\s*<([^<>]+)>\s*', text)
    address = named[1] if named else text.strip()
    local, at, domain = address.rpartition("@")
    atom = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u0080-\U0010ffff-]+"
    is_local = re.fullmatch(rf'{atom}(?:\.{atom})*|"[^"]*"', local) is not None
    return bool(at) and is_local and re.fullmatch(rf"{atom}(?:\.{atom})*|\[[0-9.:A-Fa-f]+\]", domain) is not None


def is_address(text: str) -> bool:
    """An IP address as Go's net package reads it, which takes leading zeros in its sloppy mode."""
    try:
        ipaddress.ip_address(_without_leading_zeros(text))
    except ValueError:
        return False
    return "%" not in text


def _without_leading_zeros(text: str) -> str:
    return ".".join(part.lstrip("0") or "0" if part.isdigit() else part for part in text.split("."))


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not slash or not re.fullmatch(r"[0-9]{1,3}", bits) or not is_address(address):
        return False
    return int(bits) <= (128 if ":" in address else 32)


def _is_hostname(text: str) -> bool:
    if len(text) > 255 or any(len(each) > 63 for each in text.split(".")):
        return False
    return _HOSTNAME.fullmatch("".join(map(_letter_class, text))) is not None


def _letter_class(letter: str) -> str:
    """L for a letter, D for a digit, S for a symbol of any kind; anything else is itself."""
    if letter.isascii() and letter.isdigit():
        return "D"
    category = unicodedata.category(letter)[0]
    return category if category in "LS" else "-" if letter == "-" else "." if letter == "." else "!"


def _is_isbn10(text: str) -> bool:
    plain = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"[0-9]{9}[0-9X]", plain) is None:
        return False
    total = sum((at + 1) * int(digit) for at, digit in enumerate(plain[:9]))
    return (total + 10 * (10 if plain[9] == "X" else int(plain[9]))) % 11 == 0


def _is_isbn13(text: str) -> bool:
    plain = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"[0-9]{13}", plain) is None:
        return False
    return sum((1, 3)[at % 2] * int(digit) for at, digit in enumerate(plain)) % 10 == 0


def _is_card(text: str) -> bool:
    plain = re.sub(r"[^0-9]+", "", text)
    if _CARD.fullmatch(plain) is None:
        return False
    doubled = [int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(plain))]
    return sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


is_uuid = _matches(_UUID % (_ANY, _ANY))
is_base64 = _matches(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")

FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(r"[0-9a-fA-F]{24}"),
    "uri": is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": lambda text: "." in text and is_address(text),
    "ipv6": lambda text: ":" in text and is_address(text),
    "cidr": _is_cidr,
    "mac": _matches(
        r"(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1){4,18}[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{4}\.){2,9}[0-9a-fA-F]{4}"
    ),
    "uuid": is_uuid,
    "uuid3": _matches(_UUID % (f"3{_HEX}{{3}}", _ANY)),
    "uuid4": _matches(_UUID % (f"4{_HEX}{{3}}", _VARIANT)),
    "uuid5": _matches(_UUID % (f"5{_HEX}{{3}}", _VARIANT)),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_card,
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matches(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(rf"rgb\({_BYTE},{_BYTE},{_BYTE}\)"),
    "byte": is_base64,
    "password": lambda _text: True,
    "date": is_date,
    "duration": lambda text: span_nanos(text) is not None,
    "datetime": is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and re.fullmatch(_LABEL, text) is not None,
    "k8slongname": lambda text: len(text) <= 253 and re.fullmatch(rf"{_LABEL}(?:\.{_LABEL})*", text) is not None,
}
"""By their names without dashes, which is how the API server compares them."""
