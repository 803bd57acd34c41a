"""YAML as Go's sigs.k8s.io/yaml turns it into JSON: YAML 1.1's many booleans, no times, keys as texts.

The document is built from libyaml's events on a stack of our own: nesting cannot overflow anything, and the first
document is all that is read. An alias is a copy, since later steps change what they own; copies are counted, as Go
does, so that a small text cannot grow without bound.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import yaml
from yaml import events

_DEEPEST = 500
_SECURE_COUNT = 400_000
_FEW_ALIASES = 100
_FEW_VALUES = 1000
_ALIAS_SHARE = 0.99
_TAG = "tag:yaml.org,2002:"
_TRUE = frozenset(f for word in ("y", "yes", "true", "on") for f in (word, word.capitalize(), word.upper()))
_FALSE = frozenset(f for word in ("n", "no", "false", "off") for f in (word, word.capitalize(), word.upper()))
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_INTEGER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]([0-7]+)|0([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = {
    form: value
    for word, value in ((".inf", "+Inf"), ("+.inf", "+Inf"), ("-.inf", "-Inf"), (".nan", "NaN"))
    for form in (word, word.replace("inf", "Inf").replace("nan", "NaN"), word.upper())
}


class BadYaml(ValueError):
    """A text that is no YAML, or none that is JSON as well; the message is Go's."""


class _Open:
    """A list or map that is not at its end yet."""

    def __init__(self, value: Any, anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.size = 1
        self.key: Any = _NO_KEY
        self.key_line = 0
        self.is_merge = False


class _NoKey:
    pass


_NO_KEY = _NoKey()


def read_document(raw: bytes) -> tuple[Any, list[str]]:
    """The first document as JSON values, and what strict decoding says of keys that are given twice."""
    reader = _Reader()
    try:
        value = reader.read(yaml.parse(raw, Loader=yaml.CSafeLoader))
    except yaml.reader.ReaderError as error:
        raise BadYaml(f"yaml: {error.reason}") from error
    except yaml.MarkedYAMLError as error:
        raise BadYaml(f"yaml: {_where(error)}{error.problem or 'unknown problem parsing YAML content'}") from error
    duplicates = ["yaml: unmarshal errors:" + "".join(f"\n  {each}" for each in reader.duplicates)]
    return value, duplicates if reader.duplicates else []


class _Reader:
    def __init__(self) -> None:
        self.duplicates: list[str] = []
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._values = 0
        self._copied = 0

    def read(self, stream: Iterator[yaml.Event]) -> Any:
        open_: list[_Open] = []
        for event in stream:
            if isinstance(event, (events.SequenceStartEvent, events.MappingStartEvent)):
                if len(open_) >= _DEEPEST:
                    line = event.start_mark.line if event.start_mark else 0
                    place = f"line {line + 1}: " if line else ""
                    raise BadYaml(f"yaml: {place}exceeded max depth of 10000")
                if event.anchor:
                    self._anchors[event.anchor] = None
                open_.append(_Open([] if isinstance(event, events.SequenceStartEvent) else {}, event.anchor))
                continue
            if isinstance(event, events.ScalarEvent):
                is_merge = bool(open_) and _is_merge(event) and isinstance(open_[-1].value, dict)
                if is_merge and open_[-1].key is _NO_KEY:
                    open_[-1].key, open_[-1].is_merge = "<<", True
                    continue
                value, size = _scalar(event), 1
                if event.anchor:
                    self._anchors[event.anchor] = value, size
            elif isinstance(event, events.AliasEvent):
                value, size = self._copy_of(event.anchor or "")
            elif isinstance(event, (events.SequenceEndEvent, events.MappingEndEvent)):
                ended = open_.pop()
                value, size = ended.value, ended.size
                if ended.anchor:
                    self._anchors[ended.anchor] = value, size
            elif isinstance(event, events.DocumentEndEvent):
                break
            else:
                continue
            self._count()
            if not open_:
                return value
            open_[-1].size += size
            self._put(open_[-1], value, event.start_mark.line + 1 if event.start_mark else 0)
        return None

    def _put(self, into: _Open, value: Any, line: int) -> None:
        if isinstance(into.value, list):
            into.value.append(value)
        elif into.key is _NO_KEY:
            into.key, into.key_line = value, line
        else:
            if into.is_merge:
                _merge(into.value, value)
            else:
                key = _key(into.key, value)
                if key in into.value:
                    self.duplicates.append(f'line {into.key_line}: key "{key}" already set in map')
                into.value[key] = value
            into.key, into.is_merge = _NO_KEY, False

    def _copy_of(self, anchor: str) -> tuple[Any, int]:
        if anchor not in self._anchors:
            raise BadYaml(f"yaml: unknown anchor '{anchor}' referenced")
        known = self._anchors[anchor]
        if known is None:
            raise BadYaml(f"yaml: anchor '{anchor}' value contains itself")
        value, size = known
        self._copied += size
        self._values += size
        self._count(0)
        return _copy(value), size

    def _count(self, values: int = 1) -> None:
        """A document may grow by its aliases, but not almost wholly by them, and not without end."""
        self._values += values
        if self._copied <= _FEW_ALIASES or self._values <= _FEW_VALUES:
            return
        if self._copied > _ALIAS_SHARE * self._values or self._copied > _SECURE_COUNT:
            raise BadYaml("yaml: document contains excessive aliasing")


def _where(error: yaml.MarkedYAMLError) -> str:
    """Go names the line where it is not the first, and counts it from one only for the scanner's problems."""
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark is not None and error.context_mark.line:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


def _is_merge(event: yaml.ScalarEvent) -> bool:
    return event.value == "<<" and (event.implicit[0] or event.tag == f"{_TAG}merge")


def _merge(into: dict[str, Any], value: Any) -> None:
    """Puts what ``<<`` names in its place: later fields win, and of several maps the earlier ones."""
    maps = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in maps):
        raise BadYaml("yaml: map merge requires map or sequence of maps as the value")
    for each in reversed(maps):
        into.update(each)


def _scalar(event: yaml.ScalarEvent) -> Any:
    tag = (event.tag or "").removeprefix(_TAG)
    text = event.value
    if tag == "binary":
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
        except ValueError as error:
            raise BadYaml("yaml: !!binary value contains invalid base64 data") from error
    if tag in _TAGGED:
        value = _resolved(text)
        if not isinstance(value, _TAGGED[tag]):
            raise BadYaml(f"yaml: cannot decode !!{_tag_of(value)} `{text}` as a !!{tag}")
        return value
    return _resolved(text) if event.implicit[0] else text


_TAGGED: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}


def _tag_of(value: Any) -> str:
    return {str: "str", bool: "bool", int: "int", float: "float"}.get(type(value), "null")


def _resolved(text: str) -> Any:
    """What a plain text means."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    first = text[0]
    if first not in "+-.0123456789":
        return text
    if text in _NOT_FINITE:
        raise BadYaml(f"json: unsupported value: {_NOT_FINITE[text]}")
    digits = text.replace("_", "")
    if whole := _INTEGER.fullmatch(digits):
        sign, *parts = whole.groups()
        written = next((part, base) for part, base in zip(parts, (16, 2, 8, 8, 10), strict=True) if part is not None)
        try:
            number = int(*written)
            number = -number if sign == "-" else number
            return number if -(2**63) <= number < 2**64 else _float(float(number))
        except (OverflowError, ValueError):
            return text  # more than any float holds
    if _FLOAT.fullmatch(digits):
        fraction = float(digits)
        return text if math.isinf(fraction) else _float(fraction)
    return text


def _float(number: float) -> int | float:
    """A float as Go writes it in JSON: without a point where it is whole."""
    return int(Decimal(repr(number))) if number.is_integer() and abs(number) < 1e21 else number


def _key(key: Any, value: Any) -> str:
    """A key as JSON has it: a text, whatever it was."""
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case int() if -(2**63) <= key < 2**63:
            return str(key)
        case float():
            return repr(key)
        case list() | dict():
            raise BadYaml(f"yaml: invalid map key: {_go_value(key)}")
    shown, kind = ("<nil>", "%!s(<nil>)") if key is None else (hex(key), "uint64")
    raise BadYaml(f"unsupported map key of type: {kind}, key: {shown}, value: {_go_value(value)}")


def _go_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(_go_value(item) for item in value)}}}"
    if isinstance(value, dict):
        inner = ", ".join(f"{_go_value(key)}:{_go_value(item)}" for key, item in value.items())
        return f"map[interface {{}}]interface {{}}{{{inner}}}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
