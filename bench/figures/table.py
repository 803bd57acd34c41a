"""The table of a bench: what, ours, the peer's, the ratio, the budget, and whether it is met; 100 columns wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from bench.figures.comparison import Comparison, Sample

WIDTH = 100


def show(sections: Mapping[str, Sequence[Comparison]], facts: Sequence[str], console: Console) -> None:
    """Prints the figures of each part and what was measured on."""
    for title, comparisons in sections.items():
        table = Table(title=title, title_justify="left", width=WIDTH, show_edge=False, pad_edge=False)
        table.add_column("what", ratio=1)
        for name in ("ours", "peer", "ratio", "budget"):
            table.add_column(name, justify="right")
        table.add_column("")
        for comparison in comparisons:
            table.add_row(*_cells(comparison))
        console.print(table)
        console.print()
    for fact in facts:
        console.print(fact, soft_wrap=True, highlight=False)


def _cells(comparison: Comparison) -> tuple[str, ...]:
    verdict = comparison.verdict
    colour = {"ok": "green", "MISSED": "bold red", "not run": "yellow"}.get(verdict, "")
    return (
        comparison.what,
        spread(comparison.ours, comparison.unit),
        _peer(comparison),
        spread(comparison.ratio, "×") if comparison.ratio is not None else "",
        comparison.budget.shown if comparison.budget else "",
        f"[{colour}]{verdict}[/]" if colour else verdict,
    )


def _peer(comparison: Comparison) -> str:
    if comparison.not_run:
        return f"{comparison.peer_name}\nnot run: {comparison.not_run}"
    if comparison.peer is None:
        return comparison.peer_name
    return f"{comparison.peer_name}\n{spread(comparison.peer, comparison.unit)}"


def spread(sample: Sample, unit: str) -> str:
    """The median and, where there were several rounds, how far they lay apart."""
    shown = f"{_number(sample.median)} {unit}".strip()
    low, high = _number(min(sample.values)), _number(max(sample.values))
    return shown if low == high else f"{shown}\n{low}–{high}"


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
