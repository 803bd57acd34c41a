"""Scheduling cases as data, and what runs them: ``python -m shoal.scheduler.scenarios FILE…``.

A file holds either *scenarios* (a cluster, what one action or several whole cycles make of it, and what is expected)
or *cases* of the division of one amount among queues. ``cases`` says what may be written, ``reading`` reads it,
``engine`` is the one seam to the scheduler, ``folding`` carries a cycle's decisions into the next, ``comparing`` finds
what differs, ``runner`` puts them together.
"""

from shoal.scheduler.scenarios.cases import DivisionCase, Scenario
from shoal.scheduler.scenarios.engine import Calls, Engine, NodeOutcome, Outcome, TaskOutcome
from shoal.scheduler.scenarios.reading import CaseFile, UnreadableCaseError, UnreadableFileError, read
from shoal.scheduler.scenarios.runner import Verdict, verdict_of_division, verdict_of_scenario

__all__ = [
    "Calls",
    "CaseFile",
    "DivisionCase",
    "Engine",
    "NodeOutcome",
    "Outcome",
    "Scenario",
    "TaskOutcome",
    "UnreadableCaseError",
    "UnreadableFileError",
    "Verdict",
    "read",
    "verdict_of_division",
    "verdict_of_scenario",
]
