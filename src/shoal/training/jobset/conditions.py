"""What is said of a JobSet: its status as it grows in a reconcile, and the events that tell of each change.

Nothing is denied that never held: a condition that is False appears only where it was True before.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as replaced
from datetime import datetime
from typing import Final, Literal

from msgspec.structs import replace

from shoal.api.jobset import JobSet, JobSetStatus, reasons
from shoal.api.meta import Condition, find_condition, is_true, set_condition

_EXCLUDES: Final = {
    reasons.STARTUP_POLICY_IN_PROGRESS: reasons.STARTUP_POLICY_COMPLETED,
    reasons.STARTUP_POLICY_COMPLETED: reasons.STARTUP_POLICY_IN_PROGRESS,
}
"""Where one of these is True the other is not."""


@dataclass(frozen=True)
class Said:
    """An event about the JobSet."""

    reason: str
    message: str
    is_bad: bool = False


@dataclass(frozen=True, kw_only=True)
class Report:
    """A JobSet's status so far, and what is to be told once it is written."""

    job_set: JobSet
    status: JobSetStatus
    now: datetime
    events: tuple[Said, ...] = ()

    def having(self, status: JobSetStatus) -> Report:
        """With this status."""
        return replaced(self, status=status)

    def telling(self, reason: str, message: str, *, is_bad: bool = False) -> Report:
        """With one event more."""
        return replaced(self, events=(*self.events, Said(reason, message, is_bad)))

    def saying(
        self, type_: str, holds: Literal["True", "False"], reason: str, message: str, *, is_bad: bool = False
    ) -> Report:
        """With a condition, and an event where that is news."""
        conditions = self.status.conditions
        if holds == "False" and find_condition(conditions, type_) is None:
            return self
        new = Condition(type=type_, status=holds, reason=reason, message=message)
        other = find_condition(conditions, _EXCLUDES.get(type_, ""))
        if holds == "True" and other is not None:
            conditions = set_condition(conditions, replace(other, status="False", last_transition_time=None), self.now)
        conditions = set_condition(conditions, new, self.now)
        if conditions is self.status.conditions:
            return self
        return self.having(replace(self.status, conditions=conditions)).telling(reason, message, is_bad=is_bad)

    def completed(self) -> Report:
        """The end, when it is good."""
        message = reasons.COMPLETED_MESSAGE
        return (
            self._ended(reasons.COMPLETED)
            .saying(reasons.COMPLETED, "True", reasons.ALL_JOBS_COMPLETED, message)
            .no_longer_restarting(reasons.JOB_SET_COMPLETED, message)
        )

    def failed(self, reason: str, message: str) -> Report:
        """The end, when it is not."""
        return (
            self._ended(reasons.FAILED)
            .saying(reasons.FAILED, "True", reason, message, is_bad=True)
            .no_longer_restarting(reasons.JOB_SET_FAILED, reasons.FAILED_MESSAGE)
        )

    def suspended(self) -> Report:
        """While all Jobs wait."""
        message = reasons.SUSPENDED_MESSAGE
        return self.saying(reasons.SUSPENDED, "True", reasons.SUSPENDED_JOBS, message).no_longer_restarting(
            reasons.JOB_SET_SUSPENDED, message
        )

    def resumed(self) -> Report:
        """Once they do not wait any more."""
        return self.saying(reasons.SUSPENDED, "False", reasons.RESUME_JOBS, reasons.RESUMED_MESSAGE)

    def starting_in_order(self) -> Report:
        """While some replicated jobs wait for others."""
        return self.saying(
            reasons.STARTUP_POLICY_IN_PROGRESS,
            "True",
            reasons.IN_ORDER_IN_PROGRESS,
            reasons.IN_ORDER_IN_PROGRESS_MESSAGE,
        )

    def started_in_order(self) -> Report:
        """Once all have started."""
        return self.saying(
            reasons.STARTUP_POLICY_COMPLETED, "True", reasons.IN_ORDER_COMPLETED, reasons.IN_ORDER_COMPLETED_MESSAGE
        )

    def no_longer_restarting(self, reason: str, message: str) -> Report:
        """Once a restart is over, and for what reason there is none under way now."""
        return self.saying(reasons.RESTARTING, "False", reason, message)

    def _ended(self, state: str) -> Report:
        return self.having(replace(self.status, terminal_state=state))


def finish_of(status: JobSetStatus) -> Condition | None:
    """How a JobSet ended: its Completed or Failed condition; None while it has not."""
    for type_ in (reasons.COMPLETED, reasons.FAILED):
        if is_true(status.conditions, type_):
            return find_condition(status.conditions, type_)
    return None
