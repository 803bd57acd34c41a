"""Volumes that pods claim: what a claim is waiting for, and which volume suits it.

The scheduler asks which nodes will do, the binder which volume it is to be: both by the rules that are here.
"""

from shoal.scheduler.storage.claims import (
    NO_PROVISIONER,
    SELECTED_NODE,
    SINGLE_USER,
    ClaimUse,
    claim_problem,
    claim_uses,
    class_of,
    is_bound,
    is_delayed,
    is_for_one_pod,
    provisions,
)
from shoal.scheduler.storage.matching import best_volume, is_reserved_for, requested_storage, suits

__all__ = [
    "NO_PROVISIONER",
    "SELECTED_NODE",
    "SINGLE_USER",
    "ClaimUse",
    "best_volume",
    "claim_problem",
    "claim_uses",
    "class_of",
    "is_bound",
    "is_delayed",
    "is_for_one_pod",
    "is_reserved_for",
    "provisions",
    "requested_storage",
    "suits",
]
