"""What a pod's annotations say of its simulated life: when it starts, is ready, ends, how, and what it uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from shoal.api.core import Pod
from shoal.api.meta import Quantity, parse_duration, parse_quantity

PREFIX = "shoal.dev/sim-"

START_DELAY = "shoal.dev/sim-start-delay"
READY_DELAY = "shoal.dev/sim-ready-delay"
RUN_TIME = "shoal.dev/sim-run-time"
STOP_TIME = "shoal.dev/sim-stop-time"
OUTCOME = "shoal.dev/sim-outcome"
EXIT_CODE = "shoal.dev/sim-exit-code"
FAIL_FIRST = "shoal.dev/sim-fail-first"
CPU = "shoal.dev/sim-cpu"
MEMORY = "shoal.dev/sim-memory"
LOG = "shoal.dev/sim-log"

DOWN = "shoal.dev/sim-down"
"""On a Node: ``"true"`` makes its agent fall silent."""

DEFAULT_RUN_TIME = 5.0
"""Seconds after which a pod ends that is there to end."""

SUCCEEDED, FAILED = "Succeeded", "Failed"
POD_REASONS = frozenset({"Evicted", "DeadlineExceeded", "Preempting"})
"""Outcomes that end the pod as a whole, and not its containers by themselves."""

_EXIT_CODES = {"OOMKilled": 137, "Evicted": 137, "DeadlineExceeded": 137, "Preempting": 137}
_REASON = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a pod lives; seconds are floats, and what is None goes on for ever or was not said."""

    start_delay: float = 0.0
    ready_delay: float = 0.0
    run_time: float | None = None
    stop_time: float = 0.0
    outcome: str = SUCCEEDED
    exit_code: int | None = None
    fail_first: int = 0
    cpu: Quantity | None = None
    memory: Quantity | None = None
    log: str = ""

    def ending(self, attempt: int) -> tuple[int, str]:
        """The exit code and the reason with which an attempt ends; the first one is 0.

        Where the first few are to fail, those that follow succeed.
        """
        fails = attempt < self.fail_first if self.fail_first else self.outcome != SUCCEEDED or bool(self.exit_code)
        if not fails:
            return 0, "Completed"
        reason = "Error" if self.outcome in (SUCCEEDED, FAILED) else self.outcome
        return self.exit_code or _EXIT_CODES.get(reason, 1), reason


_RUNS_ON = Rules()
_ENDS = Rules(run_time=DEFAULT_RUN_TIME)


def rules_of(pod: Pod) -> tuple[Rules, list[str]]:
    """The rules of a pod, and what is wrong with its annotations in a sentence each; those count as not given."""
    default = _ENDS if ends_by_itself(pod) else _RUNS_ON
    annotations = pod.metadata.annotations
    if not any(name.startswith(PREFIX) for name in annotations):
        return default, []
    problems: list[str] = []
    said = _Said(annotations, problems)
    rules = Rules(
        start_delay=said.read(START_DELAY, _seconds, default.start_delay),
        ready_delay=said.read(READY_DELAY, _seconds, default.ready_delay),
        run_time=said.read(RUN_TIME, _seconds, default.run_time),
        stop_time=said.read(STOP_TIME, _seconds, default.stop_time),
        outcome=said.read(OUTCOME, _outcome, default.outcome),
        exit_code=said.read(EXIT_CODE, _exit_code, None),
        fail_first=said.read(FAIL_FIRST, _count, 0),
        cpu=said.read(CPU, _amount, None),
        memory=said.read(MEMORY, _amount, None),
        log=annotations.get(LOG, ""),
    )
    return rules, problems


def ends_by_itself(pod: Pod) -> bool:
    """Whether such a pod is there to end: one of a Job, or one of nobody's, that is not always restarted."""
    if pod.spec.restart_policy in ("", "Always"):
        return False
    controller = pod.metadata.controller
    return controller is None or controller.kind == "Job"


@dataclass(frozen=True)
class _Said:
    annotations: Mapping[str, str]
    problems: list[str]

    def read(self, name: str, parse: Callable[[str], T], default: Any) -> Any:
        """The value of an annotation, or the default where it is missing or wrong."""
        text = self.annotations.get(name)
        if text is None:
            return default
        try:
            return parse(text.strip())
        except ValueError as error:
            self.problems.append(f"annotation {name} is ignored: {error}")
            return default


def _seconds(text: str) -> float:
    seconds = parse_duration(text).seconds
    if seconds < 0:
        raise ValueError(f"duration {text!r} is not valid: it must not be negative")
    return seconds


def _outcome(text: str) -> str:
    if not _REASON.fullmatch(text):
        raise ValueError(f"outcome {text!r} is not valid: write Succeeded, Failed, or a reason such as OOMKilled")
    return text


def _exit_code(text: str) -> int:
    if not text.isdecimal() or int(text) > 255:
        raise ValueError(f"exit code {text!r} is not valid: write a number from 0 to 255")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise ValueError(f"number {text!r} is not valid: write how many attempts are to fail, such as 2")
    return int(text)


def _amount(text: str) -> Quantity:
    amount = parse_quantity(text)
    if amount.nano < 0:
        raise ValueError(f"quantity {text!r} is not valid: it must not be negative")
    return amount
