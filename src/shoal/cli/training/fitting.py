"""Making a table fit a terminal, by the columns that a person misses least."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence

from shoal.cli.output import Table

_GAP = 3
_CUT = "…"
NOTHING = "-"


def terminal_width() -> int | None:
    """How wide the reader's terminal is; None where it is none, for then nothing needs to fit."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fitted(table: Table, width: int | None, least: Mapping[str, int]) -> Table:
    """The table in so many columns, as far as that is possible.

    ``least`` names the columns that may be cut, in that order, and what is left of them at least. One of them that says
    nothing is left out. All others are whole: names are there to be copied.
    """
    rows, heading = [[str(cell) for cell in row] for row in table.rows], list(table.heading)
    for name, kept in least.items():
        excess = _width(rows, heading) - width if width is not None else 0
        if excess <= 0 or name not in heading:
            continue
        at = heading.index(name)
        if all(row[at] == NOTHING for row in rows):
            rows, heading = [[*row[:at], *row[at + 1 :]] for row in rows], [*heading[:at], *heading[at + 1 :]]
            continue
        room = max(kept, len(name), _column_width(rows, heading, at) - excess)
        rows = [[*row[:at], _cut(row[at], room), *row[at + 1 :]] for row in rows]
    return Table(rows, heading)


def _cut(text: str, room: int) -> str:
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415 - only where a terminal is narrow

    return text if cell_len(text) <= room else set_cell_size(text, room - 1).rstrip() + _CUT


def _width(rows: Sequence[Sequence[str]], heading: Sequence[str]) -> int:
    return sum(_column_width(rows, heading, at) + _GAP for at in range(len(heading))) - _GAP


def _column_width(rows: Sequence[Sequence[str]], heading: Sequence[str], at: int) -> int:
    from rich.cells import cell_len  # noqa: PLC0415

    return max(cell_len(text) for text in (heading[at], *(row[at] for row in rows)))
