"""What a set says of itself, and how many pods each clique has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shoal.api.grove import ANY_ORDER, EXPLICIT, IN_ORDER, CliqueTemplate, PodCliqueSet
from shoal.api.meta import InvalidDuration, parse_duration
from shoal.gangs.admission.rules.places import CLIQUES, clique_at
from shoal.kube.admission import FieldProblem, invalid, not_supported, required

START_TYPES: Final = (ANY_ORDER, IN_ORDER, EXPLICIT)


def set_problems(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    """The set's own numbers and words."""
    template = pcs.spec.template
    if pcs.spec.replicas < 0:
        yield invalid("spec.replicas", pcs.spec.replicas, "must be at least 0")
    if not template.clique_startup_type:
        yield required("spec.template.cliqueStartupType", f"say one of {', '.join(START_TYPES)}")
    elif template.clique_startup_type not in START_TYPES:
        yield not_supported("spec.template.cliqueStartupType", template.clique_startup_type, START_TYPES)
    yield from _delay_problems(template.termination_delay)
    if not template.cliques:
        yield required(CLIQUES, "a set has at least one clique")


def clique_problems(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    """How many pods each clique has, and how many of them start together."""
    for index, clique in enumerate(pcs.spec.template.cliques):
        path = f"{clique_at(index)}.spec"
        replicas, minimum = clique.spec.replicas, clique.spec.min_available
        if replicas <= 0:
            yield invalid(f"{path}.replicas", replicas, "must be greater than 0")
        if minimum is None:
            yield required(f"{path}.minAvailable", "say how many pods must start together")
        elif minimum <= 0:
            yield invalid(f"{path}.minAvailable", minimum, "must be greater than 0")
        elif minimum > replicas:
            yield invalid(f"{path}.minAvailable", minimum, f"must not be greater than replicas, which is {replicas}")


def scheduler_problems(pcs: PodCliqueSet, default_scheduler: str) -> Iterator[FieldProblem]:
    """All cliques go to one scheduler: a gang is placed by one, or by none."""
    cliques = pcs.spec.template.cliques
    for index, clique in enumerate(cliques):
        found, first = (scheduler_of(one, default_scheduler) for one in (clique, cliques[0]))
        if found != first:
            yield invalid(
                f"{clique_at(index)}.spec.podSpec.schedulerName",
                clique.spec.pod_spec.get("schedulerName", ""),
                f'clique "{clique.name}" goes to "{found}" and clique "{cliques[0].name}" to "{first}": '
                "name one scheduler for all",
            )


def scheduler_of(clique: CliqueTemplate, default_scheduler: str) -> str:
    """The scheduler that places a clique's pods."""
    return str(clique.spec.pod_spec.get("schedulerName") or default_scheduler)


def _delay_problems(delay: str | None) -> Iterator[FieldProblem]:
    path = "spec.template.terminationDelay"
    if delay is None:
        yield required(path, "say how long a gang may be broken, as in 4h")
        return
    try:
        length = parse_duration(delay)
    except InvalidDuration as error:
        yield invalid(path, delay, str(error))
    else:
        if length.nanoseconds <= 0:
            yield invalid(path, delay, "must be greater than 0")
