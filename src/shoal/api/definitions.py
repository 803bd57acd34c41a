"""Every kind that Shoal defines, for those who install CRDs: group by group, in alphabetical order."""

from __future__ import annotations

from shoal.api import kai_scheduler, scheduling_run_ai
from shoal.api.crd import CustomResource

ALL: tuple[CustomResource, ...] = (
    *kai_scheduler.DEFINITIONS,
    *scheduling_run_ai.DEFINITIONS,
)
