"""Whose lines ``shoal logs`` prints, and what it says where there are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shoal.api.core import is_finished as is_over
from shoal.api.meta import is_true
from shoal.api.trainer import TrainJob, is_finished
from shoal.api.trainer.names import COMPLETE, SUSPENDED
from shoal.cli.training.pages import asked_about
from shoal.cli.training.states import UNSCHEDULABLE, ending_of, homelessness, trouble_of
from shoal.cli.training.steps import Plan, Step

EVERY_NODE = "every node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Whose lines, and which of them."""

    name: str
    rank: int | None = None
    step: str = ""
    tail: int | None = None
    timestamps: bool = False

    def takes(self, step: Step) -> bool:
        """Whether a step is meant; initializers only where they are asked for."""
        if self.step:
            return step.name == self.step
        return step.rank is not None if self.rank is None else step.rank == self.rank

    @property
    def is_one(self) -> bool:
        """Whether there is only one whose lines are meant, so that nobody asks whose they are."""
        return bool(self.step) or self.rank is not None

    @property
    def what(self) -> str:
        """What was asked for."""
        return self.step or (EVERY_NODE if self.rank is None else f"rank {self.rank}")

    def refusal(self, plan: Plan) -> str:
        """Why what was asked for can never come; empty where it can."""
        if self.step and not plan.has(self.step):
            return f"trainjob {self.name} has no step {self.step}: there are {plan.steps}"
        if self.rank is not None and plan.ranks is not None and self.rank >= plan.ranks:
            last = plan.ranks - 1
            there = f"there are 0 to {last}" if last > 0 else "there is only 0" if last == 0 else "it has none"
            return f"trainjob {self.name} has no rank {self.rank}: {there}"
        return ""


def end_of(job: TrainJob) -> str:
    """How a run ended, in words."""
    if is_true(job.status.conditions, COMPLETE):
        return f"trainjob {job.metadata.name} is complete"
    return f"trainjob {job.metadata.name} failed ({ending_of(job)})"


def delay(job: TrainJob, choice: Choice, steps: Sequence[Step]) -> str:
    """Why there is nothing to read of a run that is not over; empty where it only takes a moment."""
    name = job.metadata.name
    if is_true(job.status.conditions, SUSPENDED):
        return f"trainjob {name} is suspended and has no pods: it begins when its spec.suspend is false"
    chosen = [step for step in steps if choice.takes(step)]
    for step in sorted(steps, key=lambda step: not choice.takes(step)):
        if (trouble := trouble_of(step.pod)) is not None:
            return f"{step.name} of trainjob {name} does not run: {trouble}"
    if job.status.last_error is not None and not chosen:
        return f"trainjob {name} has no pods: {job.status.last_error.message}"
    for step in chosen:
        lack = homelessness(step.pod)
        if lack is not None and lack.word == UNSCHEDULABLE:
            ask = f"ask shoal explain {asked_about(job)}"
            return f"{step.name} of trainjob {name} has no node yet: {lack.message.rstrip('.')} ({ask})"
    at_work = next((step for step in steps if step.rank is None and step.life and not is_over(step.pod)), None)
    if at_work is not None and not chosen:
        return f"trainjob {name} is being prepared: --step {at_work.name} shows how"
    return ""


def nothing_to_show(job: TrainJob, choice: Choice, steps: Sequence[Step]) -> str:
    """Why nothing can be printed now, and whether to wait for it."""
    who = "no node" if choice.what == EVERY_NODE else choice.what
    begun = "has begun" if choice.what == EVERY_NODE else "has not begun"
    if is_finished(job):
        left = [step for step in steps if choice.takes(step)]
        return f"{end_of(job)}, and {f'{who} {begun}' if left else 'its pods are gone'}"
    wait = f"{who} of trainjob {job.metadata.name} {begun}: wait for it with --follow"
    return delay(job, choice, steps) or wait
