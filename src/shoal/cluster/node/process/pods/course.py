"""What a container of a pod has done so far: its runs, how they ended, what its probes say, and why it waits.

Values only. A worker keeps one course for each container and replaces it when something happens; the rules read them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shoal.api.core.pods import ResourceRequirements
from shoal.cluster.node.crash_loop import rest_before_restart

FORGIVEN_AFTER = timedelta(minutes=10)
"""A container that ran for longer than this is taken for well: what failed before counts no more."""
SHOWN_FOR = timedelta(seconds=1)
"""How long the reason of a failed start is shown, before the rest that follows it is."""

LIVENESS, STARTUP = "liveness", "startup"
"""The probes whose failure ends a container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a run ended."""

    at: datetime
    exit_code: int
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a container, from its start to its end."""

    attempt: int
    started: datetime | None
    """None where its program could not be started at all."""
    end: End | None = None
    image: str = ""
    """The image that it was started with; empty where nobody knows."""
    image_id: str = ""
    resources: ResourceRequirements | None = None
    """What it was given; None where nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a container could not be started, and when that is tried again."""

    reason: str
    message: str
    at: datetime
    due: datetime | None = None
    """Not before this; None where the run that failed with it has its own rest."""
    tries: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One container, as far as it has come."""

    run: Run | None = None
    """The latest run, whether it goes on or has ended."""
    former: Run | None = None
    """The run before that."""
    first_attempt: int = 0
    """The number of the first run, where files of earlier ones were found that nobody else remembers."""
    crashes: int = 0
    """How often it was started again since it was last taken for well."""
    is_starting: bool = False
    is_stopping: bool = False
    is_replaced: bool = False
    """Whether it was ended only to be started again as something else, whatever its policy says."""
    is_started: bool = False
    """Whether this run has passed its startup probe, or has none."""
    is_ready: bool = False
    failed: str = ""
    """The probe that this run has failed for good: ``liveness`` or ``startup``."""
    problem: Problem | None = None

    @property
    def is_running(self) -> bool:
        """Whether a process of it runs now."""
        return self.run is not None and self.run.end is None

    @property
    def end(self) -> End | None:
        """How the latest run ended."""
        return self.run.end if self.run is not None else None

    @property
    def restarts(self) -> int:
        """What its status counts: the number of the latest run."""
        latest = self.run or self.former
        return latest.attempt if latest is not None else 0

    @property
    def next_attempt(self) -> int:
        """The number of the run that comes next."""
        latest = self.run or self.former
        return self.first_attempt if latest is None else max(latest.attempt + 1, self.first_attempt)

    @property
    def due(self) -> datetime | None:
        """Not before this moment is it started (again); None where nothing keeps it."""
        if self.problem is not None and self.problem.due is not None:
            return self.problem.due
        end = self.end
        rest = rest_before_restart(self.crashes)
        return None if end is None or rest == 0 else end.at + timedelta(seconds=rest)

    def starting(self) -> Course:
        """The container while it is being started."""
        return replace(self, is_starting=True)

    def running(self, run: Run, *, is_started: bool, is_ready: bool) -> Course:
        """The container after its start."""
        return Course(
            run=run,
            former=self.run or self.former,
            first_attempt=self.first_attempt,
            crashes=self.crashes + 1 if self.run or self.former else 0,
            is_started=is_started,
            is_ready=is_ready,
        )

    def ended(self, end: End) -> Course:
        """The container after the end of its run."""
        assert self.run is not None
        lasted = end.at - self.run.started if self.run.started is not None else timedelta(0)
        return replace(
            self,
            run=replace(self.run, end=end),
            crashes=0 if lasted > FORGIVEN_AFTER else self.crashes,
            is_started=False,
            is_ready=False,
            is_stopping=False,
            failed="",
        )

    def refused(self, problem: Problem) -> Course:
        """The container after a start that did not come about, and left no run."""
        tries = self.problem.tries + 1 if self.problem is not None and self.problem.reason == problem.reason else 1
        return replace(self, is_starting=False, problem=replace(problem, tries=tries))

    def anew(self) -> Course:
        """The container in a new sandbox, or after all were ended to begin again: its runs lie behind it."""
        return Course(former=self.run or self.former, first_attempt=self.first_attempt, crashes=self.crashes)


def container_id(uid: str, container: str, attempt: int) -> str:
    """What a run is called: made from what it is, so that whoever knows a pod knows the names of its runs."""
    return hashlib.sha256(f"{uid}/{container}/{attempt}".encode()).hexdigest()
