"""CronJobs, in what does not depend on the minute in which they are looked at."""

from __future__ import annotations

from typing import Any

from tests.differential.mirror import Object
from tests.differential.objects import a_job, an_object, owned_by
from tests.differential.story import Story, Teller


def _cron_job(schedule: str = "0 0 1 1 *", **spec: Any) -> Object:
    """Seldom, so that nothing happens by itself."""
    job = {"spec": a_job("tick")["spec"], "metadata": {"labels": {"of": "cron"}}}
    return an_object("batch/v1", "CronJob", "tick", spec={"schedule": schedule, "jobTemplate": job, **spec})


def _seldom(c: Teller) -> None:
    c.create(_cron_job())
    c.later()
    c.snapshot("nothing yet")
    c.patch("CronJob", "tick", {"spec": {"suspend": True}})
    c.later()
    c.snapshot("suspended")


def _unknown_zone(c: Teller) -> None:
    c.create(_cron_job(timeZone="Europe/Zurich", schedule="@yearly"))
    c.later()
    c.snapshot("in a time zone")


def _finished(c: Teller) -> None:
    c.create(_cron_job(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0))
    owner = owned_by(c.get("CronJob", "tick") | {"apiVersion": "batch/v1", "kind": "CronJob"}, controller=True)
    for name in ("first", "second", "third"):
        c.create(a_job(name, metadata={"ownerReferences": [owner]}, backoffLimit=0))
        c.finish(*c.until_pods(1, app=name), exit_code=int(name == "third"))
        c.until_condition("Job", name, "Failed" if name == "third" else "Complete")
        c.later()
    c.patch("CronJob", "tick", {"metadata": {"labels": {"look": "again"}}})
    c.until(lambda: [job["metadata"]["name"] for job in c.all_of("Job")] == ["second"])
    c.until_pods(1)
    c.snapshot("only the newest that succeeded is kept")


def _deleted(c: Teller) -> None:
    c.create(_cron_job())
    owner = owned_by(
        c.get("CronJob", "tick") | {"apiVersion": "batch/v1", "kind": "CronJob"}, controller=True, blocking=True
    )
    c.create(a_job("run", metadata={"ownerReferences": [owner]}))
    c.until_pods(1)
    c.delete("CronJob", "tick", policy="Foreground")
    c.until_gone("CronJob", "tick")
    c.until_pods(0)
    c.snapshot("gone with its jobs")


def _fires(c: Teller) -> None:
    c.create(_cron_job("* * * * *", concurrencyPolicy="Forbid"))
    c.until(lambda: c.all_of("Job"), "the minute is over", within=75)
    c.until(lambda: c.get("CronJob", "tick")["status"].get("active"), "it has begun")
    c.patch("CronJob", "tick", {"spec": {"suspend": True}})
    c.snapshot("it has begun")
    c.finish(*c.until_pods(1))
    c.until(lambda: not c.get("CronJob", "tick")["status"].get("active"), "it is done")
    c.snapshot("it is done")


STORIES = [
    Story("cron job seldom", _seldom),
    Story("cron job in a time zone", _unknown_zone),
    Story("cron job keeps few jobs", _finished),
    Story("cron job deleted", _deleted),
    Story("cron job fires", _fires, slow=True),
]
