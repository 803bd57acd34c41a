"""Where in a PodCliqueSet something stands, as messages say it."""

from __future__ import annotations

from typing import Any, Final

from shoal.kube.admission import FieldProblem, Reason

CLIQUES: Final = "spec.template.cliques"
GROUPS: Final = "spec.template.podCliqueScalingGroups"


def clique_at(index: int) -> str:
    """A clique of the template."""
    return f"{CLIQUES}[{index}]"


def group_at(index: int) -> str:
    """A scaling group of the template."""
    return f"{GROUPS}[{index}]"


def missing(path: str, value: str, message: str) -> FieldProblem:
    """The value names something that does not exist; the message says what to do."""
    return FieldProblem(path, message, Reason.NOT_FOUND, value)


def repeated(path: str, value: Any, message: str) -> FieldProblem:
    """The value is there already where each may be only once; the message says what to do."""
    return FieldProblem(path, message, Reason.DUPLICATE, value)
