"""Snapshots: everything that a scheduler decides upon, in a file that can be replayed elsewhere, in KAI's own form.

``writing`` makes the file, ``reading`` understands one (also one of KAI's), ``modelling`` makes the engine's model of
it, ``snapshot_routes`` hands one out over HTTP.
"""

from shoal.scheduler.snapshots.modelling import mirror_of, setup_of
from shoal.scheduler.snapshots.parameters import configuration_document, parameters_of
from shoal.scheduler.snapshots.reading import read_snapshot
from shoal.scheduler.snapshots.routes import job_order, snapshot_routes, watched_sources
from shoal.scheduler.snapshots.snapshot import InvalidSnapshot, Snapshot
from shoal.scheduler.snapshots.writing import packed, snapshot_document

__all__ = [
    "InvalidSnapshot",
    "Snapshot",
    "configuration_document",
    "job_order",
    "mirror_of",
    "packed",
    "parameters_of",
    "read_snapshot",
    "setup_of",
    "snapshot_document",
    "snapshot_routes",
    "watched_sources",
]
