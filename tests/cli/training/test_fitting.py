"""Tables in narrow terminals."""

from __future__ import annotations

import pytest

from shoal.cli.output import Table, to_table
from shoal.cli.training.fitting import fitted

HEADING = ("name", "runtime", "metrics", "age")
LEAST = {"metrics": 8, "runtime": 10}
WORDY = Table([("llama", "torch-distributed", "loss=0.25 accuracy=0.98", "2h")], HEADING)
QUIET = Table([("llama", "torch-distributed", "-", "2h")], HEADING)


@pytest.mark.parametrize(
    ("table", "width", "row"),
    [
        (WORDY, None, "llama   torch-distributed   loss=0.25 accuracy=0.98   2h"),
        (WORDY, 50, "llama   torch-distributed   loss=0.25 accur…   2h"),
        (WORDY, 40, "llama   torch-distribu…   loss=0.…   2h"),
        (WORDY, 10, "llama   torch-dis…   loss=0.…   2h"),
        (QUIET, 40, "llama   torch-distributed   2h"),
        (QUIET, 80, "llama   torch-distributed   -         2h"),
    ],
    ids=["a pipe", "cut", "cut twice", "no narrower than this", "left out", "it fits"],
)
def test_a_table_gives_way_by_its_least_columns(table: Table, width: int | None, row: str) -> None:
    assert to_table(fitted(table, width, LEAST)).splitlines()[1] == row


def test_a_table_that_was_cut_is_as_wide_as_the_terminal() -> None:
    for width in range(36, 60):
        shown = to_table(fitted(WORDY, width, LEAST)).splitlines()
        assert max(map(len, shown)) <= width
        assert all("llama" in line for line in shown[1:])
