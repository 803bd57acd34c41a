"""The page for users says what is so, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from shoal.api.jobset import JobSet, names, reasons
from shoal.training.jobset.admission import defaulted, job_set_findings
from shoal.training.jobset.settings import JobSetSettings
from shoal.training.jobset.upstream import LEASE, WEBHOOKS
from tests.training.jobset.conftest import JobSetWorld

PAGE = (Path(__file__).parents[3] / "docs" / "jobset.md").read_text()
[EXAMPLE] = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


def test_the_example_is_accepted() -> None:
    assert list(job_set_findings(defaulted(msgspec.convert(EXAMPLE, JobSet)), JobSetSettings())) == []


async def test_the_example_does_what_the_page_says(world: JobSetWorld) -> None:
    spec: dict[str, Any] = EXAMPLE["spec"]
    async with world.running():
        await world.make(*spec["replicatedJobs"], failurePolicy=spec["failurePolicy"])
        await world.has_jobs("train-data-0")
        await world.end("train-data-0")
        await world.has_jobs("train-data-0", "train-workers-0", "train-workers-1")
        await world.counters(workers=(0, 0, 0, 2, 0), data=(0, 1, 0, 0, 0))
        hosts = {f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}" for pod in await world.pods("train-workers-1")}
        assert "train-workers-1-3.train" in hosts
        assert "`train-workers-1-3.train`" in PAGE


def test_every_condition_event_and_name_is_on_the_page() -> None:
    said = [
        reasons.COMPLETED,
        reasons.FAILED,
        reasons.SUSPENDED,
        reasons.RESTARTING,
        reasons.STARTUP_POLICY_IN_PROGRESS,
        reasons.STARTUP_POLICY_COMPLETED,
        reasons.JOB_CREATION_FAILED,
        reasons.SERVICE_CREATION_FAILED,
        reasons.CLAIM_CREATION_FAILED,
        names.CONTROLLER,
        names.COORDINATOR,
        names.EXCLUSIVE_TOPOLOGY,
        names.NODE_SELECTOR_STRATEGY,
        WEBHOOKS,
        LEASE,
    ]
    assert [each for each in said if f"`{each}`" not in PAGE] == []
