"""Flags of the queue controller."""

from __future__ import annotations

import pytest

from shoal.scheduler.queues import label_map


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", {}),
        ("team=queue_team", {"team": "queue_team"}),
        ("a=b, c=d,", {"a": "b", "c": "d"}),
        ("example.com/team=t", {"example.com/team": "t"}),
    ],
)
def test_pairs_are_read(text: str, pairs: dict[str, str]) -> None:
    assert label_map(text) == pairs


@pytest.mark.parametrize("text", ["team", "=x", "team=", "a=b,c"])
def test_what_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no pair"):
        label_map(text)
