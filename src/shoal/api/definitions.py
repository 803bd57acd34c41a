"""Every kind that Shoal defines, for those who install CRDs: group by group, in alphabetical order."""

from __future__ import annotations

from shoal.api import (
    grove,
    jobset,
    kai_scheduler,
    resource_nvidia_com,
    scheduler_grove_io,
    scheduling_run_ai,
    scheduling_sigs_k8s_io,
    scheduling_volcano_sh,
    trainer,
)
from shoal.api.crd import CustomResource

ALL: tuple[CustomResource, ...] = (
    *grove.DEFINITIONS,
    *jobset.DEFINITIONS,
    *kai_scheduler.DEFINITIONS,
    *scheduler_grove_io.DEFINITIONS,
    *scheduling_run_ai.DEFINITIONS,
    *trainer.DEFINITIONS,
)

DIALECTS: tuple[CustomResource, ...] = (
    *resource_nvidia_com.DEFINITIONS,
    *scheduling_sigs_k8s_io.DEFINITIONS,
    *scheduling_volcano_sh.DEFINITIONS,
)
"""Kinds that Shoal writes for other schedulers and drivers, which bring the definitions with them.

They are installed where there is nobody else to bring them, and never put over those of somebody else unasked.
"""
