"""Running cases: one session, or cycle after cycle with their decisions folded into the next."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from shoal.scheduler.model.amounts import UNLIMITED
from shoal.scheduler.scenarios.cases import ACTIONS, ClaimCase, DivisionCase, Scenario
from shoal.scheduler.scenarios.comparing import (
    differences,
    overloaded_devices,
    too_many_calls,
    unmatched_expectations,
)
from shoal.scheduler.scenarios.engine import Engine
from shoal.scheduler.scenarios.folding import next_scenario, settled
from shoal.scheduler.shares.division import Claim, divide

_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one case."""

    id: str
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What is odd about the case and fails nothing."""
    trace: str = ""
    """Where the engine gave up, when it did."""

    @property
    def is_passed(self) -> bool:
        """Whether everything was as expected."""
        return not self.differences


def verdict_of_scenario(scenario: Scenario, engine: Engine, now: float | None = None) -> Verdict:
    """Runs a scenario and compares. An engine that fails has failed this case alone."""
    notes = (
        *(f"expect.tasks.{name} names no task" for name in unmatched_expectations(scenario)),
        *(
            f"more is expected on GPU {group} of {node} than it holds: the devices of {node} are not compared"
            for node in scenario.nodes
            for group in overloaded_devices(scenario, node)
        ),
    )
    try:
        found = tuple(_run(scenario, engine, time.time() if now is None else now))
    except Exception as error:  # whatever it is, the other cases still run
        return Verdict(
            scenario.id, (f"the engine raised {type(error).__name__}: {error}",), notes, traceback.format_exc()
        )
    return Verdict(scenario.id, found, notes)


def _run(scenario: Scenario, engine: Engine, now: float) -> Iterator[str]:
    if not scenario.is_whole_cycle:
        outcome = engine(scenario, (scenario.actions,), now)
        yield from differences(scenario, outcome)
        yield from too_many_calls(scenario.expect.max_calls, outcome.calls)
        return
    current, first = scenario, max(1, scenario.rounds)
    for number in range(1, first + scenario.stable_rounds + 1):
        outcome = engine(current, ACTIONS, now)
        after = settled(current, outcome)
        found = too_many_calls(scenario.expect.max_calls, outcome.calls)
        if number >= first:
            found = differences(scenario, after) + found
        if found:
            where = f"round {number}" if number <= first else f"round {number} ({number - first} after the first match)"
            yield from (f"{where}: {difference}" for difference in found)
            return
        current = next_scenario(current, after)


def verdict_of_division(case: DivisionCase) -> Verdict:
    """Divides and compares."""
    made = divide(case.total, [_claim(queue) for queue in case.queues], k=case.k)
    found = [
        f"{name} gets {made.shares.get(name, 0):g}, expected {share:g}"
        for name, share in case.expect.items()
        if not math.isclose(made.shares.get(name, 0.0), share, rel_tol=0, abs_tol=_TOLERANCE)
    ]
    if case.remaining is not None and not math.isclose(made.remaining, case.remaining, rel_tol=0, abs_tol=_TOLERANCE):
        found.append(f"{made.remaining:g} remains, expected {case.remaining:g}")
    return Verdict(case.id, tuple(found))


def _claim(queue: ClaimCase) -> Claim:
    return Claim(
        name=queue.name,
        quota=_limit(queue.quota),
        weight=queue.weight,
        request=queue.request,
        limit=_limit(queue.limit),
        priority=queue.priority,
        usage=queue.usage,
        created=queue.created,
    )


def _limit(written: float) -> float:
    return UNLIMITED if written == -1 else written
