"""An expression as others use it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from shoal.scheduler.grouper.jq.nodes import Node, QueryFailed
from shoal.scheduler.grouper.jq.parsing import pieces
from shoal.scheduler.grouper.jq.places import Path, places_read
from shoal.scheduler.grouper.jq.running import run
from shoal.scheduler.grouper.jq.values import MOST_STEPS

MOST_RESULTS: Final = 1000


@dataclass(frozen=True)
class Query:
    """An expression that was read."""

    text: str
    node: Node = field(compare=False, repr=False)

    def results(self, found: Any) -> list[Any]:
        """What the expression gives for a value; raises QueryFailed."""
        steps = iter(range(MOST_STEPS))
        try:
            results = list(islice(run(self.node, found, steps), MOST_RESULTS + 1))
        except OverflowError as error:
            raise QueryFailed(f"{self.text} gives a number that is too large") from error
        if len(results) > MOST_RESULTS:
            raise QueryFailed(f"{self.text} gives more than {MOST_RESULTS} values")
        return results

    def reads(self) -> frozenset[Path]:
        """The fields whose values the expression depends on, each as deep as it can be told without a value."""
        read: set[Path] = set()
        read |= places_read(self.node, frozenset({()}), read)
        return frozenset(read)


@lru_cache(maxsize=1024)
def parse(text: str) -> Query:
    """Reads an expression; raises InvalidQuery."""
    return Query(text, pieces(text))
