"""Who starts after whom: under ``CliqueStartupTypeExplicit`` each clique names others, and nobody waits in a circle."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from shoal.api.grove import EXPLICIT, PodCliqueSet
from shoal.gangs.admission.rules.places import clique_at, missing, repeated
from shoal.kube.admission import FieldProblem, invalid


def start_order_problems(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    """Parents exist, are others, are named once, and do not wait for their children."""
    if pcs.spec.template.clique_startup_type != EXPLICIT:
        return
    known = {clique.name for clique in pcs.spec.template.cliques}
    for index, clique in enumerate(pcs.spec.template.cliques):
        seen: set[str] = set()
        for position, parent in enumerate(clique.spec.starts_after):
            path = f"{clique_at(index)}.spec.startsAfter[{position}]"
            if parent == clique.name:
                yield invalid(path, parent, "a clique cannot start after itself")
            elif parent in seen:
                yield repeated(path, parent, "name each clique once")
            elif parent not in known:
                yield missing(path, parent, "name a clique of this set")
            seen.add(parent)
    yield from _circle(pcs)


def _circle(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    """One circle of cliques that wait for each other, if there is any; told at the first of them in the template."""
    parents = {
        clique.name: [name for name in clique.spec.starts_after if name != clique.name]
        for clique in pcs.spec.template.cliques
    }
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        # Each of these comes before the next one; said the other way round, each starts after the next.
        waiting: list[str] = error.args[1][-1:0:-1]
        order = list(parents)
        first = waiting.index(min(waiting, key=order.index))
        circle = [*waiting[first:], *waiting[:first]]
        told = " after ".join(f'"{name}"' for name in [*circle, circle[0]])
        place = clique_at(order.index(circle[0]))
        yield invalid(f"{place}.spec.startsAfter", parents[circle[0]], f"cliques wait for each other: {told}")
