"""The history of a StatefulSet's or DaemonSet's template: ControllerRevisions, made, numbered, adopted and let go.

``record`` holds the rules over plain values; ``history`` reads and writes the objects for one kind of owner.
"""

from shoal.cluster.controllers.revisions.history import RevisionHistory
from shoal.cluster.controllers.revisions.record import (
    Draft,
    in_order,
    latest_number,
    revision_data,
    same_data,
    surplus,
    template_of,
)

__all__ = [
    "Draft",
    "RevisionHistory",
    "in_order",
    "latest_number",
    "revision_data",
    "same_data",
    "surplus",
    "template_of",
]
