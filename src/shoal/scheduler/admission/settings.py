"""How strict admission is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AdmissionSettings:
    """What the flags decide for the webhooks of queues, gangs, topologies and shards."""

    warns_of_quotas: bool = False
    """Whether a quota that its parent does not cover is warned of; the flag ``enable-quota-validation``."""
