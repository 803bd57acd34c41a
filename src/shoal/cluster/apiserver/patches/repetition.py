"""A merged list of plain values holds each of them once."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from typing import Any


def without_repetition(values: Sequence[Any]) -> list[Any]:
    """Each value once; a later repetition gives its place to the last value, as Kubernetes does.

    Kubernetes compares each value with all that follow. Here the places of each value are known, first to last, so
    that a hundred thousand values do not take as many times as long as a hundred.
    """
    kept = list(values)
    places: defaultdict[Any, list[int]] = defaultdict(list)
    for at, value in enumerate(kept):
        places[value].append(at)
    if len(places) == len(kept):
        return kept
    at = 0
    while at < len(kept):
        value = kept[at]
        repeated = places[value]
        while repeated:
            place = heapq.heappop(repeated)
            if not at < place < len(kept) or kept[place] != value:
                continue  # has gone, or been given to another value
            last = kept.pop()
            if place < len(kept):
                kept[place] = last
                heapq.heappush(places[last], place)
        at += 1
    return kept
