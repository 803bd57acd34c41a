"""``shoal version``: says which Shoal this is and what it runs on."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from shoal import __version__
from shoal.cli.output import Format, Table, show

EXAMPLES = {"shoal version -o json": "For a bug report or a script"}


def version(
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print.")] = Format.TABLE,
) -> None:
    """Say which Shoal this is and what it runs on."""
    facts = {"version": __version__, "python": platform.python_version(), "platform": platform.platform()}
    show(facts, output, table=Table(rows=list(facts.items())))
