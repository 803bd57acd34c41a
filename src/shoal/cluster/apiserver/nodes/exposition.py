"""The text that an agent serves at /metrics/resource, read into points: so much by then."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

_LINE = re.compile(
    rb"^(node|container)_(cpu_usage_seconds_total|memory_working_set_bytes|start_time_seconds)"
    rb"(?:\{([^\n]*)\})?[ \t]+(\S+)(?:[ \t]+(-?[0-9]+))?[ \t\r]*$",
    re.MULTILINE,
)
_LABEL = re.compile(rb'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_END_OF_TIME = 1 << 37
_CPU, _MEMORY = b"cpu_usage_seconds_total", b"memory_working_set_bytes"


class Container(NamedTuple):
    """Whose usage it is."""

    namespace: str
    pod: str
    name: str


class Point(NamedTuple):
    """A value, and the second at which it was so."""

    value: float
    at: float


@dataclass(slots=True)
class Measured:
    """What is known of a container or a node at one moment."""

    cpu: Point | None = None
    """Seconds of a core, all in all."""
    memory: Point | None = None
    """Bytes in use."""
    started: float | None = None
    """The second at which it began to run."""


@dataclass(slots=True)
class Exposition:
    """All that one answer of an agent tells."""

    node: Measured = field(default_factory=Measured)
    containers: dict[Container, Measured] = field(default_factory=dict)


def read_exposition(text: bytes, *, now: float) -> Exposition:
    """Reads the Prometheus text format; a line without a timestamp is of ``now``, and others' lines are passed over."""
    told = Exposition()
    for owner, what, labels, number, milliseconds in _LINE.findall(text):
        try:
            point = Point(float(number), int(milliseconds) / 1000 if milliseconds else now)
        except ValueError:
            continue
        measured = told.node if owner == b"node" else _container(told, labels)
        if measured is None or not 0 <= point.value < float("inf") or not 0 <= point.at < _END_OF_TIME:
            continue
        if what == _CPU:
            measured.cpu = point
        elif what == _MEMORY:
            measured.memory = point
        else:
            measured.started = point.value
    return told


def _container(told: Exposition, labels: bytes) -> Measured | None:
    found = {name: value.decode(errors="replace") for name, value in _LABEL.findall(labels)}
    try:
        key = Container(found[b"namespace"], found[b"pod"], found[b"container"])
    except KeyError:
        return None
    return told.containers.setdefault(key, Measured())
