"""Feature gates of training, under the names that Trainer and JobSet have for them.

All are shut by default, as upstream's are; in ``shoal up`` those of JobSets are open.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from shoal.training.jobset import JobSetSettings


class Gate(enum.StrEnum):
    """What can be switched on."""

    TRAIN_JOB_STATUS = "TrainJobStatus"
    RESTART_JOB = "RestartJob"
    IN_PLACE_RESTART = "InPlaceRestart"


FeatureGatesOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--feature-gates",
        metavar="GATE=BOOL,…",
        help="TrainJobStatus: training programs report their progress. RestartJob, InPlaceRestart: JobSets may restart "
        "one Job alone, or pods where they are.",
    ),
]


def open_gates(said: str) -> frozenset[Gate]:
    """The gates that are open; raises typer.BadParameter where one is unknown."""
    opened = set()
    for one in filter(None, map(str.strip, said.split(","))):
        name, _, value = one.partition("=")
        if name not in list(Gate) or value.lower() not in ("true", "false"):
            known = ", ".join(f"{gate}=true" for gate in Gate)
            raise typer.BadParameter(f"{one} is unknown, there is {known}", param_hint="--feature-gates")
        if value.lower() == "true":
            opened.add(Gate(name))
    return frozenset(opened)


def job_set_settings(gates: frozenset[Gate]) -> JobSetSettings:
    """How JobSets are run with these gates."""
    from shoal.training.jobset import JobSetSettings  # noqa: PLC0415 - other commands do without

    return JobSetSettings(
        restarts_single_jobs=Gate.RESTART_JOB in gates, restarts_in_place=Gate.IN_PLACE_RESTART in gates
    )
