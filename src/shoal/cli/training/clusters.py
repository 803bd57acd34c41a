"""The cluster that a question is about, and the options that name it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.data_dir import DataDir
from shoal.cli.exits import CommandError, ExitCode
from shoal.cli.up import DATA_DIR

if TYPE_CHECKING:
    from shoal.kube import Client

KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="The cluster; otherwise that of --data-dir, of KUBECONFIG, of the Shoal that runs in .shoal, "
        "of ~/.kube/config, or the one this runs in.",
    ),
]
DataDirOption = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help="The Shoal that runs there, whatever KUBECONFIG says."),
]


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster and a namespace in it."""

    kubeconfig: Path | None
    context: str | None
    data_dir: Path | None
    namespace: str = ""

    @asynccontextmanager
    async def client(self) -> AsyncIterator[tuple[Client, str]]:
        """A client for the length of a block, and the namespace that is meant."""
        from shoal.kube import Client, HttpTransport, load_connection  # noqa: PLC0415 - other commands do without

        connection = load_connection(self.file(os.environ), self.context)
        client = Client(HttpTransport(connection))
        try:
            yield client, self.namespace or connection.namespace or "default"
        finally:
            await client.close()

    def file(self, environ: Mapping[str, str], *, usual: Path = DATA_DIR) -> Path | None:
        """The kubeconfig of the cluster; None for the one that kubectl would take.

        What was said wins over what happens to be there: a Shoal in this folder counts only where nobody names a
        cluster, by an option or by KUBECONFIG, so that nothing meant for that one is ever written to this one.
        """
        if self.data_dir is not None:
            if self.kubeconfig is not None:
                raise CommandError("--kubeconfig and --data-dir name two clusters: leave one out", code=ExitCode.USAGE)
            return _running(self.data_dir)
        if self.kubeconfig is not None or self.context is not None or environ.get("KUBECONFIG"):
            return self.kubeconfig
        own = DataDir(usual)
        return own.kubeconfig if own.holder() is not None else None


def _running(data_dir: Path) -> Path:
    own = DataDir(data_dir)
    if own.holder() is None:
        raise CommandError(
            f"no Shoal runs in {data_dir}: start it with `shoal up --data-dir {data_dir}`, or name another cluster"
        )
    return own.kubeconfig
