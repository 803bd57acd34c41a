"""How values that lie in an object as JSON are read as what their types say: moments, spans, bytes, doubles."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from shoal.cluster.apiserver.cel.types import BYTES, DOUBLE, DURATION, INT, TIMESTAMP, Type
from shoal.cluster.apiserver.cel.values import CelError, Optional, parse_duration, parse_timestamp


def reader(given: Type) -> Callable[[Any], Any] | None:
    """How a value of the type is read from an object; None where it is taken as it lies."""
    if given == INT:
        return _whole
    if given == DOUBLE:
        return lambda value: float(value) if type(value) is int else value
    if given == TIMESTAMP:
        return lambda value: _moment(value) if type(value) is str else value
    if given == DURATION:
        return lambda value: _span(value) if type(value) is str else value
    if given == BYTES:
        return lambda value: _decoded(value) if type(value) is str else value
    if given.name == "optional_type":
        inner = reader(given.parameters[0])
        if inner is None:
            return None
        read = inner
        return lambda value: Optional(read(value.value)) if type(value) is Optional else value
    return None


def whole_reader(given: Type) -> Callable[[Any], Any] | None:
    """The same for a list or map that is handed to a function whole."""
    if given.name not in ("list", "map"):
        return reader(given)
    inner = whole_reader(given.parameters[-1])
    if inner is None:
        return None
    read = inner
    if given.name == "list":
        return lambda value: [read(each) for each in value]
    return lambda value: {key: read(each) for key, each in value.items()}


def _whole(value: Any) -> Any:
    if type(value) is float:
        raise CelError("invalid data, expected int, got float64")
    return value


def _moment(text: str) -> Any:
    return parse_timestamp(f"{text}T00:00:00Z" if len(text) == 10 else text)


def _span(text: str) -> Any:
    return parse_duration(text)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CelError(f"Invalid byte formatted string {text}: {error}") from None
