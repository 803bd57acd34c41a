"""Finished Jobs: deletes a Job with its pods when ``ttlSecondsAfterFinished`` have passed since its end."""

from shoal.cluster.controllers.finished_jobs.controller import add_finished_jobs

__all__ = ["add_finished_jobs"]
