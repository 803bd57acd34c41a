"""``shoal apiserver``: the embedded Kubernetes API alone, in the foreground."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from shoal.cli.components import Engine
from shoal.cli.data_dir import DataDir
from shoal.cli.output import shortest, write
from shoal.cli.up import DATA_DIR, DataDirOption, checked_address

EXAMPLES = {
    "shoal apiserver": "Serve on 127.0.0.1:7443, and stop with Ctrl-C",
    "shoal apiserver --data-dir /tmp/try --api-port 0": "Serve on any free port",
    "kubectl --kubeconfig .shoal/kubeconfig get namespaces": "Use it from another terminal",
}


def apiserver(
    data_dir: DataDirOption = DATA_DIR,
    bind: Annotated[
        str, typer.Option("--bind", metavar="ADDRESS", help="The IP address that the server listens on.")
    ] = "127.0.0.1",
    api_port: Annotated[
        int, typer.Option("--api-port", min=0, max=65535, help="The port; 0 means any free one.")
    ] = 7443,
    durable: Annotated[
        bool,
        typer.Option(
            "--durable/--no-durable",
            help="Wait for the disk before a write is answered; without it a power cut may lose the last writes.",
        ),
    ] = True,
) -> None:
    """Run the embedded Kubernetes API server alone: no controllers, no nodes.

    Says "Shoal is ready" when it can be used, by the kubeconfig in the data dir.
    What it holds stays in the data dir, also after a crash.
    """
    address = checked_address(bind)
    place = DataDir(data_dir)
    with place.held(os.getpid()):
        place.claim(Engine.EMBEDDED)
        from shoal.cli.processes.api import serve_api  # noqa: PLC0415 - other commands do without
        from shoal.cluster.apiserver.server import ApiServer, ServerOptions  # noqa: PLC0415

        async def announce(server: ApiServer) -> None:
            place.write_endpoints({"api": server.url})
            write(f"Shoal is ready: api {server.url}, kubeconfig {shortest(server.kubeconfig)}\n")

        options = ServerOptions(data_dir=place.path, bind=address, port=api_port, durable=durable)
        serve_api(options, once_serving=announce)
    write("Shoal is stopped\n")
