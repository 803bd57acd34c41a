"""Which ReplicaSet is which version of a Deployment's template.

A ReplicaSet is known by its template, never by its name: the hash in the name only keeps versions apart. It is taken
over the template as the server stores it, so that its value is not the one that kube-controller-manager would get from
its own picture of the same template; a ReplicaSet that this one made, under its hash, is found all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from shoal.api.apps import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    POD_TEMPLATE_HASH,
    REVISION,
    REVISION_HISTORY,
    Deployment,
    ReplicaSet,
)
from shoal.api.meta import LAST_APPLIED, SUBDOMAIN_LIMIT
from shoal.cluster.controllers.deployments.sizes import age, max_surge
from shoal.cluster.controllers.template_hash import template_hash

NOT_COPIED = frozenset(
    {
        LAST_APPLIED,
        "deprecated.deployment.rollback.to",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
    }
)
"""The annotations that a ReplicaSet does not take over from its Deployment."""

LONGEST_HISTORY = 2000
"""Characters of the revisions that a ReplicaSet remembers: about a hundred rollbacks."""

_INTEGER = re.compile(r"[+-]?[0-9]+")


def versions(deployment: Deployment, sets: Iterable[ReplicaSet]) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    """The ReplicaSet of the present template, if there is one, and those of earlier ones, the oldest first.

    Where several have the present template the oldest of them is taken.
    """
    ordered = sorted(sets, key=age)
    new = next((one for one in ordered if same_template(one.spec.template, deployment.spec.template)), None)
    return new, [one for one in ordered if one is not new]


def same_template(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two templates make the same pods, but for the label with the hash."""
    return one.get("spec") == other.get("spec") and _own_metadata(one) == _own_metadata(other)


def revision_of(found: ReplicaSet) -> int | None:
    """The place of a ReplicaSet in the history; 0 where it says none, None where what it says is no number."""
    return _number(found.metadata.annotations.get(REVISION, "0"))


def next_revision(old: Iterable[ReplicaSet]) -> int:
    """The revision after all earlier ones."""
    return max((revision_of(one) or 0 for one in old), default=0) + 1


def forgettable(old: Iterable[ReplicaSet], limit: int | None) -> list[ReplicaSet]:
    """The earliest of the old ReplicaSets, as far as they are more than are to be kept, and surely empty."""
    if limit is None:
        return []
    alive = sorted(
        (one for one in old if not one.metadata.is_deleting), key=lambda one: (revision_of(one) or 0, *age(one))
    )
    return [
        one
        for one in alive[: max(0, len(alive) - limit)]
        if one.spec.replicas == one.status.replicas == 0 and one.status.observed_generation >= one.metadata.generation
    ]


def annotations_of_new(deployment: Deployment, present: Mapping[str, str], revision: int) -> dict[str, str]:
    """The annotations of the newest ReplicaSet, from those that it has: the Deployment's, and its place in the history.

    A ReplicaSet that is rolled back to gets a new place and remembers its old ones.
    """
    said = present.get(REVISION)
    known = _number(said) if said else 0
    if known is None:
        return dict(present)
    copied = {name: value for name, value in deployment.metadata.annotations.items() if name not in NOT_COPIED}
    annotations = {**present, **copied}
    if known < revision:
        annotations[REVISION] = str(revision)
        if said is not None:
            annotations[REVISION_HISTORY] = _remembered(present.get(REVISION_HISTORY, ""), said)
    return annotations


def size_annotations(deployment: Deployment) -> dict[str, str]:
    """What a ReplicaSet is told of its Deployment's size whenever it is given one of its own."""
    replicas = deployment.spec.replicas
    return {DESIRED_REPLICAS: str(replicas), MAX_REPLICAS: str(replicas + max_surge(deployment))}


def wanted_set(deployment: Deployment, *, revision: int, replicas: int) -> dict[str, Any]:
    """The ReplicaSet of a template that has none yet."""
    spec = deployment.spec
    digest = template_hash(spec.template, deployment.status.collision_count)
    metadata = spec.template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), POD_TEMPLATE_HASH: digest}
    selector: dict[str, Any] = {"matchLabels": {POD_TEMPLATE_HASH: digest}}
    if spec.selector is not None:
        selector["matchLabels"] |= spec.selector.match_labels
        if spec.selector.match_expressions:
            selector["matchExpressions"] = spec.selector.match_expressions
    return {
        "metadata": {
            "name": set_name(deployment.metadata.name, digest),
            "namespace": deployment.metadata.namespace,
            "labels": labels,
            "annotations": annotations_of_new(deployment, {}, revision) | size_annotations(deployment),
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": spec.min_ready_seconds,
            "selector": selector,
            "template": {**spec.template, "metadata": {**metadata, "labels": labels}},
        },
    }


def set_name(deployment: str, digest: str) -> str:
    """The name of a ReplicaSet: that of its Deployment, cut where the whole would be too long, and the hash."""
    return f"{deployment[: SUBDOMAIN_LIMIT - 1 - len(digest)]}-{digest}"


def _own_metadata(template: Mapping[str, Any]) -> dict[str, Any]:
    metadata = template.get("metadata") or {}
    labels = metadata.get("labels") or {}
    own = {key: value for key, value in metadata.items() if value and key != "labels"}
    own["labels"] = {key: value for key, value in labels.items() if key != POD_TEMPLATE_HASH}
    return own


def _number(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def _remembered(history: str, revision: str) -> str:
    """The history with one more revision; the earliest are forgotten where it would be too long."""
    revisions = [*history.split(","), revision] if history else [revision]
    while len(revisions) > 1 and len(",".join(revisions)) > LONGEST_HISTORY:
        del revisions[0]
    return ",".join(revisions)
