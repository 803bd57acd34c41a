"""The JobSet controller, for clusters where nobody has installed upstream's.

What to do is decided by pure modules, which ``plan`` puts together: ``buckets`` (which Jobs are of this attempt),
``counters``, ``startup``, ``success``, ``failure``. ``controller`` does it, ``admission`` checks what comes in, and
``upstream`` says when to stand by.
"""

from shoal.training.jobset.everything import add_everything, add_job_set_webhooks
from shoal.training.jobset.settings import JobSetSettings

__all__ = ["JobSetSettings", "add_everything", "add_job_set_webhooks"]
