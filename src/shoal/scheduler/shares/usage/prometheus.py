"""What queues used, as a Prometheus server remembers it from the metrics of the queue controller.

A window that begins at a moment is asked for as one that is as long as that moment is ago: one instant query for each
figure, whatever the window. Of a resource that the cluster never had there is no capacity, and no use either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
import msgspec

from shoal.scheduler.model.amounts import Amounts
from shoal.scheduler.shares.usage.settings import UsageSettings

_LABELS: Final = ("queue_metadata_name", "queue_name")
"""Which queue a series is of: its object's name, or where nobody says that, whatever it is called by."""

_RESOURCES: Final = ("cpu", "memory", "gpu")


class UsageUnavailable(Exception):
    """The server gave no figures."""


class PrometheusUsage:
    """Asks one server."""

    def __init__(self, settings: UsageSettings, session: aiohttp.ClientSession) -> None:
        self._settings = settings
        self._session = session

    async def fetch(self, now: float) -> dict[str, Amounts]:
        """By queue the part of the cluster that it used within the window; raises UsageUnavailable."""
        length = now - self._settings.window.start(now)
        if length <= 0:
            return {}
        try:
            async with asyncio.timeout(self._settings.query_timeout):
                used, there = await self._figures(length, now)
        except TimeoutError:
            raise UsageUnavailable(
                f"{self._settings.address} did not answer within {self._settings.query_timeout:g} s"
            ) from None
        return _parts(used, there)

    async def _figures(self, length: float, now: float) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
        """What was used and what was there, by resource; all of it is asked for at once."""
        try:
            async with asyncio.TaskGroup() as group:
                used = [group.create_task(self._series(f"{name}AllocationMetric", length, now)) for name in _RESOURCES]
                there = [group.create_task(self._series(f"{name}CapacityMetric", length, now)) for name in _RESOURCES]
        except* UsageUnavailable as problems:
            raise UsageUnavailable(str(problems.exceptions[0])) from None
        return [task.result() for task in used], [task.result() for task in there]

    async def _series(self, metric: str, length: float, now: float) -> dict[str, float]:
        query = self.query(self._settings.metrics[metric], length, now)
        url = f"{self._settings.address}/api/v1/query"
        try:
            async with self._session.post(url, data={"query": query, "time": f"{now:.3f}"}) as response:
                body = await response.read()
                status = response.status
        except (aiohttp.ClientError, OSError) as problem:
            raise UsageUnavailable(f"{url} cannot be reached: {problem}") from None
        return _vector(body, url, status, query)

    def query(self, metric: str, length: float, now: float) -> str:
        """The sum of all samples of a metric within the window, older ones counting less where they decay."""
        settings = self._settings
        if settings.half_life is not None:
            metric = f"(({metric}) * (0.5^(({int(now)} - time()) / {settings.half_life:f})))"
        return f"sum_over_time(({metric})[{_duration(length)}:{_duration(settings.resolution)}])"


def _vector(body: bytes, url: str, status: int, query: str) -> dict[str, float]:
    """The values of an instant vector by queue; series of one queue, as a restart leaves them, are added up."""
    try:
        answer = msgspec.json.decode(body)
        if answer["status"] != "success":
            raise UsageUnavailable(f"{url} refused {query!r}: {answer.get('error', f'status {status}')}")
        kind, result = answer["data"]["resultType"], answer["data"]["result"]
        if kind != "vector":
            raise UsageUnavailable(f"{url} answered {query!r} with a {kind}, not a vector: check the metric's name")
        made: dict[str, float] = {}
        for series in result:
            name = _queue_of(series["metric"])
            made[name] = made.get(name, 0.0) + float(series["value"][1])
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise UsageUnavailable(f"{url} is no Prometheus server: it answered {status} with something else") from None
    return made


def _queue_of(labels: Mapping[str, Any]) -> str:
    return next((str(labels[label]) for label in _LABELS if labels.get(label)), "")


def _parts(used: list[dict[str, float]], there: list[dict[str, float]]) -> dict[str, Amounts]:
    names = {name for resource in used for name in resource if name}
    whole = [sum(resource.values()) for resource in there]
    return {
        name: Amounts(
            *(
                resource.get(name, 0.0) / capacity if capacity > 0 else 0.0
                for resource, capacity in zip(used, whole, strict=True)
            )
        )
        for name in sorted(names)
    }


def _duration(length: float) -> str:
    """A length as Prometheus reads it, to the millisecond."""
    whole, milliseconds = divmod(round(length * 1000), 1000)
    return f"{whole}s" + (f"{milliseconds}ms" if milliseconds else "")
