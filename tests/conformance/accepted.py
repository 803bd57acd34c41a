"""Where the embedded server answers differently on purpose: each place, what it says instead, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Accepted:
    """One value of one answer; ``at`` leads to it from the answer, ``ours`` is None where it is not there."""

    story: str
    step: int
    at: Sequence[str | int]
    ours: Any
    why: str


ACCEPTED: tuple[Accepted, ...] = ()


def expected_of_embedded(story: str, recorded: list[Any]) -> list[Any]:
    """The recorded answers with the accepted differences put in; one that is none any more is an error."""
    expected: list[Any] = json.loads(json.dumps(recorded))
    for one in ACCEPTED:
        if one.story == story:
            place: Any = expected[one.step - 1]
            for name in one.at[:-1]:
                place = place[name]
            last = one.at[-1]
            is_there = last in place if isinstance(place, dict) else True
            assert (place[last] if is_there else None) != one.ours, f"no difference any more: {one}"
            if one.ours is None:
                del place[last]
            else:
                place[last] = one.ours
    return expected
