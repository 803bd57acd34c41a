"""ControllerRevisions: the templates that a StatefulSet or DaemonSet had, each kept as a patch that brings it back."""

from __future__ import annotations

from typing import Any

from shoal.api.meta import Object, Resource


class ControllerRevision(Object, frozen=True, kw_only=True):
    """One version of an owner's template; the newest has the highest number."""

    revision: int = 0
    data: dict[str, Any] = {}


CONTROLLER_REVISIONS = Resource(
    type=ControllerRevision, group="apps", version="v1", kind="ControllerRevision", plural="controllerrevisions"
)

REVISION_HASH = "controller-revision-hash"
"""Label of a pod: the revision that it was made from, by name for a StatefulSet and by hash for a DaemonSet."""
