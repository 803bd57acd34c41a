"""The embedded API server as a process, which signals end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from typing import Any

from shoal.api.apiextensions import DEFINITIONS
from shoal.api.crd import CustomResource
from shoal.cli.children import Main, Reporter
from shoal.cli.processes.loops import run_loop, stop_signalled
from shoal.cluster.apiserver.loopback import LoopbackTransport
from shoal.cluster.apiserver.server import ApiServer, ServerOptions, serving
from shoal.kube import Client, EventType, Retry, configure_logs


def api_process(options: ServerOptions, definitions: Sequence[CustomResource]) -> Main:
    """The process that serves the API, with these kinds defined before it says that it is ready."""

    def main(reporter: Reporter) -> None:
        async def define_and_report(server: ApiServer) -> None:
            # Nothing lies between this client and its server that trying again could help.
            client = Client(LoopbackTransport(server.core.service), retry=Retry(within=0))
            await define(client, definitions)
            reporter.ready()

        serve_api(options, once_serving=define_and_report)

    return main


def serve_api(options: ServerOptions, *, once_serving: Callable[[ApiServer], Any]) -> None:
    """Serves until SIGINT or SIGTERM, even where these were inherited as ignored or blocked."""
    configure_logs()
    run_loop(_serve(options, once_serving))


async def _serve(options: ServerOptions, once_serving: Callable[[ApiServer], Any]) -> None:
    asked = stop_signalled()
    async with serving(options) as server:
        await once_serving(server)
        gc.freeze()
        await asked.wait()


async def define(client: Client, definitions: Sequence[CustomResource]) -> None:
    """Applies custom resource definitions, and waits until their kinds are served."""
    manifests = [definition.manifest() for definition in definitions]
    applying = (
        client.apply(DEFINITIONS, manifest, name=manifest["metadata"]["name"], field_manager="shoal-up", force=True)
        for manifest in manifests
    )
    applied = await asyncio.gather(*applying)
    missing = {found.metadata.name for found in applied if not found.is_established}
    if not missing:
        return
    async for event in client.watch(DEFINITIONS, initial_events=True):
        found = event.object if event.type is not EventType.DELETED else None
        if found is not None and found.is_established:
            missing.discard(found.metadata.name)
        if not missing:
            return
