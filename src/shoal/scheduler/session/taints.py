"""Taints that keep pods away from nodes, and the tolerations that let them in all the same.

Nodes of a cluster have few sets of taints among them: tolerations are put to the distinct taints, and every node reads
the answer of its set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.model.resources import Mask

_KEEPING_AWAY: Final = ("NoSchedule", "NoExecute")


class Taint(NamedTuple):
    """One taint that keeps pods away."""

    key: str
    value: str
    effect: str

    def is_tolerated_by(self, toleration: Mapping[str, Any]) -> bool:
        """Whether one toleration is enough."""
        if toleration.get("effect") not in (None, "", self.effect):
            return False
        if toleration.get("key") not in (None, "", self.key):
            return False
        operator = toleration.get("operator") or "Equal"
        return bool(operator == "Exists" or (operator == "Equal" and (toleration.get("value") or "") == self.value))

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class TaintIndex:
    """The taints of all nodes."""

    def __init__(self, nodes: Nodes) -> None:
        sets: dict[tuple[Taint, ...], int] = {(): 0}
        self._codes: NDArray[np.int64] = np.array(
            [sets.setdefault(_taints(node.taints), len(sets)) if node.taints else 0 for node in nodes.nodes],
            dtype=np.int64,
        )
        self._sets = tuple(sets)

    def untolerated(self, tolerations: Sequence[Mapping[str, Any]]) -> dict[Taint, Mask]:
        """[nodes] by taint, the nodes on which it is the first that none of these tolerations lets pass."""
        firsts: dict[Taint, list[int]] = {}
        for code, taints in enumerate(self._sets):
            for taint in taints:
                if not any(taint.is_tolerated_by(toleration) for toleration in tolerations):
                    firsts.setdefault(taint, []).append(code)
                    break
        refused = {}
        for taint, codes in firsts.items():
            table = np.zeros(len(self._sets), dtype=np.bool_)
            table[codes] = True
            refused[taint] = table[self._codes]
        return refused


def _taints(taints: Sequence[Mapping[str, Any]]) -> tuple[Taint, ...]:
    return tuple(
        Taint(taint.get("key", ""), taint.get("value") or "", taint["effect"])
        for taint in taints
        if taint.get("effect") in _KEEPING_AWAY
    )
