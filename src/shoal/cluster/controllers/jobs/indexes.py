"""Sets of completion indexes, kept as ranges: ten thousand of them in a status are a few characters.

On the wire they are numbers and ranges in order, such as ``0,3-5,7``.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Indexes:
    """A set of indexes as ranges, in order, with a gap between each two."""

    ranges: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(indexes: Iterable[int]) -> Indexes:
        """The set of these."""
        return Indexes(tuple(_joined((index, index) for index in sorted(set(indexes)))))

    @staticmethod
    def parse(text: str, *, below: int) -> Indexes:
        """Reads the wire's form as far as indexes are below a limit; a part that is no range is passed over."""
        ranges: list[tuple[int, int]] = []
        for part in text.split(",") if text else ():
            first, dash, last = part.partition("-")
            try:
                low = int(first)
                high = int(last) if dash else low
            except ValueError:
                continue
            if low >= below:
                break
            ranges.append((low, min(high, below - 1)))
        return Indexes(tuple(_joined(ranges)))

    def __or__(self, other: Indexes) -> Indexes:
        if not other.ranges:
            return self
        return Indexes(tuple(_joined(sorted([*self.ranges, *other.ranges]))))

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __contains__(self, index: int) -> bool:
        place = bisect.bisect_left(self.ranges, index, key=lambda each: each[1])
        return place < len(self.ranges) and self.ranges[place][0] <= index

    def __str__(self) -> str:
        parts = []
        for first, last in self.ranges:
            if first == last:
                parts.append(f"{first}")
            else:
                parts.append(f"{first},{last}" if last == first + 1 else f"{first}-{last}")
        return ",".join(parts)

    def common(self, other: Indexes) -> int:
        """How many indexes are in both sets."""
        found = mine = theirs = 0
        while mine < len(self.ranges) and theirs < len(other.ranges):
            (low, high), (first, last) = self.ranges[mine], other.ranges[theirs]
            found += max(0, min(high, last) - max(low, first) + 1)
            mine, theirs = mine + (high <= last), theirs + (last <= high)
        return found

    def first_missing(self, count: int, *, below: int) -> list[int]:
        """The lowest indexes below a limit that are not in the set, as many as are asked for."""
        missing: list[int] = []
        candidate = 0
        for first, last in [*self.ranges, (below, below)]:
            missing += range(candidate, min(first, below, candidate + count - len(missing)))
            if len(missing) == count:
                break
            candidate = max(candidate, last + 1)
        return missing


def _joined(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges in order of their beginning, with those made one that touch."""
    begun: tuple[int, int] | None = None
    for low, high in ranges:
        if begun is None:
            begun = (low, high)
        elif low <= begun[1] + 1:
            begun = (begun[0], max(begun[1], high))
        else:
            yield begun
            begun = (low, high)
    if begun is not None:
        yield begun
