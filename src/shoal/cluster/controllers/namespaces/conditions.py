"""What a namespace says of its own deletion: what could not be found out or deleted, and what is still in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from shoal.api.core.config import NamespaceCondition
from shoal.cluster.controllers.discovery import Discovered
from shoal.cluster.controllers.namespaces.content import Left

DISCOVERY = "NamespaceDeletionDiscoveryFailure"
CONTENT = "NamespaceDeletionContentFailure"
REMAINING = "NamespaceContentRemaining"
FINALIZERS = "NamespaceFinalizersRemaining"

_WELL = {
    DISCOVERY: ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    CONTENT: ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    REMAINING: ("ContentRemoved", "All content successfully removed"),
    FINALIZERS: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}

Problem = tuple[str, str]
"""The reason and the message of a condition that holds."""


def discovery_problem(discovered: Discovered) -> dict[str, Problem]:
    """What to say where some kinds may be missing."""
    if not discovered.failures:
        return {}
    message = f"Discovery failed for some groups, {len(discovered.failures)} failing: {discovered.problem}"
    return {DISCOVERY: ("DiscoveryFailed", message)}


def content_problem(left: Iterable[Left]) -> dict[str, Problem]:
    """What to say where kinds could not be emptied."""
    problems = sorted(one.problem for one in left if one.problem)
    if not problems:
        return {}
    message = f"Failed to delete all resource types, {len(problems)} remaining: {', '.join(problems)}"
    return {CONTENT: ("ContentDeletionFailed", message)}


def remaining_problems(left: Iterable[Left]) -> dict[str, Problem]:
    """What to say of what is still there, and of what keeps it."""
    problems: dict[str, Problem] = {}
    kinds = sorted(
        f"{one.resource.plural}.{one.resource.group} has {one.count} resource instances" for one in left if one.count
    )
    if kinds:
        problems[REMAINING] = ("SomeResourcesRemain", f"Some resources are remaining: {', '.join(kinds)}")
    finalizers: dict[str, int] = {}
    for one in left:
        for name, count in one.finalizers.items():
            finalizers[name] = finalizers.get(name, 0) + count
    if finalizers:
        told = ", ".join(sorted(f"{name} in {count} resource instances" for name, count in finalizers.items()))
        message = f"Some content in the namespace has finalizers remaining: {told}"
        problems[FINALIZERS] = ("SomeFinalizersRemain", message)
    return problems


def conditions_after(
    before: Sequence[NamespaceCondition], problems: dict[str, Problem], now: datetime
) -> list[NamespaceCondition]:
    """The conditions with ours brought up to date; those of others stay, and a time moves only with its status."""
    after = list(before)
    places = {condition.type: place for place, condition in enumerate(after)}
    for type_, well in _WELL.items():
        reason, message = problems.get(type_, well)
        new = NamespaceCondition(
            type=type_,
            status="True" if type_ in problems else "False",
            last_transition_time=now,
            reason=reason,
            message=message,
        )
        place = places.get(type_)
        if place is None:
            after.append(new)
        elif after[place].status == new.status:
            since = after[place].last_transition_time
            after[place] = msgspec.structs.replace(new, last_transition_time=since)
        else:
            after[place] = new
    return after
