"""Clients and managers for a test's cluster, and small things that many tests do to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from shoal.api.crd import CustomResource
from shoal.kube import AlreadyExists, Client, HttpTransport, Metrics, Retry, load_connection
from shoal.kube.admission.configuration import CUSTOM_RESOURCE_DEFINITIONS
from shoal.kube.backoff import Backoff
from shoal.kube.queue import RetryLimits
from shoal.kube.reflector import Pace

QUICK_RETRIES = RetryLimits(backoff=Backoff(initial=0.005, cap=1.0), rate=1000, burst=1000)
QUICK_PACE = Pace(backoff=Backoff(initial=0.05, cap=0.5, jitter=0.5), unserved=Backoff(initial=0.05, cap=0.2))


@asynccontextmanager
async def transport_to(kubeconfig: Path) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(load_connection(kubeconfig))
    try:
        yield transport
    finally:
        await transport.close()


@asynccontextmanager
async def client_to(kubeconfig: Path) -> AsyncIterator[Client]:
    async with transport_to(kubeconfig) as transport:
        yield Client(transport, retry=Retry(within=60))


async def install(client: Client, definition: CustomResource | Mapping[str, Any]) -> None:
    """Creates a CRD and waits until its kind is served."""
    manifest = definition.manifest() if isinstance(definition, CustomResource) else definition
    name = manifest["metadata"]["name"]
    try:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, manifest)
    except AlreadyExists:
        return
    async for event in client.watch(
        CUSTOM_RESOURCE_DEFINITIONS, field_selector=f"metadata.name={name}", initial_events=True
    ):
        conditions = (event.object.content.get("status", {}).get("conditions") or []) if event.object else []
        if any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions):
            return


def writes(metrics: Metrics) -> int:
    """How many requests that write a client has sent."""
    return requests(metrics, lambda method: method != "GET")


def requests(metrics: Metrics, chosen: Callable[[str], bool] = lambda method: True) -> int:
    samples = [sample for family in metrics.requests.collect() for sample in family.samples]
    return int(
        sum(
            sample.value
            for sample in samples
            if sample.name == "rest_client_requests_total" and chosen(sample.labels["method"])
        )
    )


async def until(condition: Callable[[], Any], *, within: float = 60.0) -> Any:
    """The first true answer of a coroutine function that is asked again and again."""
    async with asyncio.timeout(within):
        while not (answer := await condition()):
            await asyncio.sleep(0.02)
        return answer
