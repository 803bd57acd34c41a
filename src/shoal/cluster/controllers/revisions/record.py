"""What a ControllerRevision says, as rules over plain values.

The stored form is the strategic patch that brings the template back: ``kubectl rollout undo`` sends it as it is. Two
revisions are the same where their data is. The number says which came last, and a rollback gives an old one a new
number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shoal.api.apps import ControllerRevision

LONGEST_PREFIX = 223
"""How much of the owner's name a revision's name keeps, so that the hash fits behind it."""

_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A revision that is not there yet; its name depends on the names that are taken."""

    number: int
    data: Mapping[str, Any]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    hash_label: str
    """The label that says the hash: kinds of owners differ in it."""
    hash_of: Callable[[int | None], str]
    """The hash, given how many collisions there were."""


def revision_data(template: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored of a template."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def template_of(revision: ControllerRevision) -> dict[str, Any]:
    """The template that a revision brings back."""
    stored = (revision.data.get("spec") or {}).get("template") or {}
    return {key: value for key, value in stored.items() if key != "$patch"}


def same_data(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two revisions mean the same template.

    Fields that are null say nothing: servers differ in whether they write them (``creationTimestamp`` is one).
    """
    return one == other or _without_nulls(one) == _without_nulls(other)


def revision_name(owner: str, short_hash: str) -> str:
    """The name of an owner's revision."""
    return f"{owner[:LONGEST_PREFIX]}-{short_hash}"


def in_order(revisions: Sequence[ControllerRevision]) -> list[ControllerRevision]:
    """The revisions, the newest last; age and name decide among those of one number."""
    return sorted(
        revisions,
        key=lambda found: (
            found.revision,
            found.metadata.creation_timestamp or _BEGINNING,
            found.metadata.name,
        ),
    )


def latest_number(revisions: Sequence[ControllerRevision]) -> int:
    """The highest number given so far; 0 where there is none."""
    return max((found.revision for found in revisions), default=0)


def surplus(
    history: Sequence[ControllerRevision],
    *,
    limit: int,
    is_live: Callable[[ControllerRevision], bool],
    live_count: bool,
) -> list[ControllerRevision]:
    """Which old revisions to let go, the oldest first, so that ``limit`` are left; never one that pods are made from.

    ``live_count`` says whether those count as well.
    """
    ordered = in_order(history)
    idle = [found for found in ordered if not is_live(found)]
    excess = len(ordered if live_count else idle) - limit
    return idle[: max(excess, 0)] if limit >= 0 else []


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
