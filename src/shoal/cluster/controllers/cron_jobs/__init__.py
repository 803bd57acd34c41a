"""CronJobs: makes a Job each time that a schedule says so, follows what becomes of it, and clears away old ones. When a
Job is due is decided in ``timing``, what it looks like in ``objects``.
"""

from shoal.cluster.controllers.cron_jobs.controller import add_cron_jobs

__all__ = ["add_cron_jobs"]
