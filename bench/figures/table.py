"""The table of a bench: what, ours, the peer's, the ratio, the budget, and whether it is met; 100 columns wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from bench.figures.comparison import Comparison, Sample

WIDTH = 100


def show(sections: Mapping[str, Sequence[Comparison]], facts: Sequence[str], console: Console) -> None:
    """Prints the medians of each part with the spread of their ratios, and what was measured on."""
    for title, comparisons in sections.items():
        table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column("what", width=20)
        table.add_column("ours", width=9, justify="right")
        table.add_column("peer", width=9, justify="right")
        table.add_column("", width=20)
        table.add_column("ratio (rounds)", width=19, justify="right")
        table.add_column("budget", width=10, justify="right")
        table.add_column("", width=7)
        for comparison in comparisons:
            table.add_row(*_cells(comparison))
        console.print(table)
        console.print()
    for fact in facts:
        console.print(fact, soft_wrap=True, highlight=False)


def _cells(comparison: Comparison) -> tuple[str, ...]:
    verdict, unit = comparison.verdict, comparison.unit
    colour = {"ok": "green", "MISSED": "bold red", "not run": "yellow"}.get(verdict, "")
    return (
        comparison.what,
        _figure(comparison.ours.median, unit),
        _figure(comparison.peer.median, unit) if comparison.peer is not None else "",
        comparison.peer_name,
        comparison.not_run or (_spread(comparison.ratio) if comparison.ratio is not None else ""),
        comparison.budget.shown if comparison.budget else "",
        f"[{colour}]{verdict}[/]" if colour else verdict,
    )


def _figure(value: float, unit: str) -> str:
    return f"{_number(value)} {unit}".strip()


def _spread(sample: Sample) -> str:
    """The median and, where there were several rounds, how far they lay apart."""
    low, high = _number(min(sample.values)), _number(max(sample.values))
    return _number(sample.median) if low == high else f"{_number(sample.median)} ({low}–{high})"


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
