"""How one kind is printed: its columns, and the function from an object to its cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shoal.cluster.apiserver.kinds.kind import Object

Cells = Callable[[Object, datetime], list[Any]]
"""Gives an object's cells at a moment; does so for any object, even one that has nothing but metadata."""


@dataclass(frozen=True)
class Printer:
    """The columns of a kind's table and what fills them."""

    columns: list[dict[str, Any]]
    cells: Cells


Printers = Mapping[tuple[str, str], Printer]
"""Printers by group and kind."""


def column(
    name: str,
    description: str,
    *,
    kind: str = "string",
    format: str = "",  # noqa: A002 - the field's name
    priority: int = 0,
) -> dict[str, Any]:
    """A column definition as the wire has it; from priority 1 on it is only shown in wide tables."""
    return {"name": name, "type": kind, "format": format, "description": description, "priority": priority}


def wide(name: str, description: str) -> dict[str, Any]:
    """A column of text that is only shown in wide tables."""
    return column(name, description, priority=1)


def number(name: str, description: str) -> dict[str, Any]:
    """A column of whole numbers."""
    return column(name, description, kind="integer")


def boolean(name: str, description: str) -> dict[str, Any]:
    """A column of true and false."""
    return column(name, description, kind="boolean")


NAME = column("Name", "Name of the object.", format="name")
AGE = column("Age", "Time since the object was created.")
CONTAINERS = wide("Containers", "Names of the containers in the template.")
IMAGES = wide("Images", "Images of the containers in the template.")
SELECTOR = wide("Selector", "Labels that select the pods.")


def metadata_of(value: Object) -> Object:
    """The object's metadata, be it missing."""
    return value.get("metadata") or {}


def part_of(value: Object, *path: str) -> Object:
    """The object at this path; empty where something on the way to it is missing."""
    for field in path:
        value = value.get(field) or {}
    return value
