"""How many JobSets have ended, by how; under the names that upstream gave them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

from shoal.api.jobset import JobSet, reasons

_LABELS = ("jobset_name", "namespace")


class JobSetMetrics:
    """The counters of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        failed = Counter("jobset_failed_total", "The total number of failed JobSets", _LABELS, registry=registry)
        done = Counter("jobset_completed_total", "The total number of completed JobSets", _LABELS, registry=registry)
        self._ended = {reasons.FAILED: failed, reasons.COMPLETED: done}

    def count(self, job_set: JobSet, terminal_state: str) -> None:
        """Counts one more that has ended so."""
        self._ended[terminal_state].labels(job_set.metadata.name, job_set.metadata.namespace).inc()
