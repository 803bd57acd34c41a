"""``"%s has %d".format([…])``."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from shoal.cluster.apiserver.cel.values import CelError, Duration, Timestamp, TypeValue, plain_decimal

_CLAUSE = re.compile(r"%(?:(%)|(?:\.(\d+))?(.)?)", re.DOTALL)
_LONGEST_NUMBER = 6
_MOST_DIGITS = 1100
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_NAMES = {
    "NoneType": "null_type",
    "str": "string",
    "float": "double",
    "UInt": "uint",
    "dict": "map",
    "TypeValue": "type",
}


def formatted(text: str, values: list[Any]) -> str:
    """The text with its clauses filled in."""
    rest = iter(values)
    used = 0

    def fill(clause: re.Match[str]) -> str:
        nonlocal used
        if clause[1]:
            return "%"
        if not clause[3]:
            raise CelError("could not parse formatting clause: unexpected end of string")
        try:
            value = next(rest)
        except StopIteration:
            raise CelError(f"index {used} out of range") from None
        used += 1
        return _filled(clause[3], value, None if clause[2] is None else _precision(clause[2]))

    return _CLAUSE.sub(fill, text)


def _precision(digits: str) -> int:
    """Kubernetes would write as many digits as are asked for; no double has more than this."""
    if len(digits) > _LONGEST_NUMBER or int(digits) > _MOST_DIGITS:
        raise CelError("operation cancelled: actual cost limit exceeded")
    return int(digits)


def _filled(letter: str, value: Any, precision: int | None) -> str:
    match letter:
        case "s":
            return shown(value)
        case "d":
            return _decimal(value)
        case "f":
            return _fixed(value, precision)
        case "e":
            return _scientific(value, precision)
        case "b":
            return _binary(value)
        case "o":
            return f"{_integer(value, 'octal'):o}"
        case "x" | "X":
            return _hexadecimal(value, letter)
    raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')


def shown(value: Any) -> str:
    """A value as %s writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return _plain(value) if math.isfinite(value) else _not_finite(value)
        case bytes():
            return value.decode(errors="replace")
        case Duration():
            return f"{plain_decimal(value.nanos, 9)}s"
        case TypeValue():
            return str(value.type).partition("(")[0]
        case list():
            return f"[{', '.join(map(shown, value))}]"
        case dict():
            entries = sorted((shown(key), shown(each)) for key, each in value.items())
            return "{" + ", ".join(f"{key}: {each}" for key, each in entries) + "}"
        case int() | Timestamp():
            return str(int(value) if isinstance(value, int) else value)
    raise CelError(
        f"error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, "
        f"maps, lists, types, durations, and timestamps, was given {_name(value)}"
    )


def _name(value: Any) -> str:
    name = type(value).__name__
    return _NAMES.get(name, name)


def _plain(value: float) -> str:
    return f"{Decimal(repr(value)).normalize():f}" if value else "0"


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decimal(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return _not_finite(value)
    if isinstance(value, float):
        return _plain(value)
    raise CelError(f"error during formatting: decimal clause can only be used on integers, was given {_name(value)}")


def _double(value: Any, clause: str) -> float:
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if isinstance(value, float | int) and not isinstance(value, bool):
        return float(value)
    raise CelError(f"error during formatting: {clause} clause can only be used on doubles, was given {_name(value)}")


def _fixed(value: Any, precision: int | None) -> str:
    number = _double(value, "fixed-point")
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"
    return f"{number:,.{6 if precision is None else precision}f}"


def _scientific(value: Any, precision: int | None) -> str:
    number = _double(value, "scientific")
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"
    mantissa, _, exponent = f"{number:.{6 if precision is None else precision}e}".partition("e")
    power = int(exponent)
    raised = (f"{power:03d}" if power < 0 else f"{power:02d}").translate(_RAISED)
    return f"{mantissa}×10{raised}"


def _binary(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return f"{int(value):b}"
    raise CelError(
        f"error during formatting: only integers and bools can be formatted as binary, was given {_name(value)}"
    )


def _integer(value: Any, clause: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise CelError(f"error during formatting: {clause} clause can only be used on integers, was given {_name(value)}")


def _hexadecimal(value: Any, letter: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):{letter}}"
    if isinstance(value, str | bytes):
        digits = (value.encode() if isinstance(value, str) else value).hex()
        return digits.upper() if letter == "X" else digits
    raise CelError(
        "error during formatting: only integers, byte buffers, and strings can be formatted as hex, "
        f"was given {_name(value)}"
    )
