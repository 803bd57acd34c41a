"""How the queue controller runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class QueueSettings:
    """What flags decide for the queue controller; every field has the value that suits a cluster."""

    metrics_namespace: str = "kai"
    """What the names of metrics begin with; the flag ``metrics-namespace``."""
    queue_label_to_metric_label: Mapping[str, str] = field(default_factory=dict)
    """Labels of queues that are labels of their metrics, and what they are called there; a flag of the same name."""
    queue_label_to_default_metric_value: Mapping[str, str] = field(default_factory=dict)
    """What such a label says of a queue that does not have it; a flag of the same name."""
    workers: int = 4


def label_map(text: str) -> dict[str, str]:
    """Reads a flag such as ``team=queue_team,cost=queue_cost``; raises ValueError."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    for key, sign, value in pairs:
        if not key.strip() or not sign or not value.strip():
            raise ValueError(f"{key + sign + value!r} is no pair: write key=value, and commas between pairs")
    return {key.strip(): value.strip() for key, _, value in pairs}
