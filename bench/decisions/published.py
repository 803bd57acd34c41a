"""What KAI has published of its own speed, and where. None of it was measured here, nor on a machine like this one."""

from __future__ import annotations

from dataclasses import dataclass

_REPOSITORY = "github.com/kai-scheduler/KAI-Scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One figure."""

    figure: float
    """In the unit of the line that it stands beside."""
    shown: str
    where: str


FILL = Published(
    figure=4_000 / 397.77,
    shown="KAI, published",
    where="4,000 one-GPU jobs on 500 simulated nodes in 6m37.8s once all were there (10.1 pods/s), in 7m40.5s while "
    f"they were made (8.7 pods/s): docs/scale-tests/example-results.json of v0.17.0, {_REPOSITORY}",
)
RECLAIM = Published(
    figure=165_610,
    shown="KAI, published",
    where="500 nodes, 4,000 jobs running and 4,000 waiting: 172.48 s before and 165.61 s after "
    f"{_REPOSITORY}/pull/1809, reclaim alone; /pull/2204 has 196.81 s for the whole cycle, and 59.31 s with its change",
)
CYCLE = Published(
    figure=2_351,
    shown="KAI, published",
    where="a cycle with 4,000 nodes and 140,000 pods that places six: 2.175 s to look at them and 0.176 s to decide: "
    f"{_REPOSITORY}/issues/315; /pull/316 says that it halved the first of the two",
)
