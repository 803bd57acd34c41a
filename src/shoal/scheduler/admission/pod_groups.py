"""The rules for gangs: parts form a tree, pods are counted in its leaves and parts in its inner nodes.

Gangs from before a rule must still be open to change: where the minimum stands at the wrong level a new gang is
refused, and one that is there already is warned of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from shoal.api.scheduling_run_ai import PodGroup, SubGroup
from shoal.kube.admission import FieldProblem, Finding, Warn, forbidden, invalid, required
from shoal.kube.admission.fields import Reason
from shoal.scheduler.admission.durations import duration_problems

_BOTH = "a minimum counts pods or parts, not both: leave one of minMember and minSubGroup"
_PARTS_ONLY = "pods are counted in the parts of this part: set minSubGroup, or leave both for all of them"
_PODS_ONLY = "this part has no parts to count: set minMember instead"
_NO_MINIMUM = "say how many pods of this part start together; 0 if none has to"


def pod_group_findings(group: PodGroup, *, is_new: bool) -> Iterator[Finding]:
    """All that is wrong with a gang, and what is only odd about it."""
    spec = group.spec
    parts = spec.sub_groups
    if spec.min_member is not None and spec.min_sub_group is not None:
        yield forbidden("spec.minSubGroup", _BOTH)
    yield from _names(parts)
    yield from _parents(parts)
    children = Counter(part.parent for part in parts)
    for index, part in enumerate(parts):
        yield from _minimum(part, f"spec.subGroups[{index}]", children[part.name], is_new=is_new)
    yield from _too_many(spec.min_sub_group, "spec", children[""])
    yield from duration_problems("spec.preemptionDelay", spec.preemption_delay)
    yield from duration_problems("spec.stalenessGracePeriod", spec.staleness_grace_period, may_be_negative=True)


def _names(parts: Sequence[SubGroup]) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for index, part in enumerate(parts):
        if part.name in seen:
            yield FieldProblem(
                f"spec.subGroups[{index}].name", "name each part of a gang differently", Reason.DUPLICATE, part.name
            )
        seen.add(part.name)


def _parents(parts: Sequence[SubGroup]) -> Iterator[FieldProblem]:
    above = {part.name: part.parent for part in parts}
    circles = _in_circles(above)
    for index, part in enumerate(parts):
        path = f"spec.subGroups[{index}].parent"
        if part.parent and part.parent not in above:
            yield FieldProblem(path, "no part of the gang has this name", Reason.NOT_FOUND, part.parent)
        elif part.name in circles:
            yield invalid(path, part.parent, "a part cannot be part of itself, not even by way of others")


def _in_circles(above: Mapping[str, str]) -> set[str]:
    """The parts from which the way up leads back to them; those from which it leads into a circle are not at fault."""
    found: set[str] = set()
    judged: set[str] = set()
    for name in above:
        way: dict[str, None] = {}
        current = name
        while current in above and current not in judged and current not in way:
            way[current] = None
            current = above[current]
        if current in way:
            steps = list(way)
            found.update(steps[steps.index(current) :])
        judged.update(way)
    return found


def _minimum(part: SubGroup, path: str, children: int, *, is_new: bool) -> Iterator[Finding]:
    """A leaf counts pods, and an inner part its parts."""
    if part.min_member is not None and part.min_sub_group is not None:
        yield forbidden(f"{path}.minSubGroup", _BOTH)
    elif children:
        if part.min_member is not None:
            yield _refused_if(is_new, forbidden(f"{path}.minMember", _PARTS_ONLY))
        yield from _too_many(part.min_sub_group, path, children)
    elif part.min_sub_group is not None:
        yield _refused_if(is_new, forbidden(f"{path}.minSubGroup", _PODS_ONLY))
    elif part.min_member is None:
        yield _refused_if(is_new, required(f"{path}.minMember", _NO_MINIMUM))


def _refused_if(is_new: bool, problem: FieldProblem) -> Finding:
    return problem if is_new else Warn(str(problem))


def _too_many(minimum: int | None, path: str, children: int) -> Iterator[Warn]:
    if minimum is not None and minimum > children:
        yield Warn(f"{path}.minSubGroup is {minimum} and there are {children} parts: the gang never starts")
