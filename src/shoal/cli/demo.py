"""``shoal demo``: simulated nodes, queues and a lively set of workloads, so that everything has something to show."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.data_dir import DataDir
from shoal.cli.exits import CommandError
from shoal.cli.output import DocumentFormat, show_manifests
from shoal.cli.up import DATA_DIR, DataDirOption

EXAMPLES = {
    "shoal demo": "Fill the Shoal of this folder with something to look at",
    "shoal demo --remove": "Take it all away again",
    "shoal demo -o yaml": "See what it would make, and make nothing",
}


def demo(
    data_dir: DataDirOption = DATA_DIR,
    remove: Annotated[
        bool, typer.Option("--remove", help="Take away what the demo made, and wait until it is gone.")
    ] = False,
    output: Annotated[
        DocumentFormat | None, typer.Option("--output", "-o", help="Print the objects and make nothing.")
    ] = None,
) -> None:
    """Fill a running Shoal with simulated nodes, queues and a lively set of workloads.

    Nothing is downloaded. All of it is simulated but one small training run, which reports its progress from this
    machine where that is a node. Run it again to put back what was changed.
    """
    from shoal.cli.demonstration import apply, manifests, take_away  # noqa: PLC0415 - other commands do without

    if output is not None:
        show_manifests(manifests(), output)
        return
    place = DataDir(data_dir)
    if place.holder() is None or not place.endpoints():
        raise CommandError(f"Shoal is not running in {place.path}: start it with `shoal up`, in another terminal")
    if remove:
        take_away(place.kubeconfig)
    else:
        apply(place.kubeconfig)
