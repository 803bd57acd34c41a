"""The examples of docs/queues.md are taken by the server and by admission, and say what the page says of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml
from prometheus_client import CollectorRegistry

from shoal.api.core import PODS
from shoal.api.meta import Resource
from shoal.api.scheduling_run_ai import QUEUES, Queue
from shoal.scheduler.admission.queues import queue_problems, queue_warnings, quota_warnings
from shoal.scheduler.configuration import configuration_of
from shoal.scheduler.defaults import default_objects
from shoal.scheduler.queues import add_queues
from shoal.scheduler.queues.metrics import QueueMetrics
from shoal.scheduler.queues.settings import QueueSettings
from shoal.scheduler.shares.usage import usage_settings
from shoal.scheduler.shares.usage.settings import WEEK
from shoal.scheduler.shares.usage.windows import Sliding
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

PAGE = (Path(__file__).parents[2] / "docs" / "queues.md").read_text()
KINDS: dict[str, Resource[Any]] = {"Queue": QUEUES, "Pod": PODS}


def examples() -> list[dict[str, Any]]:
    """The objects; what has no kind is for the scheduler's configuration file."""
    return [document for document in documents() if "kind" in document]


def documents() -> list[dict[str, Any]]:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    return [document for block in blocks for document in yaml.safe_load_all(block)]


def test_the_past_of_queues_is_configured_as_the_page_says() -> None:
    (document,) = [document for document in documents() if "kind" not in document]
    configuration = configuration_of(document, source="docs/queues.md")
    assert configuration.usage is not None
    assert not configuration.remarks
    settings = usage_settings(configuration.usage, environment={}, now=0.0)
    assert (settings.client_type, settings.directory) == ("builtin", Path("/var/lib/shoal/usage"))
    assert (settings.window, settings.half_life) == (Sliding(WEEK), WEEK / 7)


async def test_the_examples_can_be_applied_and_make_a_tree(cluster: Cluster) -> None:
    for body in examples():
        await cluster.make(KINDS[body["kind"]], body)
    async with cluster.controllers(add_queues):

        async def has_children() -> bool:
            found = await cluster.read(QUEUES, "research")
            return found is not None and found.get("status", {}).get("childQueues") == ["speech", "vision"]

        await until(has_children)


def test_admission_has_nothing_to_say_of_the_examples() -> None:
    queues = [msgspec.convert(body, Queue) for body in examples() if body["kind"] == "Queue"]
    assert len(queues) == 3
    for queue in queues:
        assert [*queue_problems(queue), *queue_warnings(queue), *quota_warnings(queue, queues)] == []


def test_the_page_names_all_metrics_and_default_objects() -> None:
    named = [family.name for family in QueueMetrics(CollectorRegistry(), QueueSettings()).collect()]
    for name in [*named, *(each.name for each in default_objects())]:
        assert f"`{name}`" in PAGE, name
