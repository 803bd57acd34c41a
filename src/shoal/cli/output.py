"""How commands print what they found: documents as YAML or JSON for machines, tables for people.

All three are plain text with nothing cut off, the same in a terminal and in a pipe. YAML comes without anchors and in
the order given, so that the same values give the same bytes.
"""

from __future__ import annotations

import enum
import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NUMBER_TO_SOME = re.compile(r"[-+.]*[0-9][-+._0-9a-fA-FxXoO]*")
"""Text that is quoted because readers of YAML disagree on it: ``1e3`` is text to one and a number to kubectl."""


class DocumentFormat(enum.StrEnum):
    """For output that is a manifest."""

    YAML = "yaml"
    JSON = "json"


class Format(enum.StrEnum):
    """For output that people read and scripts may want."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


@dataclass(frozen=True)
class Table:
    """Rows under a heading; without one, rows of names and values."""

    rows: Sequence[Sequence[Any]]
    heading: Sequence[str] = field(default=())


def show(value: Any, output: Format, *, table: Table) -> None:
    """Prints one answer: the value for machines, or the table for people."""
    match output:
        case Format.TABLE:
            write(to_table(table))
        case Format.JSON:
            write(to_json(value))
        case Format.YAML:
            write(to_yaml([value]))


def show_manifests(manifests: Iterable[dict[str, Any]], output: DocumentFormat) -> None:
    """Prints Kubernetes objects, to be read by kubectl: as YAML documents, or as one JSON list."""
    match output:
        case DocumentFormat.YAML:
            write(to_yaml(manifests))
        case DocumentFormat.JSON:
            write(to_json({"apiVersion": "v1", "kind": "List", "items": list(manifests)}))


def write(text: str) -> None:
    """Prints text and waits until it is out: a full disk or a closed pipe is noticed here and not later."""
    sys.stdout.write(text)
    sys.stdout.flush()


def shortest(path: Path) -> Path:
    """A path as a person in this folder would write it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def to_json(value: Any) -> str:
    """JSON for people and machines, in the order given."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def to_yaml(documents: Iterable[Any]) -> str:
    """YAML documents, in the order given, without anchors."""
    import yaml  # noqa: PLC0415 - half of the commands do without

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc] # the C one where it was built
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text_node(dumper: Any, text: str) -> Any:
        style = "'" if _NUMBER_TO_SOME.fullmatch(text) else "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, text_node)
    many = list(documents)
    options: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": 120}
    text: str = yaml.dump_all(many, Dumper=Dumper, explicit_start=len(many) > 1, **options)
    return text


def to_table(table: Table) -> str:
    """Columns as wide as their widest cell, three blanks apart."""
    from rich.cells import cell_len  # noqa: PLC0415 - half of the commands do without

    lines = [[str(cell) for cell in row] for row in table.rows]
    if table.heading:
        lines.insert(0, [name.upper() for name in table.heading])
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        "   ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )
