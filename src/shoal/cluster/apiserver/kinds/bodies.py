"""What clients send, as plain values: JSON and YAML, with the fields that were given twice.

Reading is lenient where Kubernetes is (bytes that are no UTF-8 become U+FFFD, the first document of a stream counts)
and says no in its words. The usual body is read once by msgspec; what costs time is done only where something is odd.
"""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from shoal.cluster.apiserver.kinds.json_scan import json_problem
from shoal.cluster.apiserver.kinds.yaml_reader import BadYaml, read_document

_MOST_DUPLICATES = 100
_SHOWN = 30
_DEEP = 100
_LONG = 1000
_NO_VERSION = "couldn't get version/kind; json parse error: "
_MOST_DIGITS = 20
_LONG_NUMBER = b"0" * 20
_ANY_DIGIT = bytes.maketrans(b"123456789", b"000000000")
"""With these a number of more than 64 bits is found quickly: msgspec reads one of any length as an int."""
_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_NAMES = {str: "string", bool: "bool", dict: "object", list: "array", int: "number", float: "number"}


class BadBody(ValueError):
    """A body that cannot be read; ``problem`` is what Kubernetes' decoder says."""

    def __init__(self, problem: str, raw: bytes, *, version: str = "", kind: str = "") -> None:
        self.problem = problem
        self.raw = raw
        self.version, self.kind = version, kind
        """What the body says that it is, where that could be read."""
        super().__init__(problem)

    @property
    def plain(self) -> str:
        """The problem where no object was expected, and so nobody looked for its kind."""
        return self.problem.removeprefix(_NO_VERSION)

    def unrecognized(self, kind: str) -> str:
        """The message of the 400 where an object of this kind was expected."""
        if self.kind:
            version = self.version.rpartition("/")[2]
            return f'{self.kind} in version "{version}" cannot be handled as a {kind}: {self.problem}'
        return f"the object provided is unrecognized (must be of type {kind}): {self.problem} ({_summary(self.raw)})"


def read_json(raw: bytes, *, merges: bool = False) -> tuple[Any, list[str]]:
    """The value, and ``duplicate field "spec.x"`` for each field that is given twice; raises BadBody.

    Of such a field the last value counts; ``merges`` where objects are put together, as Go does for known types.
    """
    is_json = False
    try:
        value = msgspec.json.decode(raw)
        is_json = True
        if _LONG_NUMBER in raw.translate(_ANY_DIGIT):
            return _read_odd_json(raw, merges=merges, is_json=is_json)
        # A decoded object holds each field once, so that fewer fields come out than went in where one is given twice.
        if _has_as_many_fields(raw, msgspec.json.encode(value)):
            return value, []
    except (msgspec.MsgspecError, UnicodeDecodeError, OverflowError, RecursionError):
        pass
    return _read_odd_json(raw, merges=merges, is_json=is_json)


def read_yaml(raw: bytes) -> tuple[Any, list[str]]:
    """The same of the first YAML document, as Go's sigs.k8s.io/yaml turns it into JSON; raises BadBody."""
    value = _read_plain_json(raw)
    if value is not None:
        return value, []
    try:
        return read_document(raw)
    except BadYaml as error:
        raise BadBody(str(error), raw) from error


def _read_plain_json(raw: bytes) -> dict[str, Any] | None:
    """The object of a text that is JSON as programs write it, which means the same as YAML; None for any other text.

    Most of what is applied is such a text, and YAML takes twenty times as long to read. Left to the reader of YAML
    are letters and nesting that it may refuse, fractions and long numbers, which it writes otherwise, and fields that
    are given twice.
    """
    if not raw.startswith(b"{") or not raw.isascii() or b"\x7f" in raw or b"\\u" in raw or b'"<<"' in raw:
        return None
    if _LONG_NUMBER in raw.translate(_ANY_DIGIT):
        return None
    try:
        value: dict[str, Any] = _WITHOUT_FRACTIONS.decode(raw)
    except (msgspec.MsgspecError, OverflowError, RecursionError, _Fraction):
        return None
    return value if msgspec.json.encode(value) == raw and _is_usual(value) else None


class _Fraction(Exception):
    """A number that is not whole."""


def _no_fraction(text: str) -> float:
    raise _Fraction(text)


_WITHOUT_FRACTIONS = msgspec.json.Decoder(float_hook=_no_fraction)


def _is_usual(value: dict[str, Any]) -> bool:
    """Whether a value is nested no more deeply, and its names are no longer, than YAML bears."""
    level: list[Any] = [value]
    for _ in range(_DEEP):
        inside: list[Any] = []
        for each in level:
            if type(each) is dict:
                if any(len(name) > _LONG for name in each):
                    return False
                inside += each.values()
            else:
                inside += each
        level = [item for item in inside if type(item) is dict or type(item) is list]
        if not level:
            return True
    return False


def version_and_kind(value: Any, raw: bytes) -> tuple[str, str]:
    """The apiVersion and kind that a body states, empty where it states none; raises BadBody where they are no texts.

    A body that is no object at all has neither, and is refused here.
    """
    if value is None:
        return "", ""
    if not isinstance(value, dict):
        raise _no_version(f"json: cannot unmarshal {_NAMES[type(value)]} into Go value of type {_TYPE_META}", raw)
    for field in ("apiVersion", "kind"):
        found = value.get(field)
        if found is not None and not isinstance(found, str):
            problem = f"json: cannot unmarshal {_NAMES[type(found)]} into Go struct field .{field} of type string"
            raise _no_version(problem, raw)
    version = value.get("apiVersion") or ""
    if version.count("/") > 1:
        raise BadBody(f"unexpected GroupVersion string: {version}", raw)
    return version, value.get("kind") or ""


def _has_as_many_fields(given: bytes, written: bytes) -> bool:
    """Whether a text of JSON has as many fields as what was read of it and written again, as far as a glance tells.

    Colons stand after names and inside texts; those in texts are the same in both, unless they are escaped.
    """
    if given == written:
        return True
    is_escaped = b"\\u003a" in given or b"\\u003A" in given
    return not is_escaped and given.count(b":") == written.count(b":")


def _read_odd_json(raw: bytes, *, merges: bool, is_json: bool) -> tuple[Any, list[str]]:
    # To look for the problem letter by letter takes long, and would find none where it has been read already.
    if not is_json and (problem := json_problem(raw)):
        raise _no_version(problem, raw)
    duplicates: dict[str, None] = {}
    try:
        text = raw.decode("utf-8", "replace")
        parsed = json.loads(text, object_pairs_hook=_Pairs, parse_int=_whole, parse_float=_finite)
        value = _without_pairs(parsed, "", duplicates, merges=merges)
    except RecursionError as error:
        raise _no_version("exceeded max depth", raw) from error
    except _NotFinite as error:
        problem = f"json: cannot unmarshal number {error} into Go value of type float64"
        raise BadBody(problem, raw) from error
    return value, [f"duplicate field {json.dumps(path, ensure_ascii=False)}" for path in duplicates]


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written: each field with its value, twice where it stands there twice."""


def _without_pairs(value: Any, path: str, duplicates: dict[str, None], *, merges: bool) -> Any:
    if isinstance(value, _Pairs):
        made: dict[str, Any] = {}
        for key, item in value:
            name = _valid(key)
            place = f"{path}.{name}" if path else name
            if name in made and len(duplicates) < _MOST_DUPLICATES:
                duplicates[place] = None
            read = _without_pairs(item, place, duplicates, merges=merges)
            made[name] = _merged(made.get(name), read) if merges else read
        return made
    if isinstance(value, list):
        return [
            _without_pairs(item, f"{path}[{position}]", duplicates, merges=merges)
            for position, item in enumerate(value)
        ]
    if isinstance(value, str):
        return _valid(value)
    return value


def _merged(first: Any, second: Any) -> Any:
    if not isinstance(first, dict) or not isinstance(second, dict):
        return second
    return first | {name: _merged(first.get(name), item) for name, item in second.items()}


class _NotFinite(Exception):
    """A number that is larger than any float."""


def _whole(text: str) -> int | float:
    """A whole number; one of more than 64 bits is a float, as in Go."""
    number = int(text) if len(text) <= _MOST_DIGITS else None
    return number if number is not None and -(2**63) <= number < 2**64 else _finite(text)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NotFinite(text)
    return number


def _valid(text: str) -> str:
    """A text without halves of surrogate pairs, which JSON can escape and UTF-8 cannot write."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _no_version(problem: str, raw: bytes) -> BadBody:
    return BadBody(_NO_VERSION + problem, raw)


def _summary(raw: bytes) -> str:
    if not raw:
        return "<empty>"
    start = raw[:_SHOWN]
    shown = start.decode("utf-8", "replace") if raw.startswith(b"{") else start.hex()
    return f"{shown} ..." if len(raw) > _SHOWN else shown
