"""``shoal runtimes``: the ClusterTrainingRuntimes that come with Shoal, seen and installed."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.connecting import ContextOption
from shoal.cli.output import DocumentFormat, Format, show, show_manifests, write
from shoal.cli.training.clusters import DataDirOption, KubeconfigOption, Place

INSTALL_EXAMPLES = {
    "shoal runtimes install": "Install all of them, or bring them up to date",
    "shoal runtimes install torch-distributed": "One of them",
    "shoal runtimes install -o yaml": "See what would be installed, and install nothing",
}
LIST_EXAMPLES = {"shoal runtimes list": "What comes with this version of Shoal"}

_MANAGER = "shoal-runtimes"


def alone(context: typer.Context) -> None:
    """The runtimes for training that come with Shoal."""
    if context.invoked_subcommand is None:
        write(context.get_help())  # which prints by itself, and leaves nothing, where the terminal is rich


def list_(
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print.")] = Format.TABLE,
) -> None:
    """List the runtimes that come with Shoal."""
    import msgspec  # noqa: PLC0415 - other commands do without

    from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES  # noqa: PLC0415
    from shoal.cli.training.pages import runtimes_table  # noqa: PLC0415
    from shoal.training.runtimes import built_in_runtimes  # noqa: PLC0415

    found = list(built_in_runtimes().values())
    typed = [CLUSTER_TRAINING_RUNTIMES.decode(msgspec.json.encode(one)) for one in found]
    show({"apiVersion": "v1", "kind": "List", "items": found}, output, table=runtimes_table(typed))


def install(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Only these.")] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    data_dir: DataDirOption = None,
    output: Annotated[
        DocumentFormat | None, typer.Option("--output", "-o", help="Print the runtimes and install nothing.")
    ] = None,
) -> None:
    """Install the runtimes that come with Shoal into a cluster, or bring them up to date."""
    from shoal.training.runtimes import chosen_runtimes  # noqa: PLC0415 - other commands do without

    try:
        chosen = chosen_runtimes(names or ())
    except LookupError as error:
        raise typer.BadParameter(str(error.args[0]), param_hint="NAME") from None
    if output is not None:
        show_manifests(chosen, output)
        return
    from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES  # noqa: PLC0415
    from shoal.cli.processes.loops import run_loop  # noqa: PLC0415

    async def run() -> None:
        async with Place(kubeconfig, context, data_dir).client() as (client, _):
            for runtime in chosen:
                name = runtime["metadata"]["name"]
                await client.apply(
                    CLUSTER_TRAINING_RUNTIMES.documents(), runtime, name=name, field_manager=_MANAGER, force=True
                )
                write(f"clustertrainingruntime/{name} installed\n")

    run_loop(run())
